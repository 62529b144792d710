"""What tests of programs in C share: whether there is a toolchain for RISC-V and a machine to run on."""

import functools
import shutil
import subprocess

CROSS = "riscv64-unknown-elf-"
QEMU = "qemu-system-riscv64"


@functools.cache
def has_riscv():
    """Whether programs can be built for RISC-V and run; a compiler without its library is none."""
    if not shutil.which(CROSS + "gcc") or not shutil.which(QEMU):
        return False
    empty = subprocess.run([CROSS + "gcc", "--specs=picolibc.specs", "-E", "-include", "math.h", "-x", "c", "/dev/null"],
                           capture_output=True)
    return empty.returncode == 0


def missing_riscv():
    return f"RISC-V is left out: {CROSS}gcc with picolibc, or {QEMU}, is not there."
