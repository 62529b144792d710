"""Writes a SPIR-V binary as a C++ header. Called by fornax_embed_spirv (FornaxShaders.cmake).

Usage: embed_spirv.py BINARY STEM HEADER
The array is named after the stem: mat_mul becomes kMatMul.
"""

import re
import struct
import sys

SPIRV_MAGIC = 0x07230203
WORDS_PER_LINE = 8


def array_name(stem):
    return "k" + "".join(part[:1].upper() + part[1:] for part in re.split(r"[_.\-]+", stem))


def header(words, stem):
    lines = [
        f"// The SPIR-V binary of {stem}. Generated in the build; do not edit.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace fornax::spirv {",
        "",
        # Not inline: two folders may have shaders of one name, and the linker would keep one array of two.
        f"constexpr std::uint32_t {array_name(stem)}[] = {{",
    ]
    for start in range(0, len(words), WORDS_PER_LINE):
        lines.append("    " + ", ".join(f"0x{w:08x}" for w in words[start : start + WORDS_PER_LINE]) + ",")
    lines += ["};", "", "}  // namespace fornax::spirv", ""]
    return "\n".join(lines)


def main():
    binary, stem, output = sys.argv[1:]
    with open(binary, "rb") as file:
        data = file.read()
    if len(data) % 4 != 0 or len(data) < 20:
        sys.exit(f"{binary}: {len(data)} bytes is not a whole SPIR-V module")
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if words[0] != SPIRV_MAGIC:
        sys.exit(f"{binary}: starts with 0x{words[0]:08x}, not with SPIR-V's magic number")
    with open(output, "w", encoding="utf-8") as file:
        file.write(header(words, stem))


if __name__ == "__main__":
    main()
