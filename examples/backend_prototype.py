"""A backend in small: a registry of operators, segments, a linear program, a file of it, and another process that runs it.

    python examples/backend_prototype.py [FILE]
    python examples/backend_prototype.py --run FILE        what the first one starts as the other process

fornax.torch.Backend does this for every operator; here it can be read in one go. Operators of the registry run on Fornax in
segments, whose files are the ones of fornax.torch.export, and all others in torch.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

import fornax

REGISTRY = {"aten.matmul.default", "aten.relu.default", "aten.softmax.int", "aten._softmax.default", "aten.add.Tensor",
            "aten.sub.Tensor", "aten.mul.Tensor", "aten.transpose.int"}
MAGIC, VERSION = b"PROTOTYP", 1
HEADER = struct.Struct("<8sII")


# --- Compiling: needs torch ----------------------------------------------------------------------


def report(exported):
    """Prints which operators are supported."""
    calls = [node for node in exported.graph.nodes if node.op == "call_function"]
    for node in calls:
        print(f"  {str(node.target):24} {'supported' if str(node.target) in REGISTRY else 'fallback'}")
    supported = sum(str(node.target) in REGISTRY for node in calls)
    print(f"  total: {supported} supported, {len(calls) - supported} fallback")
    return calls


def segments_of(calls):
    """Neighbours of a kind: [(is on the accelerator, nodes)]."""
    found = []
    for node in calls:
        on_accelerator = str(node.target) in REGISTRY
        if not found or found[-1][0] != on_accelerator:
            found.append((on_accelerator, []))
        found[-1][1].append(node)
    for number, (on_accelerator, nodes) in enumerate(found):
        print(f"Segment {number}: {'accelerator' if on_accelerator else 'torch'} ({len(nodes)} ops)")
    return found


def segment_file(nodes, path):
    """Writes the file of a segment; the names of what it reads and of what is read of it."""
    import torch

    import fornax.torch

    graph, copies = torch.fx.Graph(), {}
    reads = list(dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in nodes))
    for node in reads:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    gives = [node for node in nodes if any(user not in nodes for user in node.users)]
    graph.output(tuple(copies[node] for node in gives))
    values = tuple(torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype) for node in reads)
    fornax.torch.export(torch.fx.GraphModule(torch.nn.Module(), graph), values, path)
    return [node.name for node in reads], [node.name for node in gives]


def encoded(value):
    """An argument: a node by its name, or a literal."""
    import torch

    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        return {"list": [encoded(item) for item in value]}
    return {"literal": value}


def compile_program(model, inputs):
    """The bytes of a program: instructions as JSON, and a file for each segment of the accelerator."""
    import torch

    exported = torch.export.export(model, inputs)
    calls = report(exported)
    print(f"Compiling graph -> {len(calls)} call_function nodes")
    segments = segments_of(calls)
    program = [{"op": "input", "name": node.name} for node in exported.graph.nodes if node.op == "placeholder"]
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (on_accelerator, nodes) in enumerate(segments):
            path, reads, gives = pathlib.Path(folder) / "segment.fnx", [], []
            if on_accelerator:
                reads, gives = segment_file(nodes, path)
            parts.append({"reads": reads, "gives": gives, "file": path.read_bytes() if on_accelerator else b""})
            program += [{"op": str(node.target), "name": node.name, "args": [encoded(value) for value in node.args],
                         "kwargs": {key: encoded(value) for key, value in node.kwargs.items()},
                         "supported": on_accelerator, "segment": number, "shape": list(node.meta["val"].shape)}
                        for node in nodes]
    output = next(node for node in exported.graph.nodes if node.op == "output")
    program.append({"op": "output", "args": [encoded(value) for value in output.args[0]]})
    print(f"Program length: {len(program)}")
    text = json.dumps({"program": program, "segments": [
        {"reads": part["reads"], "gives": part["gives"], "size": len(part["file"])} for part in parts]}).encode()
    blob = HEADER.pack(MAGIC, VERSION, len(text)) + text + b"".join(part["file"] for part in parts)
    print(f"Blob: {len(blob)} bytes")
    return blob


# --- Running: needs neither the graph nor, without fallbacks, torch ------------------------------


class Program:
    """A blob that is loaded. Calls take and give arrays of numpy; what was compiled for one serves the next."""

    def __init__(self, blob):
        magic, version, size = HEADER.unpack_from(blob)
        if magic != MAGIC or version != VERSION:
            raise ValueError(f"The blob is no program of version {VERSION}.")
        described = json.loads(blob[HEADER.size:HEADER.size + size])
        self.instructions, self._segments = described["program"], described["segments"]
        self.loaded = 0
        at = HEADER.size + size
        for segment in self._segments:
            if segment["size"]:
                segment["session"] = fornax.load(blob[at:at + segment["size"]])
                self.loaded += 1
            at += segment["size"]

    def __call__(self, *inputs):
        print("=== executing ===")
        values, given, done = {}, iter(inputs), set()
        for instruction in self.instructions:
            if instruction["op"] == "input":
                values[instruction["name"]] = next(given)
            elif instruction["op"] == "output":
                results = tuple(self._value(argument, values) for argument in instruction["args"])
                return results[0] if len(results) == 1 else results
            else:
                self._log(instruction, values)
                if not instruction["supported"]:
                    values[instruction["name"]] = self._in_torch(instruction, values)
                elif instruction["segment"] not in done:
                    done.add(instruction["segment"])
                    segment = self._segments[instruction["segment"]]
                    results = segment["session"](*(values[name] for name in segment["reads"]))
                    values.update(zip(segment["gives"], results if isinstance(results, tuple) else (results,)))
        raise ValueError("The program has no output.")

    def _value(self, argument, values):
        if "list" in argument:
            return [self._value(item, values) for item in argument["list"]]
        return values[argument["node"]] if "node" in argument else argument["literal"]

    def _log(self, instruction, values):
        # Values inside of a segment are nowhere but on the device.
        shapes = [str(list(values[a["node"]].shape)) if a["node"] in values else a["node"]
                  for a in instruction["args"] if "node" in a]
        literals = "".join(f", dim {a['literal']}" for a in instruction["args"] if isinstance(a.get("literal"), int))
        where = "accelerator" if instruction["supported"] else "torch"
        print(f"  [{where}] {instruction['op']} {' x '.join(shapes)} -> {instruction['shape']}{literals}")

    def _in_torch(self, instruction, values):
        import torch

        _, name, overload = instruction["op"].split(".")
        function = getattr(getattr(torch.ops.aten, name), overload)
        tensor = lambda value: torch.from_numpy(value) if isinstance(value, np.ndarray) else value  # noqa: E731
        args = [tensor(self._value(argument, values)) for argument in instruction["args"]]
        named = {key: tensor(self._value(argument, values)) for key, argument in instruction["kwargs"].items()}
        return function(*args, **named).numpy()


def run_file(path):
    """The other process: inputs and outputs are files beside the program."""
    folder = pathlib.Path(path).parent
    with np.load(folder / "inputs.npz") as arrays:
        np.save(folder / "output.npy", Program(pathlib.Path(path).read_bytes())(*arrays.values()))
    print("torch is loaded:", "torch" in sys.modules)


def main(path):
    import torch

    class Supported(torch.nn.Module):
        def forward(self, x, weight):
            return torch.softmax(torch.relu(x) @ weight, dim=-1)

    class Mixed(torch.nn.Module):
        def forward(self, x, weight):
            scores = torch.relu(x @ weight)
            return torch.softmax(torch.cumsum(scores, dim=-1) * 0.5 - scores, dim=-1)

    torch.manual_seed(0)
    for model in (Supported(), Mixed()):
        print(f"\n{type(model).__name__}")
        inputs = torch.randn(4, 8), torch.randn(8, 16)
        path.write_bytes(compile_program(model, inputs))
        program = Program(path.read_bytes())
        for call in ("first", "second"):
            result = program(*(tensor.numpy() for tensor in inputs))
            np.testing.assert_allclose(result, model(*inputs).numpy(), rtol=1e-4, atol=1e-5)
            print(f"{call} call: shape {list(result.shape)}, sum {result.sum():.4f}, segments loaded: {program.loaded}")
            np.savez(path.parent / "inputs.npz", *(tensor.numpy() for tensor in inputs))
            inputs = torch.randn(4, 8), inputs[1]
        print("In another process")
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "--run", path], check=True)
        print("equal bits there:", bool((np.load(path.parent / "output.npy") == result).all()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_file(sys.argv[2])
    elif len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(pathlib.Path(scratch) / "program.blob")
