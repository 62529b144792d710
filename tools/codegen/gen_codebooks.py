#!/usr/bin/env python3
"""Writes the codebooks of the types iq1, iq2 and iq3 (compiler/frontends/ggml/codebooks.cpp).

Formats fix them, so they are measured: blocks that name each vector are converted by ggml's own
functions, and what comes out is the vector.

    tools/codegen/gen_codebooks.py .node/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-base.so
"""

import ctypes
import sys
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parents[2] / "compiler/frontends/ggml/codebooks.cpp"
ONE = np.float16(1).tobytes()


class Traits(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("elements", ctypes.c_int64), ("interleave", ctypes.c_int64),
                ("bytes", ctypes.c_size_t), ("is_quantised", ctypes.c_bool),
                ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64))]


def numbers(library, kind: int, block: bytes) -> np.ndarray:
    traits = library.ggml_get_type_traits(kind).contents
    assert len(block) == traits.bytes, (traits.name, len(block))
    result = np.zeros(traits.elements, np.float32)
    traits.to_float(ctypes.create_string_buffer(block, len(block)), result.ctypes.data, traits.elements)
    return result


def iq2_xxs(i):
    return ONE + bytes([i]) + bytes(63)


def iq2_xs(i):
    return ONE + int(i).to_bytes(2, "little") + bytes(70)


def iq2_s(i):
    return ONE + bytes([i & 255]) + bytes(63) + bytes([i >> 8]) + bytes(15)


def iq3_xxs(i):
    return ONE + bytes([i]) + bytes(95)


def iq3_s(i):
    return ONE + bytes([i & 255]) + bytes(63) + bytes([i >> 8]) + bytes(43)


def iq1(i):
    return ONE + bytes([i & 255]) + bytes(31) + bytes([i >> 8]) + bytes(15)


# name, number of the type, block of a vector, vectors, elements, bits, factor and offset of a number
BOOKS = [("Iq1", 19, iq1, 2048, 8, 2, 1, -0.125), ("Iq2Xxs", 16, iq2_xxs, 256, 8, 2, 8, 0),
         ("Iq2Xs", 17, iq2_xs, 512, 8, 2, 8, 0), ("Iq2S", 22, iq2_s, 1024, 8, 2, 8, 0),
         ("Iq3Xxs", 18, iq3_xxs, 256, 4, 3, 4, 0), ("Iq3S", 21, iq3_s, 512, 4, 3, 1, 0)]


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_get_type_traits.restype = ctypes.POINTER(Traits)
    text = ["// Made by tools/codegen/gen_codebooks.py.",
            '#include "compiler/frontends/ggml/codebooks.h"', "", "namespace fornax::ggml_frontend {", "namespace {",
            "", "// clang-format off"]
    cases = []
    for name, kind, block, count, elements, bits, factor, offset in BOOKS:
        vectors = np.array([numbers(library, kind, block(i))[:elements] for i in range(count)]) * factor + offset
        values = sorted(set(vectors.flatten().tolist()))
        assert len(values) <= 1 << bits and vectors.dtype == np.float32, (name, values)
        codes = [sum(values.index(v) << bits * i for i, v in enumerate(vector)) for vector in vectors.tolist()]
        assert len(set(codes)) == count, name
        text.append(f"constexpr float k{name}Numbers[] = {{{', '.join(f'{v:g}' for v in values)}}};")
        text.append(f"constexpr uint16_t k{name}[] = {{")
        text += [f"    {', '.join(f'{c}' for c in codes[i:i + 20])}," for i in range(0, count, 20)]
        text.append("};")
        cases.append(f"        case Vectors::k{name}:\n"
                     f"            return {{k{name}, {elements}, {bits}, k{name}Numbers}};")
    text += ["// clang-format on", "", "}  // namespace", "", "Codebook CodebookOf(Vectors vectors) {",
             "    switch (vectors) {", *cases, "    }", "    return {};", "}", "",
             "}  // namespace fornax::ggml_frontend", ""]
    OUTPUT.write_text("\n".join(text))


if __name__ == "__main__":
    main()
