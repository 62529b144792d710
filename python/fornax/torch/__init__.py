"""PyTorch on Fornax: torch.compile(model, backend="fornax"), and torch.export to files that run without torch."""

from .backend import Backend, UnsupportedGraph, fornax
from .compiled import Compiled
from .explain import Explanation, explain
from .exported import export

__all__ = ["Backend", "Compiled", "Explanation", "UnsupportedGraph", "explain", "export", "fornax"]
