"""Measures a model with onnxruntime's CPU provider in a process of its own, which prints a line of JSON.

Usage: python -m tools.models.measure MODEL.onnx CASE THREADS SECONDS

Times are those of warm runs, in milliseconds. Memory is the process's greatest resident set, and what of it the
interpreter and its libraries took before the model was loaded. GFLOP counts two operations for each multiply-add
of products, convolutions and recurrent layers, nothing else.
"""

import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

import onnxruntime

from tools.models.cases import read_cases

LEAST_RUNS, MOST_RUNS = 5, 500


def resident_bytes(field):
    """A line of /proc/self/status: VmRSS or VmHWM (the greatest so far)."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/self/status has no {field}.")


def busy_seconds():
    """Processor time that the whole machine has spent, and that of this process."""
    user, nice, system, _, _, irq, softirq = map(int, pathlib.Path("/proc/stat").read_text().split()[1:8])
    times = os.times()
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK"), times.user + times.system


def operations(node):
    """Floating-point operations of one node of a profile, from the shapes of its operands."""
    args = node["args"]
    inputs, outputs = ([next(iter(entry.values())) for entry in args[key]]
                       for key in ("input_type_shape", "output_type_shape"))
    kind = args["op_name"]
    if kind in ("Conv", "FusedConv", "ConvInteger"):
        return 2 * math.prod(outputs[0]) * math.prod(inputs[1][1:])
    if kind == "QLinearConv":
        return 2 * math.prod(outputs[0]) * math.prod(inputs[3][1:])
    if kind == "ConvTranspose":
        return 2 * math.prod(inputs[0]) * math.prod(inputs[1][1:])
    if kind in ("MatMul", "MatMulInteger", "MatMulNBits", "QLinearMatMul"):
        return 2 * math.prod(outputs[0]) * inputs[0][-1]
    if kind == "Gemm":
        # a * b / result is the square of the length that is summed over, whichever operand is transposed.
        result = math.prod(outputs[0])
        return 2 * result * math.isqrt(math.prod(inputs[0]) * math.prod(inputs[1]) // result) if result else 0
    if kind in ("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"):
        return 2 * math.prod(inputs[0][:2]) * (math.prod(inputs[1]) + math.prod(inputs[2]))
    return 0


def session_for(path, threads, prepack=True, **settings):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not prepack:
        options.add_session_config_entry("session.disable_prepacking", "1")
    for name, value in settings.items():
        setattr(options, name, value)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def gigaflop(path, feeds):
    """Counted from the profile of a run without graph optimisations, which tells every node's shapes.

    Weights that were packed would be missing there.
    """
    with tempfile.TemporaryDirectory(prefix="fornax_models_") as folder:
        session = session_for(path, 1, prepack=False, enable_profiling=True, profile_file_prefix=f"{folder}/profile",
                              graph_optimization_level=onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        session.run(None, feeds)
        profile = json.loads(pathlib.Path(session.end_profiling()).read_text())
    return sum(operations(node) for node in profile
               if node.get("cat") == "Node" and node["name"].endswith("_kernel_time")) / 1e9


def measure(path, case, threads, seconds):
    feeds = case.arrays()
    before = resident_bytes("VmRSS")
    start = time.perf_counter()
    session = session_for(path, threads)
    loaded = time.perf_counter()
    session.run(None, feeds)
    first = time.perf_counter()
    while time.perf_counter() < first + seconds / 4:
        session.run(None, feeds)
    machine, own = busy_seconds()
    begin, times = time.perf_counter(), []
    while len(times) < LEAST_RUNS or (time.perf_counter() < begin + seconds and len(times) < MOST_RUNS):
        run = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - run) * 1e3)
    wall = time.perf_counter() - begin
    machine_after, own_after = busy_seconds()
    return {
        "model": pathlib.Path(path).stem, "case": case.label, "threads": threads,
        "inputs": {name: entry.to_text() for name, entry in case.inputs.items()},
        "median_ms": statistics.median(times), "least_ms": min(times), "runs": len(times),
        "load_ms": (loaded - start) * 1e3, "first_run_ms": (first - loaded) * 1e3,
        "peak_bytes": resident_bytes("VmHWM"), "before_bytes": before,
        # Cores that other processes kept busy meanwhile.
        "others_cores": max(0.0, (machine_after - machine) - (own_after - own)) / wall,
        "gflop": gigaflop(path, feeds),
    }


def main(model, label, threads, seconds):
    (case,) = [case for case in read_cases(model) if case.label == label]
    print(json.dumps(measure(model, case, int(threads), float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
