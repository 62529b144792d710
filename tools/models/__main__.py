"""The command line of tools/models; see docs/models.md.

Run from the root of the source tree: python -m tools.models COMMAND --help
"""

import argparse
import collections
import json
import os
import pathlib
import sys

import numpy as np
import onnx

from tools.models import baseline, bench, compare, inspect_model, packaged
from tools.models.cases import read_cases, write_cases
from tools.models.catalogue import FLOAT, LIMITS, NETWORKS, QUANTIZED


MADE = {**NETWORKS, **LIMITS}
GROUPS = {"all": list(NETWORKS), "float": list(FLOAT), "quantized": list(QUANTIZED), "limits": list(LIMITS)}


def list_command(arguments):
    if arguments.models:
        for path in inspect_model.models_in(arguments.models):
            text = inspect_model.describe(path)
            print(f"{path.stem}: {text.size_bytes / 2**20:.1f} MiB, {sum(text.operators.values())} nodes, "
                  f"{len(text.operators)} operators, opset {text.opsets.get('ai.onnx')}")
            for title, values in (("inputs", text.inputs), ("outputs", text.outputs)):
                shown = [f"{name} {kind}" for name, kind in values.items()]
                more = f", and {len(shown) - 8} more" if len(shown) > 8 else ""
                print(f"  {title}: {', '.join(shown[:8])}{more}")
            print(f"  constants: {', '.join(f'{kind} {size} bytes' for kind, size in text.initializer_types.items())}")
        return
    for title, entries in (("float networks", FLOAT), ("quantised networks", QUANTIZED),
                           ("small models bound by one limit of the machine", LIMITS),
                           ("trained models in packages", packaged.packaged_models())):
        print(f"{title}:")
        for name, entry in entries.items():
            source = ""
            if isinstance(entry, packaged.Packaged):
                source = f" ({entry.package} {entry.version}, {entry.licence})"
            print(f"  {name:32}{entry.summary}{source}")


def chosen(names, known, groups):
    """Names in the order given; a group's name stands for all of its members."""
    result = []
    for name in names:
        if name not in known and name not in groups:
            sys.exit(f"There is no model {name}; `list` prints their names. "
                     f"Groups are {', '.join(groups)}.")
        result += groups.get(name, [name])
    return result


