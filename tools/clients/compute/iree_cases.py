"""IREE: a ResNet-18 of seeded weights, compiled for its Vulkan targets, beside what it compiles for the CPU."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import case_runner
import iree.compiler as compiler
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGETS = ("rdna3", "ampere")  # what it makes for llvmpipe is wrong on every driver
STAGES = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
CLASSES = 1000


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


def compiled(source: Path, name: str, arguments: list[str]) -> list[str]:
    """What the tools of the runtime are told of the network for a target."""
    module = source.with_name(f"{name}.vmfb")
    compiler.compile_file(str(source), output_file=str(module), extra_args=arguments)
    return [f"--module={module}", "--function=network", f"--input=@{source.with_name('x.npy')}"]


def tool(name: str, arguments: list[str]) -> str:
    # Its Python interface imports arrays as device memory, which have to begin at a page for that.
    program = Path(sys.executable).with_name(name)
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout


def result_of(network: list[str], device: str, folder: Path) -> np.ndarray:
    tool("iree-run-module", [*network, f"--device={device}", f"--output=@{folder / 'y.npy'}"])
    return np.load(folder / "y.npy")


def seconds_of(network: list[str], device: str) -> float:
    seconds = 0.0
    for least in (case_runner.WARM_UP_SECONDS, case_runner.MEASURED_SECONDS):  # the second one finds compiled kernels
        answer = tool("iree-benchmark-module", [*network, f"--device={device}", f"--benchmark_min_time={least}s",
                                                "--benchmark_format=json", "--time_unit=ms"])
        seconds = json.loads(answer[answer.index("{"):])["benchmarks"][0]["real_time"] / 1e3
    return seconds


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(resnet18(), folder / "network.onnx")
        source = folder / "network.mlir"
        subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", folder / "network.onnx", "-o", source], check=True)
        np.save(folder / "x.npy", np.random.default_rng(2).standard_normal((1, 3, 224, 224)).astype(np.float32))
        on_cpu = compiled(source, "cpu", ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
                                          "--iree-llvmcpu-target-cpu=host"])
        expected = result_of(on_cpu, "local-task", folder)
        cpu_seconds = seconds_of(on_cpu, "local-task")
        for target in TARGETS:
            case = f"ResNet-18, {target}"
            try:
                network = compiled(source, target, ["--iree-hal-target-device=vulkan", f"--iree-vulkan-target={target}"])
                right = case_runner.is_close(result_of(network, "vulkan", folder), expected, 1e-4)
                case_runner.report(case, right=right, cpu_seconds=cpu_seconds, seconds=seconds_of(network, "vulkan"))
            except Exception as error:  # whatever a client raises is its answer
                case_runner.report_error(case, error)


if __name__ == "__main__":
    main()
