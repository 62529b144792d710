"""PyTorch's Vulkan backend, which Debian's packages have: operators and MobileNetV2 of seeded weights, compared with its CPU
backend and timed on both. A run takes its input to the device and its result back."""

import warnings

import case_runner
import torch
from torch import nn
from torch.utils.mobile_optimizer import optimize_for_mobile
from torch_networks import MobileNet, convolution


def run_case(case, on_cpu, on_vulkan, tolerance):
    expected = on_cpu()
    right = case_runner.is_close(on_vulkan().numpy(), expected.numpy(), tolerance)
    case_runner.report(case, right=right, **case_runner.measured(on_vulkan), cpu_seconds=case_runner.measure(on_cpu))


def operators():
    """(name, function, inputs) of operators whose inputs all become tensors of the device."""
    wide, other = torch.randn(1, 32, 128, 128), torch.randn(1, 32, 128, 128)
    yield "add", lambda a, b: a + b, (wide, other)
    yield "mul, broadcast", lambda a, b: a * b, (wide, torch.randn(1, 32, 1, 1))
    yield "softmax", lambda a: torch.softmax(a, 1), (wide,)
    yield "mean", lambda a: torch.mean(a, (2, 3)), (wide,)
    yield "max pool", lambda a: nn.functional.max_pool2d(a, 2), (wide,)
    yield "upsample", lambda a: nn.functional.interpolate(a, scale_factor=2.0, mode="nearest"), (wide,)
    yield "permute", lambda a: a.permute(0, 2, 3, 1), (wide,)
    yield "matmul", torch.mm, (torch.randn(512, 512), torch.randn(512, 512))
    yield "gelu", lambda a: nn.functional.gelu(a, approximate="tanh"), (wide,)


def networks():
    """(name, module, input) of what is scripted and rewritten for the backend."""
    yield "convolution", convolution(64, 64, 3), torch.randn(1, 64, 56, 56)
    yield "depthwise", convolution(96, 96, 3, 2, 96), torch.randn(1, 96, 112, 112)
    yield "linear", nn.Linear(1280, 1000), torch.randn(1, 1280)
    yield "MobileNetV2", MobileNet(), torch.randn(1, 3, 224, 224)


def main():
    if not torch.is_vulkan_available():
        raise SystemExit("PyTorch finds no Vulkan device.")
    warnings.filterwarnings("ignore", category=FutureWarning)  # of torch.jit, which the backend needs
    torch.manual_seed(9)
    with torch.inference_mode():
        for case, function, inputs in operators():
            try:
                run_case(case, lambda: function(*inputs), lambda: function(*[i.to("vulkan") for i in inputs]).cpu(), 2e-3)
            except Exception as error:  # whatever a client raises is its answer
                case_runner.report_error(case, error)
        for case, module, x in networks():
            try:
                module = module.eval()
                scripted = optimize_for_mobile(torch.jit.trace(module, x), backend="Vulkan")
                run_case(case, lambda: module(x), lambda: scripted(x.to("vulkan")).cpu(), 2e-2)
            except Exception as error:  # whatever a client raises is its answer
                case_runner.report_error(case, error)


if __name__ == "__main__":
    main()
