"""IREE: networks of seeded weights, compiled for its Vulkan targets, beside what it compiles for the CPU and beside onnxruntime.

Usage: iree_cases.py FOLDER MODULES [--compile]

FOLDER has the networks that write_networks.py wrote; a ResNet-18 is made here. What IREE compiles is kept in MODULES; with --compile that is
all that happens, and a line says what IREE fails to compile.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import case_runner
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TITLES = {"resnet18": "ResNet-18", "minilm": "MiniLM", "vit_b16": "ViT-B/16", "bert_base": "BERT"}
CPU = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host")
TARGETS = ("rdna3", "ampere")  # what it makes for llvmpipe is wrong on every driver
STAGES = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
CLASSES = 1000
TOLERANCE = 1e-3  # of the largest value: sums of 3,072 products in another order, 12 layers deep


class Network:
    """Builds an ONNX model whose batch normalisations are folded away."""

    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes, self.weights = [], []

    def weight(self, values) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, operator: str, inputs: list[str], **attributes) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def convolution(self, x: str, channels: tuple[int, int], size: int, stride: int) -> str:
        before, after = channels
        weights = self.random.standard_normal((after, before, size, size)) / np.sqrt(before * size * size)
        return self.add("Conv", [x, self.weight(weights), self.weight(self.random.standard_normal(after) * 0.1)],
                        kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4)

    def block(self, x: str, channels: tuple[int, int], stride: int) -> str:
        after = channels[1]
        y = self.add("Relu", [self.convolution(x, channels, 3, stride)])
        y = self.convolution(y, (after, after), 3, 1)
        shortcut = x if stride == 1 and channels[0] == after else self.convolution(x, channels, 1, stride)
        return self.add("Relu", [self.add("Add", [y, shortcut])])


def resnet18() -> onnx.ModelProto:
    net = Network()
    x = net.add("Relu", [net.convolution("x", (3, 64), 7, 2)])
    x = net.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for after, stride in STAGES:
        x = net.block(x, (channels, after), stride)
        channels = after
    x = net.add("Flatten", [net.add("GlobalAveragePool", [x])])
    last = net.weight(net.random.standard_normal((CLASSES, channels)) * 0.05)
    net.add("Gemm", [x, last, net.weight(np.zeros(CLASSES))], transB=1)
    net.nodes[-1].output[0] = "y"
    graph = helper.make_graph(net.nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tool(name: str, arguments: list, **variables) -> str:
    """What a tool of IREE prints; its Python interface imports arrays as device memory, which have to begin at a page for that."""
    program = Path(sys.executable).with_name(name)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, **variables})
    if done.returncode:
        sys.stderr.write(done.stderr[-4000:])
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if "error:" in line), lines[-1] if lines else f"status {done.returncode}")
        raise RuntimeError(f"{name}: {reason[reason.find('error:'):] if 'error:' in reason else reason}")
    return done.stdout


class Case:
    """A network with its inputs, and what IREE compiles of it."""

    def __init__(self, path: Path, modules: Path):
        self.path, self.modules = path, modules
        self.title = TITLES.get(path.stem, path.stem)
        self.inputs = dict(np.load(path.with_suffix(".npz")))
        self.key = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        self.weights = modules / f"{path.stem}-{self.key}.irpa"

    def imported(self) -> Path:
        """The network for IREE's compiler. Its weights are a file of their own, which all targets share."""
        source = self.weights.with_suffix(".mlir")
        if not source.exists():
            fresh = source.with_suffix(".new.mlir")
            tool("iree-import-onnx", [self.path, "-o", fresh, "--externalize-params", f"--save-params-to={self.weights}"])
            fresh.rename(source)
        return source

    def compiled(self, flags: tuple[str, ...]) -> list[str]:
        """What the tools of the runtime are told of the network for a target."""
        module = self.modules / f"{self.path.stem}-{self.key}-{hashlib.sha256(' '.join(flags).encode()).hexdigest()[:16]}.vmfb"
        if not module.exists():
            fresh = module.with_suffix(".new")
            tool("iree-compile", [self.imported(), "-o", fresh, *flags])
            fresh.rename(module)
        return [f"--module={module}", f"--parameters=model={self.weights}", "--function=network",
                *(f"--input=@{file}" for file in self.input_files())]

    def input_files(self) -> list[Path]:
        files = []
        for name, array in self.inputs.items():
            files.append(self.path.with_name(f"{self.path.stem}.{name}.npy"))
            np.save(files[-1], array)
        return files

    def expected(self) -> list[np.ndarray]:
        return ort.InferenceSession(self.path, providers=["CPUExecutionProvider"]).run(None, self.inputs)

    def is_right(self, network: list[str], device: str, expected: list[np.ndarray]) -> bool:
        files = [self.path.with_name(f"{self.path.stem}.out{index}.npy") for index in range(len(expected))]
        tool("iree-run-module", [*network, f"--device={device}", *(f"--output=@{file}" for file in files)])
        return all(case_runner.is_close(np.load(file), values, TOLERANCE) for file, values in zip(files, expected, strict=True))


def seconds_of(network: list[str], device: str) -> float:
    seconds = 0.0
    # The first one fills the driver's cache with optimized kernels.
    for least, variables in ((case_runner.WARM_UP_SECONDS, {"FORNAX_TIER": "1"}), (case_runner.MEASURED_SECONDS, {})):
        answer = tool("iree-benchmark-module", [*network, f"--device={device}", f"--benchmark_min_time={least}s",
                                                "--benchmark_format=json", "--time_unit=ms"], **variables)
        seconds = json.loads(answer[answer.index("{"):])["benchmarks"][0]["real_time"] / 1e3
    return seconds


def compile_all(cases: list[Case]):
    for case in cases:
        for target in ("cpu", *TARGETS):
            try:
                case.compiled(flags_of(target))
            except RuntimeError as error:
                print(f"{case.title}, {target}: {error}", file=sys.stderr)


def flags_of(target: str) -> tuple[str, ...]:
    return CPU if target == "cpu" else ("--iree-hal-target-device=vulkan", f"--iree-vulkan-target={target}")


def run(case: Case):
    expected = case.expected()
    try:
        on_cpu = case.compiled(flags_of("cpu"))
        cpu = {"cpu_seconds": seconds_of(on_cpu, "local-task")} if case.is_right(on_cpu, "local-task", expected) else {}
    except RuntimeError as error:
        print(f"{case.title} on the CPU: {error}", file=sys.stderr)
        cpu = {}
    for target in TARGETS:
        title = f"{case.title}, {target}"
        try:
            network = case.compiled(flags_of(target))
            right = case.is_right(network, "vulkan", expected)
            case_runner.report(title, right=right, **cpu, seconds=seconds_of(network, "vulkan"))
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(title, error)


def main():
    folder, modules = Path(sys.argv[1]), Path(sys.argv[2])
    modules.mkdir(exist_ok=True)
    onnx.save(resnet18(), folder / "resnet18.onnx")
    np.savez(folder / "resnet18.npz", x=np.random.default_rng(2).standard_normal((1, 3, 224, 224)).astype(np.float32))
    cases = [Case(folder / f"{name}.onnx", modules) for name in TITLES]
    if "--compile" in sys.argv:
        compile_all(cases)
    else:
        for case in cases:
            run(case)


if __name__ == "__main__":
    main()
