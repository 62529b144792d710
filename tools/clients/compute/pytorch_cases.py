"""PyTorch's Vulkan backend, which Debian's packages have: operators and MobileNetV2 of seeded weights, compared with its CPU
backend and timed on both. A run takes its input to the device and its result back."""

import warnings

import case_runner
import torch
from torch import nn
from torch.utils.mobile_optimizer import optimize_for_mobile

# Expansion, channels, blocks, stride of the first block.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolution(before, after, size, stride=1, groups=1, activated=True):
    layer = nn.Conv2d(before, after, size, stride, size // 2, groups=groups)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.normal_(layer.bias, std=0.1)
    return nn.Sequential(layer, nn.ReLU6()) if activated else layer


class Block(nn.Module):
    def __init__(self, before, after, expansion, stride):
        super().__init__()
        hidden = before * expansion
        first = [convolution(before, hidden, 1)] if expansion != 1 else []
        self.layers = nn.Sequential(*first, convolution(hidden, hidden, 3, stride, hidden), convolution(hidden, after, 1, activated=False))
        self.residual = stride == 1 and before == after

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.residual else y


class MobileNet(nn.Module):
    """MobileNetV2 whose batch normalisations are folded away."""

    def __init__(self):
        super().__init__()
        layers, channels = [convolution(3, 32, 3, 2)], 32
        for expansion, after, blocks, stride in STAGES:
            for i in range(blocks):
                layers.append(Block(channels, after, expansion, stride if i == 0 else 1))
                channels = after
        self.features = nn.Sequential(*layers, convolution(channels, 1280, 1))
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(nn.functional.adaptive_avg_pool2d(x, 1).reshape(x.shape[0], -1))


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
