"""fornax.torch.explain(model, args): what became of a model, as text and as a page."""

import collections
import pathlib
import statistics
import warnings

import torch

from . import capture, page, reports
from .backend import Backend


class Graph:
    """A graph that torch handed over.

    name, nodes (rows of name, operator, type, what it reads, source line), fallbacks (node, operator, source line, reason
    of what torch runs), report (see fornax.Session.report(); None where torch runs all of it), times (a list of
    nanoseconds for each step of the report, one of each run).
    """

    def __init__(self, name, graph_module, problems):
        self.name = name
        self.nodes = reports.nodes(graph_module)
        self.fallbacks = [(node.name, capture.target_name(node), capture.source_line(node), reason)
                          for node, reason in problems.items()]
        self.report = None
        self.times = []

    def add(self, report):
        """A run's report. Runs with other sizes begin anew."""
        if self.report is None or self.report["sizes"] != report["sizes"] or self.report["plan"] != report["plan"]:
            self.times = [[] for _ in report["steps"]]
        self.report = report
        for time in report["times"]:
            self.times[time["step"]].append(time["nanoseconds"])

    def median_ns(self, step):
        """The median time of a step; None where it was not measured."""
        return statistics.median(self.times[step]) if self.times[step] else None

    def kernel_of(self):
        """{node: number of the step that computes it}, of nodes that are computed on the device."""
        steps = {step["name"]: i for i, step in enumerate(self.report["steps"])}
        found = {}
        for boundary in self.report["boundaries"]:
            if boundary["node"] in steps:
                found.update((node, steps[boundary["node"]]) for node in boundary["nodes"])
        found.update((name, step) for name, step in steps.items() if name not in found)
        return found

    def steps(self):
        """A row for each step: number, kind, nanoseconds, operations, bytes, nodes that it computes."""
        nodes = collections.defaultdict(list)
        for name, step in self.kernel_of().items():
            nodes[step].append(name)
        rows = []
        for i, step in enumerate(self.report["steps"]):
            kind = "host" if step["kernel"] is None else self.report["kernels"][step["kernel"]]["kind"]
            parts = (step["bytes_read"], step["bytes_written"])
            rows.append((i, kind, self.median_ns(i), step["operations"], None if None in parts else sum(parts),
                         nodes[i] or [step["name"]]))
        return rows

    def _kernels(self):
        total = sum(row[2] or 0 for row in self.steps()) or 1
        rows = []
        for i, kind, time, operations, size, nodes in self.steps():
            rate = size / time if time and size is not None else None
            rows.append((i, kind, "" if time is None else f"{time / 1e3:.1f}",
                         "" if time is None else f"{100 * time / total:.1f}", reports.count(operations),
                         reports.count(size), "" if rate is None else f"{rate:.1f}", ", ".join(nodes)))
        return reports.table(("step", "kind", "us", "%", "operations", "bytes", "GB/s", "nodes"), rows)

    def __str__(self):
        parts = [f"{self.name}: {len(self.nodes)} nodes\n", "\nBefore fusion\n",
                 reports.table(("node", "operator", "type", "reads", "line"), self.nodes)]
        if self.fallbacks:
            parts += ["\nIn torch\n", reports.table(("node", "operator", "line", "because"), self.fallbacks)]
        if self.report is not None:
            parts += [f"\nKernels on {self.report['device']}, medians of {max(map(len, self.times), default=0)} runs\n",
                      self._kernels(), "\nValues in memory between kernels\n", reports.boundary_text(self.report),
                      "\nMemory\n", reports.memory_text(self.report)]
        return "".join(parts)


class Explanation:
    """What became of a model: str() of it is text, `html` a page that needs no other file; notebooks show that."""

    def __init__(self, title, graphs):
        self.title = title
        self.graphs = graphs

    @property
    def html(self):
        return page.html(self)

    _repr_html_ = html.fget

    def save(self, path):
        """Writes the page, or the text where the name ends in .txt. Returns the path."""
        path = pathlib.Path(path)
        path.write_text(str(self) if path.suffix == ".txt" else self.html, encoding="utf-8")
        return path

    def __str__(self):
        return f"{self.title}\n\n" + "\n".join(map(str, self.graphs))


def explain(model, args=(), kwargs=None, *, runs=5, dynamic=None, path=None, **options):
    """What Fornax makes of a model (a module or a function) with these arguments.

    The model is compiled and runs `runs` times: graphs before and after fusion, kernels with their times, where memory lies
    and when, and what runs in torch and why. `options` are those of Backend, `dynamic` is that of torch.compile; `path` is
    a file to write, a page or text (.txt). Gradients are off; what torch.compile has compiled elsewhere stays.

    Returns an Explanation.
    """
    seen = collections.defaultdict(list)
    backend = Backend(observe=lambda name, _, report: seen[name].append(report), **options)

    def run(*given, **named):
        return model(*given, **named)

    # torch keeps what it compiled by code objects, and only so many for each.
    run.__code__ = run.__code__.replace()
    compiled = torch.compile(run, backend=backend, dynamic=dynamic)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what runs in torch is in the explanation
        for _ in range(max(runs, 1)):
            compiled(*args, **(kwargs or {}))
    graphs = []
    for name, graph_module, problems in backend.graphs:
        graphs.append(Graph(name, graph_module, problems))
        for report in seen[name]:
            graphs[-1].add(report)
    title = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "function")
    explanation = Explanation(title, graphs)
    if path is not None:
        explanation.save(path)
    return explanation
