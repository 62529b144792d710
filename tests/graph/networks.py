"""Runs networks through libfornax.so and compares their outputs with onnxruntime's.

    python3 networks.py libfornax.so (--small | MODEL.onnx...) [--only REGEX] [--markdown] [--spirv-val PROGRAM]

The models are those of tools/models (docs/models.md), each with its cases beside it in MODEL.json; --small makes the
small variants of all networks. A model's cases run one after the other in one session, so all but the first also
show that other sizes work. Each model has a process of its own. Exits with 1 if an output is further off than the
tolerances allow, or a model does not run. With --spirv-val that program checks the modules of all kernels that the
driver, which has to be Fornax, is given.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import libfornax
import selection

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.models import compare, inspect_model  # noqa: E402
from tools.models.cases import read_cases, write_cases  # noqa: E402
from tools.models.catalogue import NETWORKS  # noqa: E402

ABSOLUTE, RELATIVE, NORM = 1e-5, 1e-3, 1e-5
# Rounding errors grow with a network's depth and condition: onnxruntime's optimised and unoptimised results, neither
# nearer to those of f64 than ours, tell how far. A network may be this many times as far off, up to a limit.
NOISE, MOST_NORM = 2, 1e-4
# A value that rounds to the other side is off by a whole quantum. onnxruntime's optimised and unoptimised results are
# that far apart, too, so a quantised network has to be near one of them.
QUANTISED_NORM = 0.06
QUANTISED = re.compile(r"_qdq|_dynamic$|_q4|int8|common_old|smart_turn")


def worst_of(differences, tolerances):
    return max(differences, key=lambda entry: (not entry.within(*tolerances), bool(entry.problem), entry.norm))


def worst_difference(path, arrays, actual, quantised):
    """The output that differs most from onnxruntime's, and whether it is within the tolerances."""
    tolerances = ABSOLUTE, RELATIVE, QUANTISED_NORM if quantised else NORM
    optimized = compare.reference(path, arrays)
    worst = worst_of(compare.compare(actual, optimized), tolerances)
    if worst.within(*tolerances):
        return worst, True
    plain = compare.reference(path, arrays, optimized=False)
    if quantised:
        worst = worst_of(compare.compare(actual, plain), tolerances)
        return worst, worst.within(*tolerances)
    noise = {entry.name: entry for entry in compare.compare(plain, optimized)}
    for entry in compare.compare(actual, optimized):
        limit = 0 if noise[entry.name].problem else min(NOISE * noise[entry.name].norm, MOST_NORM)
        if not entry.within(ABSOLUTE, RELATIVE, max(NORM, limit)):
            return entry, False
    return worst, True


def run_model(library, path, folder):
    """The rows of one model, each a dictionary, in this process. `folder` is for files that it needs."""
    quantised = bool(QUANTISED.search(path.stem)) and path.stem != "yolov8n_dynamic"
    cases = read_cases(path)
    parts = selection.cut(path, folder)
    whole = parts[0] if parts else path
    model = None
    for case in cases:
        row = {"model": path.stem, "case": case.label}
        arrays = case.arrays()
        begin = time.monotonic()
        try:
            model = model or libfornax.Model(library, whole, inputs=arrays)
            actual = dict(zip([name for name, _, _ in model.outputs()],
                              model.run(*[arrays[name] for name, _, _ in model.inputs()])))
        except libfornax.FornaxError as error:
            yield {**row, "problem": str(error)}
            continue
        row["seconds"] = time.monotonic() - begin
        if parts:
            worst, within = selected_difference(parts, arrays, actual)
        else:
            worst, within = worst_difference(path, arrays, actual, quantised)
        row |= dict(output=worst.name, absolute=worst.absolute, relative=worst.relative, norm=worst.norm)
        if not within:
            row["problem"] = f"{worst.name} {worst.problem or 'is further off than the tolerances allow.'}"
        yield row


def selected_difference(parts, arrays, actual):
    """As worst_difference, of a model in two parts (selection.py)."""
    whole, rest, names = parts
    chosen = compare.reference(rest, {**arrays, **{name: actual[name] for name in names}})
    worst = worst_of(compare.compare(actual, chosen), (ABSOLUTE, RELATIVE, NORM))
    if not worst.within(ABSOLUTE, RELATIVE, NORM):
        return worst, False
    reference = compare.reference(whole, arrays)
    worst = worst_of(compare.compare(actual, {name: reference[name] for name in names}), (ABSOLUTE, RELATIVE, NORM))
    return worst, worst.within(ABSOLUTE, RELATIVE, NORM)


