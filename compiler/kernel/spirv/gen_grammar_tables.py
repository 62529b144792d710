#!/usr/bin/env python3
"""Makes the SPIR-V grammar tables of the kernel compiler's reader.

usage: gen_grammar_tables.py spirv.core.grammar.json extinst.glsl.std.450.grammar.json OUT.h

The output is one header of constant arrays, which only grammar.cpp includes: what operands each
instruction takes, what the values of each enumeration are called and what parameters they bring, and
what the instructions of GLSL.std.450 are called.
"""
import json
import sys

QUANTIFIERS = {None: "kOne", "?": "kOptional", "*": "kAny"}


def value_of(enumerant):
    value = enumerant["value"]
    return int(value, 16) if isinstance(value, str) else value


def unique_by(items, key):
    """Aliases share a value; the grammar lists the preferred name first."""
    found = {}
    for item in items:
        found.setdefault(key(item), item)
    return [found[k] for k in sorted(found)]


class Pool:
    """Sequences of operands; instructions and enumerants with equal operands share them."""

    def __init__(self):
        self.items = []
        self.known = {}

    def add(self, operands):
        key = tuple((o["kind"], o.get("quantifier")) for o in operands)
        if key not in self.known:
            self.known[key] = len(self.items)
            self.items.extend(key)
        return self.known[key], len(key)


def main():
    core_path, glsl_path, out_path = sys.argv[1:4]
    with open(core_path, encoding="utf-8") as f:
        core = json.load(f)
    with open(glsl_path, encoding="utf-8") as f:
        glsl = json.load(f)

    pool = Pool()
    kinds = {}
    for kind in core["operand_kinds"]:
        kinds.setdefault(kind["kind"], kind)
    out = [
        "// Made by gen_grammar_tables.py from the SPIR-V grammar; do not edit.",
        "#pragma once",
        "",
        '#include "compiler/kernel/spirv/grammar.h"',
        "",
        "namespace fornax::kernel::spirv {",
        "",
    ]

    enumerants = []
    kind_rows = []
    for name, kind in kinds.items():
        first = len(enumerants)
        for e in unique_by(kind.get("enumerants", []), value_of):
            params = pool.add(e.get("parameters", []))
            enumerants.append((value_of(e), e["enumerant"], *params))
        bases = pool.add([{"kind": b} for b in kind.get("bases", [])])
        kind_rows.append((kind["category"], name, first, len(enumerants) - first, *bases))

    # The reader meets operand kinds by number only; those that it treats by name are listed in grammar.h.
    index = {name: i for i, name in enumerate(kinds)}
    for name in sorted(kinds):
        out.append(f"inline constexpr uint8_t kKind{name} = {index[name]};")
    out.append("")

    instructions = []
    for i in unique_by(core["instructions"], lambda i: i["opcode"]):
        instructions.append((i["opcode"], i["opname"], *pool.add(i.get("operands", []))))
    ext = []
    for i in unique_by(glsl["instructions"], lambda i: i["opcode"]):
        ext.append((i["opcode"], i["opname"], *pool.add(i.get("operands", []))))

    def table(type_name, name, rows):
        out.append(f"inline constexpr {type_name} {name}[] = {{")
        out.extend(f"    {row}," for row in rows)
        out.append("};\n")

    table("OperandInfo", "kOperands",
          [f"{{kKind{k}, Quantifier::{QUANTIFIERS[q]}}}" for k, q in pool.items])
    table("KindInfo", "kKinds",
          [f'{{Category::k{c}, "{n}", {f}, {e}, {pf}, {pn}}}' for c, n, f, e, pf, pn in kind_rows])
    table("EnumerantInfo", "kEnumerants",
          [f'{{{v}u, "{n}", {pf}, {pn}}}' for v, n, pf, pn in enumerants])
    table("InstructionInfo", "kInstructions",
          [f'{{{o}, "{n}", {pf}, {pn}}}' for o, n, pf, pn in instructions])
    table("InstructionInfo", "kGlslInstructions",
          [f'{{{o}, "{n}", {pf}, {pn}}}' for o, n, pf, pn in ext])
    out.append("}  // namespace fornax::kernel::spirv")
    with open(out_path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
