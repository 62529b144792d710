"""onnxruntime's WebGPU provider (Dawn): the ONNX files of the arguments, beside its CPU provider. NAME.npz beside a file has its inputs."""

import sys
from pathlib import Path

import case_runner
import numpy as np
import onnxruntime as ort

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
         "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}

TOLERANCE = 1e-3
# Of networks that round activations to 8 bits. The WebGPU provider does so for weights of 4 bits and the CPU provider does not; roundings that
# fall the other way put the answers of the CPU provider with and without graph optimisations as far apart as this.
TOLERANCES = {"llama_small_q4": 6e-2, "mobilenet_v2_qdq": 6e-2}


def inputs_of(path, session):
    written = path.with_suffix(".npz")
    if written.exists():
        return dict(np.load(written))
    random = np.random.default_rng(8)
    return {value.name: random.uniform(0, 1, [d if isinstance(d, int) else 1 for d in value.shape])
            .astype(TYPES[value.type]) for value in session.get_inputs()}


def main():
    for path in map(Path, sys.argv[1:]):
        try:
            cpu = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            inputs = inputs_of(path, cpu)
            expected = cpu.run(None, inputs)
            cpu_seconds = case_runner.measure(lambda: cpu.run(None, inputs))
            webgpu = ort.InferenceSession(path, providers=["WebGpuExecutionProvider"])
            if "WebGpuExecutionProvider" not in webgpu.get_providers():
                raise RuntimeError("onnxruntime refused the WebGPU device.")
            tolerance = TOLERANCES.get(path.stem, TOLERANCE)
            results = webgpu.run(None, inputs)
            right = all(case_runner.is_close(r, e, tolerance) for r, e in zip(results, expected, strict=True))
            case_runner.report(path.stem, right=right, cpu_seconds=cpu_seconds,
                               **case_runner.measured(lambda: webgpu.run(None, inputs)))
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(path.stem, error)


if __name__ == "__main__":
    main()
