"""Graphs before they are written: without complex numbers and without checks, which are made around a run."""

import math

import torch
import torch.fx.graph

from . import capture, complex_numbers
from .sizes import Unsupported

# Python writes a complex number without a value as names that it does not know, and so does the code of FX graphs.
_register = getattr(torch.fx.graph, "_register_custom_builtin", None)  # not in every version of torch
for _name in ("inf", "nan") if _register else ():
    _register(f"{_name}j", f"{_name}j = complex(0, float('{_name}'))", complex(0, getattr(math, _name)))

_CHECK = torch.ops.aten._linalg_check_errors.default


class _Checked:
    """Calls a graph that gives what is checked behind its own results, and checks it in torch."""

    def __init__(self, run, checks, tokens):
        self._run, self._checks, self._tokens = run, checks, tokens

    def __call__(self, *arguments):
        results = list(self._run(*(value for place, value in enumerate(arguments) if place not in self._tokens)))
        own = len(results) - len(self._checks)
        for info, (name, is_matrix) in zip(results[own:], self._checks):
            _CHECK(info, name, is_matrix=is_matrix)
        return results[:own]


def without_checks(graph_module):
    """The checks of factorisations as (name, is_matrix), and the places of arguments that only order them.

    What is checked is given behind the graph's own results.
    """
    graph = graph_module.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    tokens = set()
    output = next(node for node in graph.nodes if node.op == "output")
    checks, infos = [], []
    if not isinstance(output.args[0], (list, tuple)):
        return checks, tokens
    for node in list(graph.nodes):
        if node.target is _CHECK:
            info, name = node.args[:2]
        elif capture.target_name(node) == "with_effects" and node.args[1] is _CHECK:
            info, name = node.args[2:4]
            # The token that says which effect comes first is the one before.
            if node.args[0] in placeholders:
                tokens.add(node.args[0])
            for user in list(node.users):
                user.replace_all_uses_with(node.args[0])
                graph.erase_node(user)
        else:
            continue
        checks.append((name, node.kwargs["is_matrix"]))
        infos.append(info)
        graph.erase_node(node)
    if checks:
        output.args = ((*(None if value in tokens else value for value in output.args[0]), *infos),)
        places = {place for place, node in enumerate(placeholders) if node in tokens and not node.users}
        for place in places:
            graph.erase_node(placeholders[place])
        graph.lint()
        graph_module.recompile()
        return checks, places
    return checks, tokens


def is_plain(graph_module):
    """Whether `prepare()` leaves a graph as it is."""
    return not complex_numbers.has_complex(graph_module) and not any(
        node.target is _CHECK or capture.target_name(node) == "with_effects" for node in graph_module.graph.nodes)


def prepare(graph_module):
    """The graph to compile, and what makes of a callable for it one for the graph as it was."""
    checks, tokens = without_checks(graph_module)
    split = None
    if complex_numbers.has_complex(graph_module):
        try:
            split = complex_numbers.split(graph_module)
        except Unsupported:
            pass  # Each operator is refused by its own reason.

    def wrap(run):
        if split is not None:
            split.run = run
            run = split
        return _Checked(run, checks, tokens) if checks else run

    return (graph_module if split is None else split.module), wrap
