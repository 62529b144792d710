"""The versions of the package and of the library in it."""

from __future__ import annotations

from typing import Tuple

from . import _core

__version__ = "0.1.0"


def version() -> Tuple[int, int]:
    """(major, minor) of libfornax.so's C interface, fornax.h."""
    number = _core.version()
    return number // 1000, number % 1000
