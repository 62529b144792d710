"""Fornax beside eager torch and Inductor: the children that measure, the table, means; see docs/torch.md.

A network is measured in a process that begins with empty caches, where all ways take turns, and compiled once more in
processes that find the caches full, one for each way: whoever comes first in a process loads what all ways need.
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS, WHEEL = "calls", "wheel"
DISTURBED = 0.2  # cores
PRECOMPILED = "precompiled"  # Fornax, with what torch keeps of Dynamo's work
CACHED = ("dynamo", "aot", "inductor", "fornax", PRECOMPILED)  # ways whose first calls are measured with full caches


class BenchError(Exception):
    """A measurement that failed; the text is a sentence."""


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def package_folder(command, scratch):
    """The folder of the Python package `fornax` that a command belongs to: the one it lies in, or one that is installed from
    its build folder."""
    command = pathlib.Path(command).resolve()
    if command.parents[1].name == "_native":
        return command.parents[3]
    build = command.parents[1]
    if not (build / "CMakeCache.txt").exists():
        raise BenchError(f"{command} lies in no build folder; --package says where the Python package is.")
    folder = scratch / "package"
    done = subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", folder], capture_output=True,
                          text=True)
    if done.returncode or not (folder / "fornax" / "_native").exists():
        raise BenchError(f"The Python package of {build} cannot be installed ({_last_line(done.stderr)}); "
                         f"`ninja -C {build} python_package` builds it.")
    return folder


def wheel_bytes(command, scratch):
    """The size of the wheel of the build folder that the command lies in."""
    build = pathlib.Path(command).resolve().parents[1]
    if not (build / "CMakeCache.txt").exists():
        raise BenchError("The wheel is made out of a build folder, and the command lies in none.")
    settings = {"cmake.define.FORNAX_BUILD": str(build), "build-dir": str(scratch / "wheel-build")}
    code = "import json, sys, scikit_build_core.build as b; b.build_wheel(sys.argv[1], json.loads(sys.argv[2]))"
    folder = scratch / "wheel"
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", code, folder, json.dumps(settings)], cwd=ROOT, capture_output=True,
                          text=True)
    if done.returncode:
        raise BenchError(f"The wheel cannot be made: {_last_line(done.stderr)}")
    (wheel,) = folder.glob("*.whl")
    return wheel.stat().st_size


class Bench:
    def __init__(self, options, scratch, package):
        self._options, self._scratch, self._package = options, scratch, package

    def _child(self, what, caches, **changes):
        environment = {name: value for name, value in os.environ.items() if name != "FORNAX_CACHE_DIR"}
        environment |= {
            "PYTHONPATH": os.pathsep.join([str(self._package), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1",
            "FORNAX_CACHE_DIR": str(caches / "fornax"), "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        }
        options = self._options
        text = json.dumps({"small": options.small, "threads": options.threads, "seconds": options.seconds,
                           "rounds": options.rounds, "warm_up": options.warm_up, "precisions": options.precisions,
                           "only_first": None, **changes})
        done = subprocess.run([sys.executable, "-m", "tools.torch_bench.measure", what, text], cwd=ROOT, env=environment,
                              capture_output=True, text=True)
        if done.returncode:
            raise BenchError(f"its process ended with {done.returncode}: {_last_line(done.stderr)}")
        return json.loads(done.stdout.splitlines()[-1])

    def calls(self):
        with tempfile.TemporaryDirectory(dir=self._scratch) as caches:
            return self._child(CALLS, pathlib.Path(caches))["median_us"]

    def network(self, name, is_training):
        """A row of the table; with "error" if Fornax or torch failed."""
        precisions = ["highest"] if is_training else ["highest", *(p for p in self._options.precisions if p != "highest")]
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            caches = pathlib.Path(folder)
            row = self._child(name, caches, precisions=precisions)
            cached = {}
            for way in self._options.first_calls:
                if way == PRECOMPILED:
                    self._child(name, caches, only_first=way)  # fills the caches
                child = self._child(name, caches, only_first=way)
                if way != PRECOMPILED:
                    cached |= child["first_ms"]
                elif child.get("found"):
                    cached[way] = child["first_ms"].get(way)
                elif way in child["errors"]:
                    row["errors"][way] = child["errors"][way]
        row = {"network": name, "is_training": is_training, "torch": row["torch"], **row, "cached_ms": cached}
        for way in ("eager", "fornax"):
            if way in row["errors"]:
                row["error"] = f"{way} failed: {row['errors'][way]}"
        row["ratio"] = {way: row["median_ms"]["inductor"] / time for way, time in row["median_ms"].items()
                        if way.startswith("fornax") and "inductor" in row["median_ms"]}
        row["ratio_to_eager"] = {way: row["median_ms"]["eager"] / time for way, time in row["median_ms"].items()
                                 if way != "eager" and "eager" in row["median_ms"]}
        return row


HEADER = ("| network | eager ms | Inductor ms | Fornax ms | x Inductor | x eager | medium ms | x Inductor | difference, "
          "medium's | first call s: Inductor, Fornax | with caches: eager, Dynamo alone, Inductor, Fornax |",
          "|---|---|---|---|---|---|---|---|---|---|---|")


def _number(values, key, form, scale=1.0):
    return format(values[key] * scale, form) if key in values else "-"


def line(row):
    if "error" in row:
        return f"| {row['network']} | {row['error']} |"
    times, first, cached, difference = row["median_ms"], row["first_ms"], row["cached_ms"], row["difference"]
    cells = [
        row["network"], *(_number(times, way, ".2f") for way in ("eager", "inductor", "fornax")),
        _number(row["ratio"], "fornax", ".2f"), _number(row["ratio_to_eager"], "fornax", ".2f"),
        _number(times, "fornax_medium", ".2f"), _number(row["ratio"], "fornax_medium", ".2f"),
        f"{_number(difference, 'fornax', '.1e')} {_number(difference, 'fornax_medium', '.1e')}",
        " ".join(_number(first, way, ".1f", 1e-3) for way in ("inductor", "fornax")),
        " ".join(_number(cached, way, ".2f", 1e-3) for way in ("eager", "dynamo", "inductor", "fornax", PRECOMPILED)),
    ]
    return f"| {' | '.join(cells)} |"


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def means(rows):
    """{what: (geometric mean, number of networks)} of ratios, each above 1 where Fornax is better."""
    good = [row for row in rows if "error" not in row]
    inference = [row for row in good if not row["is_training"]]
    training = [row for row in good if row["is_training"]]
    ratios = {
        "inference, x Inductor": [row["ratio"]["fornax"] for row in inference if "fornax" in row["ratio"]],
        "inference, x eager": [row["ratio_to_eager"]["fornax"] for row in inference],
        "inference, medium, x Inductor": [row["ratio"]["fornax_medium"] for row in inference
                                          if "fornax_medium" in row["ratio"]],
        "training, x eager": [row["ratio_to_eager"]["fornax"] for row in training],
        "training, x Inductor": [row["ratio"]["fornax"] for row in training if "fornax" in row["ratio"]],
    }
    for key, title in (("first_ms", "first call, empty caches, x Inductor"),
                       ("cached_ms", "first call, full caches, x Inductor")):
        ratios[title] = [row[key]["inductor"] / row[key]["fornax"] for row in good
                         if {"inductor", "fornax"} <= set(row[key])]
    return {title: (geometric_mean(values), len(values)) for title, values in ratios.items() if values}


def summaries(report):
    """Lines behind the table."""
    lines = [f"geometric mean of {count} networks, {title}: {mean:.2f}"
             for title, (mean, count) in means(report["rows"]).items()]
    good = [row for row in report["rows"] if "error" not in row]
    if good:
        for of, way, title in (("fornax", "eager", "eager's"), ("fornax", "dynamo", "Dynamo alone"),
                               (PRECOMPILED, "eager", "eager's, precompiled")):
            extra = [(row["cached_ms"][of] - row["cached_ms"][way]) / 1e3 for row in good
                     if {way, of} <= set(row["cached_ms"])]
            if extra:
                lines.append(f"first call with full caches, s more than {title}: {statistics.median(extra):.2f} (median), "
                             f"{max(extra):.2f} (greatest)")
    for row in report["rows"]:
        for way, error in row["errors"].items() if "errors" in row and "error" not in row else ():
            lines.append(f"{row['network']}: {way} failed: {error}")
        free = max(0, os.cpu_count() - report["threads"])
        if (row.get("others_cores") or 0) > free + DISTURBED:
            lines.append(f"{row['network']}: other processes took {row['others_cores'] - free:.1f} cores meanwhile, so these "
                         "numbers mean nothing")
        if row.get("in_torch", {}).get("fornax"):
            lines.append(f"{row['network']}: torch runs {', '.join(row['in_torch']['fornax'])}")
    if CALLS in report:
        lines.append("a call of a graph of one kernel, us: " +
                     ", ".join(f"{way} {time:.1f}" for way, time in report[CALLS].items()))
    if WHEEL in report:
        lines.append(f"wheel: {report[WHEEL] / 1e6:.1f} MB")
    return lines


def bench(names, networks, options):
    """Prints the table line by line; True if everything could be measured."""
    report = {"processor": processor(), "threads": options.threads, "rows": []}
    errors = []
    with tempfile.TemporaryDirectory(prefix="fornax_bench_") as folder:
        scratch = pathlib.Path(folder)
        measuring = Bench(options, scratch, options.package or package_folder(options.fornax, scratch))
        if any(name in networks for name in names):
            print("\n".join(HEADER), flush=True)
        for number, name in enumerate(names):
            if sys.stderr.isatty():
                print(f"\r\033[K{name} ({number + 1} of {len(names)})", end="", file=sys.stderr, flush=True)
            try:
                if name == CALLS:
                    report[CALLS] = measuring.calls()
                elif name == WHEEL:
                    report[WHEEL] = wheel_bytes(options.fornax, scratch)
                else:
                    report["rows"].append(measuring.network(name, networks[name].is_training))
            except BenchError as error:
                if name in networks:
                    report["rows"].append({"network": name, "error": str(error)})
                errors.append(f"{name}: {error}")
            if sys.stderr.isatty():
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            if name in networks:
                print(line(report["rows"][-1]), flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n")
    print(*summaries(report), *(text for text in errors if text.split(":")[0] not in networks), sep="\n")
    return not errors and all("error" not in row for row in report["rows"])