def child(library, path):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        for row in run_model(libfornax.Library(library), path, pathlib.Path(folder)):
            print(json.dumps(row), flush=True)


def invalid_modules(validator, folder):
    """How many modules the driver has written to a folder, and what the validator says against some of them."""
    modules = sorted(folder.glob("*.spv"))
    commands = [[validator, "--target-env", "vulkan1.2", str(module)] for module in modules]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda c: subprocess.run(c, capture_output=True, text=True, check=False), commands))
    return len(modules), [f"{module.stem}: {(result.stdout + result.stderr).strip().splitlines()[:1]}"
                          for module, result in zip(modules, results) if result.returncode != 0]


def run_validated(validator, library, path, seconds):
    """The rows of run_in_child, one more if a module is not valid, and the number of modules."""
    with tempfile.TemporaryDirectory() as folder:
        dump = pathlib.Path(folder, "dump")
        # An empty cache, because only kernels that are compiled are written.
        rows = run_in_child(library, path, seconds, FORNAX_DUMP=str(dump), FORNAX_CACHE_DIR=str(pathlib.Path(folder, "cache")))
        count, invalid = invalid_modules(validator, dump)
    if invalid or not count:
        problem = f"{len(invalid)} of {count} modules are not valid: {invalid[:3]}" if count else "There are no modules."
        rows.append({"model": path.stem, "case": "spirv-val", "problem": problem})
    return rows, count - len(invalid)


def run_in_child(library, path, seconds, **environment):
    """The rows, and one more if the process died."""
    command = [sys.executable, __file__, library, str(path), "--child"]
    with tempfile.TemporaryFile("w+") as errors:
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=seconds,
                                    env={**os.environ, **environment}, check=False)
            lines, ended = result.stdout, result.returncode
        except subprocess.TimeoutExpired as error:
            lines, ended = (error.stdout or b"").decode(), f"more than {seconds} s"
        errors.seek(0)
        text = errors.read().strip().splitlines()
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    if ended != 0:
        rows.append({"model": path.stem, "case": "", "problem": f"The process ended with {ended}. {text[-1:]}"})
    return rows


def make_small(folder, only):
    for name, network in NETWORKS.items():
        if re.search(only, name):
            model = network.build(**network.small)
            onnx.save(model.proto, folder / f"{name}.onnx")
            write_cases(folder / f"{name}.onnx", model.cases)


def print_row(row, markdown):
    cells = [row["model"], row["case"], f"{row['seconds']:.2f}" if "seconds" in row else ""]
    cells += [f"{row[key]:.2g}" if key in row else "" for key in ("absolute", "relative", "norm")]
    cells.append(row.get("problem", ""))
    if markdown:
        print("| " + " | ".join(cells) + " |", flush=True)
    else:
        print(" ".join(f"{cell:{width}}" for cell, width in zip(cells, (31, 14, 8, 9, 9, 9, 0))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library")
    parser.add_argument("models", nargs="*", type=pathlib.Path, help="model files, or folders of them")
    parser.add_argument("--small", action="store_true", help="the small variants of all networks")
    parser.add_argument("--only", default="", help="models whose name matches this")
    parser.add_argument("--seconds", type=int, default=600, help="how long a model may take")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--spirv-val", help="the program that checks the modules of all kernels")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.library, arguments.models[0])
        return 0
    failures = runs = valid = 0
    with contextlib.ExitStack() as stack:
        models = arguments.models
        if arguments.small:
            models = [pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))]
            make_small(models[0], arguments.only)
        if arguments.markdown:
            print("| model | case | s | absolute | relative | norm | problem |\n|---|---|---|---|---|---|---|")
        for path in inspect_model.models_in(models):
            if re.search(arguments.only, path.stem):
                if arguments.spirv_val:
                    rows, count = run_validated(arguments.spirv_val, arguments.library, path, arguments.seconds)
                    valid += count
                else:
                    rows = run_in_child(arguments.library, path, arguments.seconds)
                for row in rows:
                    print_row(row, arguments.markdown)
                    runs += 1
                    failures += "problem" in row
    if arguments.spirv_val:
        print(f"{valid} modules are valid.")
    print(f"{runs} runs, {failures} of them wrong.")
    return 1 if failures or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
