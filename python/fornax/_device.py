"""What models can run on."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

from . import _core, _driver
from . import _types as _types  # which configures _core

_KINDS = ("other", "integrated", "discrete", "virtual", "cpu")


class Device(NamedTuple):
    """A Vulkan device. `fornax.load(device=index)`, or a part of its name, chooses it."""

    index: int  #: in the Vulkan loader's list
    name: str
    kind: str  #: "integrated", "discrete", "virtual", "cpu" or "other"
    vulkan: Tuple[int, int]  #: (major, minor) of the version that it implements; models need (1, 2)
    memory_bytes: int  #: of its largest heap
    is_fornax: bool


def devices() -> List[Device]:
    """The Vulkan devices of this machine with that of Fornax, in the loader's order.

    Raises fornax.Error (NOT_FOUND) where there is no Vulkan loader or no driver.
    """
    _driver.select()
    return [Device(index, name, _KINDS[kind] if kind < len(_KINDS) else "other", vulkan, size, name.startswith("Fornax"))
            for index, (name, kind, vulkan, size) in enumerate(_core.devices())]
