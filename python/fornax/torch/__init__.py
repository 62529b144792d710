"""PyTorch on Fornax: torch.compile(model, backend="fornax"), and torch.export to files that run without torch."""

from .backend import Backend, UnsupportedGraph, fornax
from .compiled import Compiled
from .exported import export

__all__ = ["Backend", "Compiled", "UnsupportedGraph", "export", "fornax"]
