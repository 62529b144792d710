"""The driver, the command and the libraries inside the package, and how the Vulkan loader finds them."""

from __future__ import annotations

import ctypes
import os
import pathlib
import platform
import threading
from typing import Dict, Optional

FOLDER = pathlib.Path(__file__).resolve().parent / "_native"
COMMAND = FOLDER / "bin" / "fornax"
MANIFEST = FOLDER / "share" / "vulkan" / "icd.d" / f"fornax_icd.{platform.machine()}.json"
LIBRARY = FOLDER / "lib" / "libvulkan_fornax.so"
# For machines without one.
LOADER = FOLDER / "loader" / "libvulkan.so.1"

_mutex = threading.Lock()
_is_selected = False


def _has_loader() -> bool:
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return False
    return True


def select() -> None:
    """Lets the Vulkan loader of this process see the driver of the package, beside the machine's own.

    Where the user has chosen drivers (VK_DRIVER_FILES or VK_ICD_FILENAMES), those are all.
    """
    global _is_selected
    with _mutex:
        if _is_selected:
            return
        chosen = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
        if not any(os.environ.get(name) for name in chosen):
            for name in chosen:
                os.environ.pop(name, None)  # to the loader an empty list means that there is no driver
            added = os.environ.get("VK_ADD_DRIVER_FILES", "").split(":")
            if str(MANIFEST) not in added:
                os.environ["VK_ADD_DRIVER_FILES"] = ":".join([str(MANIFEST)] + [path for path in added if path])
        if not _has_loader() and LOADER.exists():
            # By its name, libfornax.so finds the one that is there already.
            ctypes.CDLL(str(LOADER), mode=ctypes.RTLD_GLOBAL)
        _is_selected = True


def library() -> Optional[str]:
    """The driver's library, for the Vulkan loader to load it and no other; None where the user chooses drivers."""
    chosen = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE")
    return None if any(os.environ.get(name) for name in chosen) or not LIBRARY.exists() else str(LIBRARY)


def environment() -> Dict[str, str]:
    """The environment for a program that is to run on the device and on no other."""
    made = dict(os.environ)
    made["VK_DRIVER_FILES"] = made["VK_ICD_FILENAMES"] = str(MANIFEST)
    for name in ("VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"):
        made.pop(name, None)
    return with_loader(made)


def with_loader(made: Dict[str, str]) -> Dict[str, str]:
    if not _has_loader() and LOADER.exists():
        paths = [str(LOADER.parent)] + [path for path in made.get("LD_LIBRARY_PATH", "").split(":") if path]
        made["LD_LIBRARY_PATH"] = ":".join(paths)
    return made
