"""Checks what the driver's libraries show to the application they are loaded into. A test of ctest.

Usage: exports_test.py LIBRARY COMPILER_LIBRARY
The driver exports the loader's interface, the compiler its one function, and nothing else (an application may
carry another LLVM, fmt or xxhash, whose symbols must not meet ours); both need only the C and C++ libraries.
The driver holds nothing of LLVM but its list of processors, or starting it would become slow again.
Neither is ever unloaded (NODELETE): threads of devices that a program did not destroy would lose their code.
"""

import re
import subprocess
import sys

DRIVER_EXPORT = re.compile(r"vk_icd\w+")
DRIVER_REQUIRED = {"vk_icdNegotiateLoaderICDInterfaceVersion", "vk_icdGetInstanceProcAddr"}
COMPILER_FUNCTION = "fornax_open_kernel_backend"
MAX_DRIVER_BYTES = 8 << 20
NEEDED = re.compile(r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so\.\d+"
                    r"|lib(asan|tsan|ubsan|clang_rt)\S*")


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def check(library, export, required):
    dynamic = lines("readelf", "--wide", "-d", library)
    exports = {line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", library)}
    needed = [match.group(1) for line in dynamic
              if (match := re.search(r"\(NEEDED\).*\[(.*)\]", line))]
    wrong = [f"exports {name}" for name in sorted(exports) if not export.fullmatch(name)]
    wrong += [f"does not export {name}" for name in sorted(required - exports)]
    wrong += [f"needs the library {name}" for name in needed if not NEEDED.fullmatch(name)]
    if not needed:
        wrong.append("lists no needed library, so it was not read right")
    if not any(re.search(r"\(FLAGS_1\).*\bNODELETE\b", line) for line in dynamic):
        wrong.append("may be unloaded: it was linked without -z nodelete")
    return [f"{library} {message}" for message in wrong]


def main():
    driver, compiler = sys.argv[1:3]
    wrong = check(driver, DRIVER_EXPORT, DRIVER_REQUIRED)
    wrong += check(compiler, re.compile(COMPILER_FUNCTION), {COMPILER_FUNCTION})
    loaded = int(lines("size", driver)[1].split()[3])
    if loaded > MAX_DRIVER_BYTES:
        wrong.append(f"{driver} loads {loaded} bytes, and the limit is {MAX_DRIVER_BYTES}: what brings LLVM in?")
    for message in wrong:
        print(message)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
