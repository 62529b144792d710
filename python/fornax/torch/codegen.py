"""Graphs as programs in C: mode="codegen" of the backend, which hands files of graphs to `fornax compile --emit c`."""

import contextlib
import os
import subprocess

import torch

from .. import _driver
from . import capture


class NotWritten(Exception):
    """Why there is no program for a graph: a clause."""


def _open_sizes(writer, placeholders):
    """What has no fixed size: "s0 of x"."""
    found = {}
    for node in placeholders:
        value = capture.value_of(node)
        for size in value.shape if isinstance(value, torch.Tensor) else [value]:
            if isinstance(size, torch.SymInt):
                found.setdefault(str(size), node.name)
    found.update((str(symbol), "its inputs") for symbol in writer.open_symbols if str(symbol) not in found)
    return ", ".join(f"{size} of {name}" for size, name in found.items())


class Program:
    """A folder with a graph's program in C, its Makefile, and the graph's file.

    What the model changes is an input of the program, and its value after the run is an output.
    """

    def __init__(self, name, graph_module, weights, output_dir):
        self.name = name.replace(".", "_")
        self.folder = output_dir / self.name
        self._placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        writer = capture.Writer(graph_module, weights)
        sizes = _open_sizes(writer, self._placeholders)
        if sizes:
            raise NotWritten(f"it has open sizes ({sizes}) and programs in C have fixed ones, which "
                             "torch.compile(dynamic=False) gives")
        if any(capture.is_size(node) for node in writer.inputs):
            raise NotWritten("numbers with a fraction are inputs of it, and programs in C have tensors alone")
        self._inputs = [self._placeholders.index(node) for node in writer.inputs]
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.name}.fnx"
        with open(file, "wb") as opened:
            for part in writer.program.parts():
                opened.write(part)
        with contextlib.suppress(FileNotFoundError):
            self._inputs_file.unlink()  # of an earlier graph
        done = subprocess.run([_driver.COMMAND, "compile", file, "--emit", "c", "-o", self.folder, "--name", self.name],
                              capture_output=True, text=True, env=_driver.with_loader(dict(os.environ)))
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"the command ended with the status {done.returncode}"]
            raise NotWritten(lines[-1].removeprefix("fornax: ").rstrip("."))

    @property
    def _inputs_file(self):
        return self.folder / f"{self.name}_inputs.bin"

    def with_inputs(self, call):
        """Calls a graph, and keeps the inputs of the first call for the program to run with."""
        is_kept = False

        def run(arguments):
            nonlocal is_kept
            if not is_kept:
                is_kept = True
                with open(self._inputs_file, "wb") as file:
                    for place in self._inputs:
                        flat = arguments[place].detach().resolve_neg().contiguous().reshape(-1)
                        file.write(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
            return call(arguments)

        return run
