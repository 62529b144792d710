"""onnxruntime's WebGPU provider (Dawn): the ONNX files of the arguments, beside its CPU provider."""

import sys
from pathlib import Path

import case_runner
import numpy as np
import onnxruntime as ort

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


def inputs_of(session):
    random = np.random.default_rng(8)
    return {value.name: random.uniform(0, 1, [d if isinstance(d, int) else 1 for d in value.shape])
            .astype(TYPES[value.type]) for value in session.get_inputs()}


def main():
    for path in map(Path, sys.argv[1:]):
        try:
            cpu = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            inputs = inputs_of(cpu)
            expected = cpu.run(None, inputs)
            cpu_seconds = case_runner.measure(lambda: cpu.run(None, inputs))
            webgpu = ort.InferenceSession(path, providers=["WebGpuExecutionProvider"])
            if "WebGpuExecutionProvider" not in webgpu.get_providers():
                raise RuntimeError("onnxruntime refused the WebGPU device.")
            results = webgpu.run(None, inputs)
            right = all(case_runner.is_close(r, e, 1e-3) for r, e in zip(results, expected, strict=True))
            case_runner.report(path.stem, right=right, cpu_seconds=cpu_seconds,
                               **case_runner.measured(lambda: webgpu.run(None, inputs)))
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(path.stem, error)


if __name__ == "__main__":
    main()
