"""ExecuTorch's Vulkan delegate: programs that the package's compiler lowers to it, of operators, MobileNetV2 and a block of a transformer
with seeded weights, compared with eager PyTorch and timed beside ExecuTorch's XNNPACK delegate. A run takes its inputs to the device and
its results back.

Usage: executorch_cases.py PROGRAMS [--lower]

Lowered programs are kept in PROGRAMS; with --lower that is all that happens. The package on PyPI has the compiler of the Vulkan delegate but
not the delegate: FORNAX_EXECUTORCH_VULKAN names a library that registers it with the package's libexecutorch.so.
"""

import ctypes
import hashlib
import os
import sys
from pathlib import Path

import case_runner
import torch
from executorch.runtime import Runtime
from torch import nn
from torch_networks import MobileNet, TransformerBlock, convolution

DELEGATE = "VulkanBackend"


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def cases():
    """(name, module, inputs, the partitioner's options, tolerance)."""
    wide, other = torch.randn(1, 32, 128, 128), torch.randn(1, 32, 128, 128)
    halves = {"force_fp16": True}
    yield "add", Function(torch.add), (wide, other), {}, 0
    yield "softmax", Function(lambda a: torch.softmax(a, -1)), (wide,), {}, 1e-4
    yield "layer norm", nn.LayerNorm(256), (torch.randn(1, 512, 256),), {}, 1e-3
    yield "matmul", Function(torch.matmul), (torch.randn(512, 512), torch.randn(512, 512)), {}, 1e-3
    yield "convolution", convolution(64, 64, 3), (torch.randn(1, 64, 56, 56),), {}, 1e-3
    yield "depthwise", convolution(96, 96, 3, 2, 96), (torch.randn(1, 96, 112, 112),), {}, 1e-3
    yield "linear", nn.Linear(1280, 1000), (torch.randn(1, 1280),), {}, 1e-3
    yield "MobileNetV2", MobileNet(), (torch.randn(1, 3, 224, 224),), {}, 1e-3
    yield "MobileNetV2, f16", MobileNet(), (torch.randn(1, 3, 224, 224),), halves, 3e-2
    yield "transformer", TransformerBlock(256, 4), (torch.randn(1, 128, 256),), {}, 1e-3
    yield "transformer, f16", TransformerBlock(256, 4), (torch.randn(1, 128, 256),), halves, 3e-2


def lowered(module, inputs, partitioner):
    from executorch.exir import to_edge_transform_and_lower  # takes seconds, and only --lower needs it

    return to_edge_transform_and_lower(torch.export.export(module, inputs), partitioner=[partitioner]).to_executorch()


def is_delegated(program) -> bool:
    """Whether the program is one call of the Vulkan delegate."""
    plan = program.executorch_program.execution_plan[0]
    return [delegate.id for delegate in plan.delegates] == [DELEGATE] and not plan.operators


def lower(case, module, inputs, options, tolerance) -> dict:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    module = module.eval()
    program = lowered(module, inputs, VulkanPartitioner(options))
    if not is_delegated(program):
        raise RuntimeError(f"{case}: the partitioner leaves operators to the CPU.")
    return {"inputs": inputs, "expected": module(*inputs), "tolerance": tolerance, "vulkan": program.buffer,
            "cpu": lowered(module, inputs, XnnpackPartitioner()).buffer}


def lower_all(folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(9)
    for case, *rest in cases():
        file = folder / f"{case}.pt"
        if not file.exists():
            torch.save(lower(case, *rest), file.with_suffix(".new"))
            file.with_suffix(".new").rename(file)


def runner(program: bytes, inputs):
    """A function that runs the program and returns its first result."""
    loaded = Runtime.get().load_program(program)
    method = loaded.load_method("forward")
    return lambda program=loaded: method.execute(inputs)[0]  # a method needs its program


def run_case(case, file):
    lowered_case = torch.load(file, weights_only=True)
    inputs = lowered_case["inputs"]
    run, on_cpu = runner(lowered_case["vulkan"], inputs), runner(lowered_case["cpu"], inputs)
    right = case_runner.is_close(run().numpy(), lowered_case["expected"].numpy(), lowered_case["tolerance"])
    case_runner.report(case, right=right, **case_runner.measured(run), cpu_seconds=case_runner.measure(on_cpu))


def main():
    sources = (Path(__file__), Path(__file__).with_name("torch_networks.py"))
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = Path(sys.argv[1]) / key
    with torch.no_grad():
        if "--lower" in sys.argv:
            lower_all(folder)
            return
        ctypes.CDLL(os.environ["FORNAX_EXECUTORCH_VULKAN"])
        if not Runtime.get().backend_registry.is_available(DELEGATE):
            raise SystemExit("The library registers no delegate for Vulkan with the package's runtime.")
        for case, *_ in cases():
            try:
                run_case(case, folder / f"{case}.pt")
            except Exception as error:  # whatever a client raises is its answer
                case_runner.report_error(case, error)


if __name__ == "__main__":
    main()
