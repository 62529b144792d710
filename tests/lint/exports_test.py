"""Checks what the driver's library shows to the application it is loaded into. A test of ctest.

Usage: exports_test.py LIBRARY
It exports the loader's interface and nothing else (an application may carry another LLVM, fmt or xxhash,
whose symbols must not meet ours), and needs only the C and C++ libraries.
"""

import re
import subprocess
import sys

EXPORT = re.compile(r"vk_icd\w+")
REQUIRED = {"vk_icdNegotiateLoaderICDInterfaceVersion", "vk_icdGetInstanceProcAddr"}
NEEDED = re.compile(r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so\.\d+"
                    r"|lib(asan|tsan|ubsan|clang_rt)\S*")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    library = sys.argv[1]
    exports = {line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", library)}
    needed = [match.group(1) for line in lines("readelf", "-d", library)
              if (match := re.search(r"\(NEEDED\).*\[(.*)\]", line))]
    wrong = [f"exports {name}" for name in sorted(exports) if not EXPORT.fullmatch(name)]
    wrong += [f"does not export {name}" for name in sorted(REQUIRED - exports)]
    wrong += [f"needs the library {name}" for name in needed if not NEEDED.fullmatch(name)]
    if not needed:
        wrong.append("lists no needed library, so it was not read right")
    for message in wrong:
        print(f"{library} {message}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
