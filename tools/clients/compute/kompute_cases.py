"""Kompute's Python interface: kernels in GLSL with constants of both kinds, one that is dispatched many times in a sequence.

Usage: kompute_cases.py GLSLANG
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import case_runner
import kp
import numpy as np

SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
layout(binding = 2) buffer C { float c[]; };
layout(push_constant) uniform P { float factor; };
layout(constant_id = 0) const float kOffset = 0;
void main() {
    uint i = gl_GlobalInvocationID.x;
    c[i] = a[i] * b[i] * factor + kOffset;
}
"""
MATMUL = """
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
layout(binding = 2) buffer C { float c[]; };
layout(constant_id = 0) const float kSize = 0;
void main() {
    uint n = uint(kSize);
    uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    float sum = 0;
    for (uint k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
"""
# A step of gradient descent of a logistic regression, as Kompute's examples have it: c holds weights and bias.
REGRESSION = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
layout(binding = 2) buffer C { float c[]; };
layout(constant_id = 0) const float kCount = 0;
void main() {
    uint n = uint(kCount);
    vec3 slope = vec3(0);
    for (uint i = 0; i < n; ++i) {
        float z = c[0] * a[2 * i] + c[1] * a[2 * i + 1] + c[2];
        float error = 1 / (1 + exp(-z)) - b[i];
        slope += error * vec3(a[2 * i], a[2 * i + 1], 1);
    }
    for (uint j = 0; j < 3; ++j) c[j] -= 0.1 * slope[j] / float(n);
}
"""
STEPS = 100


def compiled(source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        shader, module = Path(folder) / "kernel.comp", Path(folder) / "kernel.spv"
        shader.write_text(source.lstrip())
        subprocess.run([sys.argv[1], "-V", "--target-env", "vulkan1.1", shader, "-o", module], check=True, capture_output=True)
        return module.read_bytes()


def make_case(source, inputs, size, workgroups, constants, push_constants=(), steps=1):
    manager = kp.Manager()
    tensors = [manager.tensor(array.ravel()) for array in inputs] + [manager.tensor(np.zeros(size, np.float32))]
    algorithm = manager.algorithm(tensors, compiled(source), workgroups, constants, list(push_constants))
    sequence = manager.sequence()
    sequence.record(kp.OpTensorSyncDevice(tensors))
    for _ in range(steps):
        sequence.record(kp.OpAlgoDispatch(algorithm, list(push_constants)))
    sequence.record(kp.OpTensorSyncLocal(tensors))

    def run():
        tensors[-1].data()[:] = 0
        sequence.eval()
        return np.array(tensors[-1].data())

    run.manager = manager  # lives as long
    return run


def regression(points, labels):
    weights = np.zeros(3)
    rows = np.column_stack([points, np.ones(len(points))]).astype(np.float64)
    for _ in range(STEPS):
        weights -= 0.1 * ((1 / (1 + np.exp(-rows @ weights)) - labels) @ rows) / len(points)
    return weights


def cases():
    random = np.random.default_rng(10)
    a, b = (random.standard_normal(1 << 20).astype(np.float32) for _ in range(2))
    yield "scale", (SCALE, (a, b), a.size, (a.size // 64, 1, 1), [0.5], [3.0]), a * b * 3 + np.float32(0.5), 1e-6
    n = 256
    m, k = (random.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    yield "matmul", (MATMUL, (m, k), n * n, (n // 16, n // 16, 1), [float(n)]), (m @ k).ravel(), 1e-5
    points = random.standard_normal((512, 2)).astype(np.float32)
    labels = (points @ [1.5, -2.0] + 0.3 > 0).astype(np.float32)
    yield ("regression", (REGRESSION, (points, labels), 3, (1, 1, 1), [float(len(points))], (), STEPS), regression(points, labels), 1e-4)


def main():
    for case, arguments, expected, tolerance in cases():
        try:
            case_runner.run_case(case, make_case(*arguments), expected, tolerance)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(case, error)


if __name__ == "__main__":
    main()
