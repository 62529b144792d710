"""Products of matrices of every kind through torch.compile, and how fast they are beside torch's.

    python examples/matmul_demo.py
"""

import statistics
import time

import torch

import fornax.torch


def cases():
    yield "matmul", torch.matmul, (torch.randn(256, 384), torch.randn(384, 192))
    yield "mm", torch.mm, (torch.randn(64, 32), torch.randn(32, 16))
    yield "bmm", torch.bmm, (torch.randn(8, 48, 64), torch.randn(8, 64, 32))
    yield "matmul of a vector", torch.matmul, (torch.randn(384), torch.randn(384, 192))
    yield "broadcast", torch.matmul, (torch.randn(3, 1, 32, 64), torch.randn(5, 64, 16))
    yield "linear", torch.nn.functional.linear, (torch.randn(32, 128), torch.randn(64, 128), torch.randn(64))
    yield "bf16", torch.mm, (torch.randn(256, 256).bfloat16(), torch.randn(256, 256).bfloat16())


def median_us(call, inputs):
    times = []
    for _ in range(30):
        begin = time.perf_counter_ns()
        call(*inputs)
        times.append((time.perf_counter_ns() - begin) / 1e3)
    return statistics.median(times)


def main():
    torch.manual_seed(0)
    with torch.no_grad():
        for name, function, inputs in cases():
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=fornax.torch.Backend(strict=True))
            result, expected = compiled(*inputs), function(*inputs)
            difference = ((result - expected).float().norm() / expected.float().norm()).item()
            shapes = " x ".join(str(list(tensor.shape)) for tensor in inputs)
            print(f"{name}: {shapes} -> {list(result.shape)}, difference {difference:.1e}, "
                  f"{median_us(compiled, inputs):.0f} us, torch {median_us(function, inputs):.0f} us")


if __name__ == "__main__":
    main()
