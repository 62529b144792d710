"""What became of graphs, as text: tables of their nodes, of kernels with what they do, of memory."""

import operator

import torch

from . import capture

NO_MODEL = ("These are counts of operations and bytes, which say nothing about how long an NPU would take; with a machine in "
            "FORNAX_NPU (edge-4, laptop-45, dc-400 or a file) they become modelled time.")
_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}


def table(header, rows):
    """Columns with two spaces between them; those whose cells are all numbers are on the right."""
    rows = [["" if cell is None else str(cell) for cell in row] for row in rows]
    columns = list(zip(header, *rows)) if rows else [(name,) for name in header]
    widths = [max(map(len, column)) for column in columns]
    right = [all(cell.replace(".", "").replace(",", "").isdigit() for cell in column[1:] if cell) and len(column) > 1
             for column in columns]

    def line(cells):
        return "  ".join(cell.rjust(width) if is_right else cell.ljust(width)
                         for cell, width, is_right in zip(cells, widths, right)).rstrip()

    return "\n".join([line(header), *map(line, rows)]) + "\n"


def count(number):
    """1234567 as "1,234,567"; "" of None."""
    return "" if number is None else f"{number:,}"


def size_text(number):
    """Bytes for people."""
    for unit, limit in (("B", 1 << 10), ("KiB", 1 << 20), ("MiB", 1 << 30)):
        if number < limit:
            return f"{number / (limit >> 10):.4g} {unit}"
    return f"{number / (1 << 30):.4g} GiB"


def type_text(value):
    """A value's type as the compiler writes it: "f32[2,s0]"."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        letters = name.rstrip("0123456789")
        return f"{_SHORT.get(letters, letters)}{name[len(letters):]}[{','.join(map(str, value.shape))}]"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(type_text, value))})"
    return type(value).__name__ if value is not None else ""


def nodes(graph_module):
    """A row for each node: name, what it is, type, what it reads, source line."""
    made = []
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem or node.op in ("placeholder", "get_attr"):
            what = capture.target_name(node) if node.op == "call_function" else node.op
            made.append((node.name, what, type_text(capture.value_of(node)),
                         ", ".join(source.name for source in node.all_input_nodes), capture.source_line(node)))
        elif node.op == "output":
            made.append((node.name, node.op, "", ", ".join(source.name for source in node.all_input_nodes), ""))
    return made


def graph_text(graph_module):
    return table(("node", "operator", "type", "reads", "line"), nodes(graph_module))


def work(report):
    """(operations, bytes read, bytes written) of all steps, and whether some of them are not known."""
    keys = ("operations", "bytes_read", "bytes_written")
    totals = [sum(step[key] or 0 for step in report["steps"]) for key in keys]
    return totals, any(step[key] is None for step in report["steps"] for key in keys)


def work_text(report):
    """Operations and bytes of each kernel."""
    rows = []
    for number, step in enumerate(report["steps"]):
        kernel = None if step["kernel"] is None else report["kernels"][step["kernel"]]
        rows.append((number, "host" if kernel is None else kernel["kind"], count(step["operations"]),
                     count(step["bytes_read"]), count(step["bytes_written"]), step["name"],
                     step["reason"] if kernel is None else kernel["name"]))
    totals, is_partial = work(report)
    rows.append(("all", "", *map(count, totals), "", "of the known ones" if is_partial else ""))
    return table(("step", "kind", "operations", "bytes read", "bytes written", "node", "kernel"), rows)


def modelled_text(report):
    """Times of each kernel on the machine that FORNAX_NPU describes, with their stamp; "" without one."""
    modelled = report.get("modelled")
    if modelled is None:
        return ""
    if "error" in modelled:
        raise ValueError(modelled["error"])
    rows = [(record["step"], f"{record['run_ns'] / 1e3:.2f}", f"{record['launch_ns'] / 1e3:.2f}", record["bound"],
             count(record["dram_bytes"]), record["name"]) for record in modelled["records"]]
    left_out = modelled["host_steps"] + modelled["unknown_steps"]
    return (table(("step", "run us", "launch us", "bound by", "bytes of DRAM", "node"), rows)
            + f"{modelled['total_ns'] / 1e3:.2f} us and {modelled['energy_nj'] / 1e3:.2f} uJ together"
            + (f", without {left_out} steps on the host or of unknown sizes" if left_out else "")
            + f"; {modelled['stamp']}\n")


def memory_text(report):
    """Where tensors lie and when, and how much memory there is of each kind."""
    rows = [(block["name"], block["type"], block["kind"], block["first"], block["last"], count(block["offset"]),
             count(block["size"])) for block in report["blocks"]]
    memory = report["memory"]
    states = sum(block["size"] or 0 for block in report["blocks"] if block["kind"] == "state")
    return (table(("tensor", "type", "kind", "from step", "to step", "offset", "bytes"), rows)
            + f"temporaries {size_text(memory['arena'])}, of which {size_text(memory['lower_bound'])} are in use at once; "
              f"constants {size_text(memory['constants'])}, inputs and outputs {size_text(memory['ports'])}"
            + (f", states {size_text(states)}" if states else "") + "\n")


def boundary_text(report):
    """Why each value lies in memory between kernels."""
    rows = [(boundary["node"], boundary["operation"], boundary["type"], ", ".join(boundary["readers"]),
             boundary["reason"]) for boundary in report["boundaries"]]
    return table(("node", "operation", "type", "read by", "because"), rows)


def files(report):
    """{ending: text} of what mode="compile" writes."""
    return {"ir.txt": report["graph"], "plan.txt": report["plan"], "memory.txt": memory_text(report),
            "work.txt": work_text(report), "boundaries.txt": boundary_text(report)}