def make_command(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in chosen(arguments.name, MADE, GROUPS):
        network = MADE[name]
        model = network.build(**(network.small if arguments.small else {}))
        path = arguments.folder / f"{name}.onnx"
        onnx.save(model.proto, path)
        write_cases(path, model.cases)
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB", flush=True)


def unpack_command(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    models = packaged.packaged_models()
    for name in chosen(arguments.name, models, {"all": list(models)}):
        paths = [packaged.unpack(models[name], arguments.cache, arguments.folder)]
        if arguments.quantised:
            paths += packaged.quantise(models[name], paths[0])
        for path in paths:
            print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB", flush=True)


def inputs_command(arguments):
    for path in inspect_model.models_in(arguments.models):
        for case in read_cases(path):
            target = path.with_name(f"{path.stem}.{case.label}.npz")
            np.savez(target, **case.arrays(arguments.seed))
            print(f"{target}: {', '.join(f'{name} {entry.to_text()}' for name, entry in case.inputs.items())}")


def operators_command(arguments):
    descriptions = [inspect_model.describe(path) for path in inspect_model.models_in(arguments.models)]
    rows = inspect_model.operator_table(descriptions)
    if arguments.json:
        print(json.dumps({operator: {"models": users, "nodes": nodes} for operator, _, nodes, users in rows}, indent=1))
        return
    print(f"{len(rows)} operators in {len(descriptions)} models\n")
    print("| operator | models | nodes | which models |\n|---|---|---|---|")
    for operator, count, nodes, users in rows:
        named = "all" if count == len(descriptions) else ", ".join(users)
        print(f"| {operator} | {count} | {nodes} | {named} |")
        if arguments.attributes:
            merged = collections.Counter()
            for description in descriptions:
                merged.update(description.attributes.get(operator, {}))
            for text, times in merged.most_common(30):
                print(f"|   {text} | | {times} | |")


def baseline_command(arguments):
    ok = baseline.baseline(inspect_model.models_in(arguments.models), arguments.threads, arguments.seconds,
                           arguments.all_cases, arguments.attempts, arguments.output)
    sys.exit(0 if ok else 1)


def bench_command(arguments):
    names = chosen(arguments.name or ["float", "quantized", "limits"], MADE, GROUPS)
    sys.exit(0 if bench.bench(names, arguments) else 1)


def load_arrays(path):
    with np.load(path) as arrays:
        return dict(arrays)


def reference_command(arguments):
    outputs = compare.reference(arguments.model, load_arrays(arguments.inputs))
    np.savez(arguments.outputs, **outputs)
    print(f"{arguments.outputs}: {', '.join(f'{name} {list(array.shape)}' for name, array in outputs.items())}")


def compare_command(arguments):
    expected = compare.reference(arguments.model, load_arrays(arguments.inputs))
    differences = compare.compare(load_arrays(arguments.outputs), expected)
    tolerances = arguments.absolute, arguments.relative, arguments.norm
    width = max(len(entry.name) for entry in differences)
    for entry in differences:
        text = (f"absolute {entry.absolute:.3g} at {list(entry.where)}, relative {entry.relative:.3g}, "
                f"norm {entry.norm:.3g}")
        verdict = "" if entry.within(*tolerances) else "  too much"
        print(f"{entry.name:{width}}  {entry.problem or text + verdict}")
    sys.exit(0 if all(entry.within(*tolerances) for entry in differences) else 1)


def noise_command(arguments):
    print("| model | case | output | greatest | absolute | relative | norm |\n|---|---|---|---|---|---|---|")
    for path in inspect_model.models_in(arguments.models):
        for case in read_cases(path):
            expected = compare.reference(path, case.arrays())
            differences = compare.compare(compare.reference(path, case.arrays(), optimized=False), expected)
            worst = max(differences, key=lambda entry: (bool(entry.problem), entry.norm))
            array = expected[worst.name]
            numbers = worst.problem or f"{worst.absolute:.2g} | {worst.relative:.2g} | {worst.norm:.2g}"
            print(f"| {path.stem} | {case.label} | {worst.name} | {np.abs(array).max() if array.size else 0:.3g} | "
                  f"{numbers} |", flush=True)


def parser():
    top = argparse.ArgumentParser(prog="python -m tools.models", description=__doc__.splitlines()[0])
    commands = top.add_subparsers(dest="command", required=True)

    def command(name, function, text):
        entry = commands.add_parser(name, help=text, description=text)
        entry.set_defaults(function=function)
        return entry

    models = dict(nargs="+", metavar="MODEL", help="model files, or folders of them")
    entry = command("list", list_command, "Lists the networks that can be made, or describes model files.")
    entry.add_argument("models", nargs="*", metavar="MODEL", help="model files, or folders of them")
    entry = command("make", make_command, "Writes networks as NAME.onnx, and their cases as NAME.json.")
    entry.add_argument("name", nargs="+", help="names of networks, or all, float, quantized, limits")
    entry.add_argument("folder", type=pathlib.Path)
    entry.add_argument("--small", action="store_true", help="few and narrow layers, for quick tests")
    entry = command("unpack", unpack_command, "Writes trained models out of PyPI packages, which pip downloads.")
    entry.add_argument("name", nargs="+", help="names of models, or all")
    entry.add_argument("folder", type=pathlib.Path)
    entry.add_argument("--cache", type=pathlib.Path, required=True, help="a folder that keeps the packages")
    entry.add_argument("--quantised", action="store_true", help="also make the quantised forms of float models")
    entry = command("inputs", inputs_command, "Writes inputs for every case as MODEL.CASE.npz beside the model.")
    entry.add_argument("models", **models)
    entry.add_argument("--seed", type=int, default=1)
    entry = command("operators", operators_command, "Prints which operators the models use.")
    entry.add_argument("models", **models)
    entry.add_argument("--attributes", action="store_true", help="also the values of their attributes")
    entry.add_argument("--json", action="store_true")
    entry = command("baseline", baseline_command, "Measures models with onnxruntime's CPU provider.")
    entry.add_argument("models", **models)
    entry.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    entry.add_argument("--seconds", type=float, default=3, help="how long each case is measured")
    entry.add_argument("--attempts", type=int, default=3, help="how often a disturbed measurement is tried")
    entry.add_argument("--all-cases", action="store_true", help="not only the first case of each model")
    entry.add_argument("--output", help="a JSON file for the results")
    entry = command("bench", bench_command, "Measures Fornax beside onnxruntime, in turns.")
    entry.prog = "fornax bench models"
    entry.add_argument("name", nargs="*", help="names of networks, or all, float, quantized, limits; else everything")
    entry.add_argument("--fornax", required=True, help=argparse.SUPPRESS)
    entry.add_argument("--folder", type=pathlib.Path, default=bench.ROOT / "build" / "models",
                       help="keeps the models, which are made where they are missing (2.8 GB for all)")
    entry.add_argument("--small", action="store_true", help="small variants, to see that all works")
    entry.add_argument("--precision", choices=["highest", "high", "medium"], default="highest")
    entry.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of onnxruntime")
    entry.add_argument("--seconds", type=float, default=2, help="of each measurement")
    entry.add_argument("--warm-up", type=float, default=2, help="seconds before each of Fornax's")
    entry.add_argument("--rounds", type=int, default=3, help="how often they take turns; the medians count")
    entry.add_argument("--json", help="a file for all numbers")
    entry = command("reference", reference_command, "Writes onnxruntime's outputs for an .npz of inputs.")
    for name in ("model", "inputs", "outputs"):
        entry.add_argument(name)
    entry = command("noise", noise_command, "Prints how far onnxruntime's outputs are from its own without graph "
                    "optimisations: what a tolerance has to allow.")
    entry.add_argument("models", **models)
    entry = command("compare", compare_command, "Compares an .npz of outputs with onnxruntime's; exits with 1 if an "
                    "output is further off than all of the tolerances.")
    for name in ("model", "inputs", "outputs"):
        entry.add_argument(name)
    entry.add_argument("--absolute", type=float, default=1e-5)
    entry.add_argument("--relative", type=float, default=1e-3)
    entry.add_argument("--norm", type=float, default=1e-5, help="of the difference, in proportion to the output's")
    return top


if __name__ == "__main__":
    options = parser().parse_args()
    options.function(options)
