"""Fornax beside onnxruntime on the networks: times in turns, differences, memory, time to load; see docs/models.md.

Each measurement is a process of its own. The first of Fornax's has an empty cache, so it tells what compiling takes;
the others find everything there.
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from tools.models import compare
from tools.models.baseline import processor
from tools.models.cases import read_cases, write_cases
from tools.models.catalogue import LIMITS, NETWORKS

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST_RUNS, MOST_RUNS = 5, 500


class BenchError(Exception):
    """A measurement that failed; the text is a sentence."""


def prepare(name, folder, small):
    """The model's file, made if it is not there, its first case, and the .npz of its inputs."""
    path = folder / (f"{name}_small.onnx" if small else f"{name}.onnx")
    if not path.exists():
        network = {**NETWORKS, **LIMITS}[name]
        model = network.build(**(network.small if small else {}))
        write_cases(path, model.cases)
        partial = path.with_suffix(".partial")
        onnx.save(model.proto, partial)
        partial.rename(path)
    case = read_cases(path)[0]
    inputs = path.with_name(f"{path.stem}.{case.label}.npz")
    np.savez(inputs, **case.arrays())
    return path, case, inputs


def run_onnxruntime(path, case, threads, seconds):
    result = subprocess.run([sys.executable, "-m", "tools.models.measure", str(path.resolve()), case.label, str(threads),
                             str(seconds)], cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        raise BenchError(f"onnxruntime failed: {result.stderr.strip().splitlines()[-1]}")
    return json.loads(result.stdout.splitlines()[-1])


def run_fornax(options, path, inputs, cache, report, *more):
    command = [options.fornax, "run", str(path), "--input", str(inputs), "--json", str(report), "--precision",
               options.precision, "--warm-up", str(options.warm_up), *map(str, more)]
    result = subprocess.run(command, env=dict(os.environ, FORNAX_CACHE_DIR=str(cache)), capture_output=True, text=True)
    if result.returncode:
        raise BenchError(result.stderr.strip() or "fornax run failed.")
    return json.loads(report.read_text())


def measure_model(name, options, scratch):
    """A row of the table; with "error" if the model could not be measured."""
    path, case, inputs = prepare(name, options.folder, options.small)
    cache, report, results = scratch / "cache" / name, scratch / "report.json", scratch / "results"
    limited = name in LIMITS
    first = run_fornax(options, path, inputs, cache, report, "--repeat", LEAST_RUNS, "--output-dir", results, "--format",
                       "npz", *(["--profile"] if limited else []))
    repeat = min(max(LEAST_RUNS, round(options.seconds * 1e3 / first["median_ms"])), MOST_RUNS)
    theirs, ours = [], []
    for turn in range(options.rounds):
        measurements = [lambda: theirs.append(run_onnxruntime(path, case, options.threads, options.seconds)),
                        lambda: ours.append(run_fornax(options, path, inputs, cache, report, "--repeat", repeat))]
        for measurement in measurements if turn % 2 == 0 else measurements[::-1]:
            measurement()
    with np.load(results / "outputs.npz") as arrays, np.load(inputs) as feeds:
        differences = compare.compare(dict(arrays), compare.reference(path, dict(feeds)))
    worst = max(differences, key=lambda entry: (bool(entry.problem), entry.norm))
    row = {
        "model": name, "case": case.label,
        "onnxruntime_ms": statistics.median(entry["median_ms"] for entry in theirs),
        "fornax_ms": statistics.median(entry["median_ms"] for entry in ours),
        "absolute": max(entry.absolute for entry in differences), "norm": worst.norm, "problem": worst.problem,
        "onnxruntime_peak_bytes": statistics.median(entry["peak_bytes"] for entry in theirs),
        "onnxruntime_before_bytes": statistics.median(entry["before_bytes"] for entry in theirs),
        "fornax_peak_bytes": statistics.median(entry["peak_bytes"] for entry in ours),
        "load_first_ms": first["load_ms"], "load_cached_ms": statistics.median(entry["load_ms"] for entry in ours),
        "kernels": first["kernels"], "steps": first["steps"], "host_steps": first["host_steps"],
        "arena_bytes": first["arena_bytes"], "lower_bound_bytes": first["lower_bound_bytes"],
    }
    row["ratio"] = row["onnxruntime_ms"] / row["fornax_ms"]
    if limited:
        amount, unit = LIMITS[name].amount(**(LIMITS[name].small if options.small else {}))
        limit = first["limits"]["fma_gflops" if unit == "flop" else "copy_gbs"]
        row |= {"rate": amount / row["fornax_ms"] / 1e6, "unit": unit, "limit": limit}
        row["share"] = row["rate"] / limit
    return row


HEADER = ("| network | onnxruntime ms | Fornax ms | ratio | difference (norm) | peak MiB, both | load s, first, cached |",
          "|---|---|---|---|---|---|---|")


def line(row):
    if "error" in row:
        return f"| {row['model']} | {row['error']} |"
    difference = row["problem"] or f"{row['absolute']:.2g} ({row['norm']:.2g})"
    return (f"| {row['model']} | {row['onnxruntime_ms']:.2f} | {row['fornax_ms']:.2f} | {row['ratio']:.2f} | {difference} | "
            f"{row['onnxruntime_peak_bytes'] / 2**20:.0f} {row['fornax_peak_bytes'] / 2**20:.0f} | "
            f"{row['load_first_ms'] / 1e3:.2f} {row['load_cached_ms'] / 1e3:.2f} |")


def limit_line(row):
    unit = "GFLOP/s" if row["unit"] == "flop" else "GB/s"
    what = "of the FMA peak" if row["unit"] == "flop" else "of copy bandwidth"
    return f"| {row['model']} | {row['rate']:.1f} {unit} | {100 * row['share']:.0f} % {what} ({row['limit']:.1f}) |"


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def summaries(rows):
    """Lines behind the table: means, and shares of the machine's limits."""
    good = [row for row in rows if "error" not in row]
    lines = []
    networks = [row["ratio"] for row in good if row["model"] not in LIMITS]
    if networks:
        lines.append(f"geometric mean of the ratios of {len(networks)} networks: {geometric_mean(networks):.2f}")
    limited = [row for row in good if "share" in row]
    if limited:
        lines += ["", "| kernel | rate | share |", "|---|---|---|", *map(limit_line, limited)]
    return lines


def bench(names, options):
    """Prints the table line by line; True if everything could be measured."""
    options.folder.mkdir(parents=True, exist_ok=True)
    report = {"processor": processor(), "threads": options.threads, "onnxruntime": onnxruntime.__version__,
              "precision": options.precision, "rows": []}
    rows = report["rows"]
    print("\n".join(HEADER), flush=True)
    with tempfile.TemporaryDirectory(prefix="fornax_bench_") as scratch:
        for number, name in enumerate(names):
            if sys.stderr.isatty():
                print(f"\r\033[K{name} ({number + 1} of {len(names)})", end="", file=sys.stderr, flush=True)
            try:
                row = measure_model(name, options, pathlib.Path(scratch))
            except BenchError as error:
                row = {"model": name, "error": str(error)}
            rows.append(row)
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            print(line(row), flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    print("", *summaries(rows), sep="\n")
    return all("error" not in row for row in rows)
