"""Runs networks through onnxruntime with Fornax as a provider and compares with its CPU provider.

    python3 provider_networks.py (--small | MODEL.onnx | FOLDER)... [--only REGEX] [--times]

The models, their cases and the tolerances are those of tests/graph/networks.py; folders are those of `python3 -m
tools.models make` and `unpack`. Prints how many nodes Fornax took, in how many partitions, how many were left to the CPU
provider, and the greatest difference; with --times also the median times of both providers, in turns. Each model has a
process of its own. Exits with 1 if an output is further off, a model does not run, or Fornax takes nothing of it. The
environment is that of provider.py.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import provider
import networks as graph_networks  # noqa: E402  (of tests/graph)
import selection  # noqa: E402  (of tests/graph)
from tools.models import inspect_model
from tools.models.cases import read_cases

LEAST_RUNS, LEAST_SECONDS = 5, 4
PAUSE_SECONDS = 0.02  # onnxruntime's threads spin for a while after a run


def outputs_of(made, arrays):
    wanted = {value.name for value in made.get_inputs()}
    names = [output.name for output in made.get_outputs()]
    return dict(zip(names, made.run(names, {name: array for name, array in arrays.items() if name in wanted})))


def times_of(path, made, arrays):
    """The median milliseconds of the CPU provider and of Fornax, in turns."""
    sessions = {"cpu_ms": provider.reference(path), "fornax_ms": made}
    taken = collections.defaultdict(list)
    for one in sessions.values():
        outputs_of(one, arrays)
    end = time.monotonic() + LEAST_SECONDS
    while len(taken["cpu_ms"]) < LEAST_RUNS or time.monotonic() < end:
        for name, one in sessions.items():
            time.sleep(PAUSE_SECONDS)
            begin = time.perf_counter()
            outputs_of(one, arrays)
            taken[name].append(1e3 * (time.perf_counter() - begin))
    return {name: statistics.median(values) for name, values in taken.items()}


def run_model(path, folder, times, options):
    """The rows of one model, in this process."""
    quantised = bool(graph_networks.QUANTISED.search(path.stem)) and path.stem != "yolov8n_dynamic"
    parts = selection.cut(path, folder)
    whole = parts[0] if parts else path
    made = provider.session(whole, options)
    taken, left = provider.partitions(made), collections.Counter(provider.others(made))
    for case in read_cases(path):
        row = {"model": path.stem, "case": case.label, "nodes": sum(map(len, taken)), "partitions": len(taken),
               "cpu": sum(left.values()), "left": " ".join(f"{name}:{count}" for name, count in sorted(left.items()))}
        arrays = case.arrays()
        actual = outputs_of(made, arrays)
        if parts:
            worst, within = graph_networks.selected_difference(parts, arrays, actual)
        else:
            worst, within = graph_networks.worst_difference(path, arrays, actual, quantised)
        row |= dict(absolute=worst.absolute, relative=worst.relative, norm=worst.norm)
        if not within:
            row["problem"] = f"{worst.name} {worst.problem or 'is further off than the tolerances allow.'}"
        elif not taken:
            row["problem"] = "Fornax takes nothing of it."
        if times:
            row |= times_of(whole, made, arrays)
        yield row


def run_in_child(arguments, path):
    command = [sys.executable, __file__, str(path), "--child", "--precision", arguments.precision]
    command += ["--times"] if arguments.times else []
    result = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds)
    rows = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode:
        rows.append({"model": path.stem, "case": "", "problem": f"The process ended with {result.returncode}: "
                     f"{result.stderr.strip().splitlines()[-1:]}"})
    return rows


def print_row(row):
    cells = [row["model"], row["case"], row.get("nodes", ""), row.get("partitions", ""), row.get("cpu", "")]
    cells += [f"{row[key]:.2g}" if key in row else "" for key in ("absolute", "relative", "norm")]
    if "cpu_ms" in row:
        cells += [f"{row['cpu_ms']:.2f}", f"{row['fornax_ms']:.2f}", f"{row['cpu_ms'] / row['fornax_ms']:.2f}x"]
    cells += [row.get("left", ""), row.get("problem", "")]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", type=pathlib.Path, help="model files, or folders of them")
    parser.add_argument("--small", action="store_true", help="the small variants of all networks")
    parser.add_argument("--only", default="", help="models whose name matches this")
    parser.add_argument("--times", action="store_true", help="measure both providers")
    parser.add_argument("--precision", default="highest")
    parser.add_argument("--seconds", type=int, default=600, help="how long a model may take")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        options = {"cache": "none", "precision": arguments.precision}
        with tempfile.TemporaryDirectory() as folder:
            for row in run_model(arguments.models[0], pathlib.Path(folder), arguments.times, options):
                print(json.dumps(row), flush=True)
        return 0
    failures = runs = 0
    with contextlib.ExitStack() as stack:
        models = arguments.models
        if arguments.small:
            models = [pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))]
            graph_networks.make_small(models[0], arguments.only)
        times = " CPU ms | Fornax ms | ratio |" if arguments.times else ""
        print(f"| model | case | nodes | partitions | on the CPU | absolute | relative | norm |{times} left | problem |")
        print("|" + "---|" * (13 if times else 10))
        for path in inspect_model.models_in(models):
            if re.search(arguments.only, path.stem):
                for row in run_in_child(arguments, path):
                    print_row(row)
                    runs += 1
                    failures += "problem" in row
    print(f"{runs} runs, {failures} of them wrong.")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
