"""The model beside this machine: modelled and measured times of kernels and networks, and how far they are apart.

Usage: python3 -m tools.replay.reality --fornax COMMAND [NAME...] [options]; `fornax npu reality` calls it.

Every name is measured as a user would, and its cost records are replayed on a description of this machine, which
`fornax npu host` has measured, once in each round between the others. Of both the fastest round counts, because others on a
shared machine only make it slower, for minutes at a time. Where no second round comes near the fastest one, the fastest may
have been disturbed as well: such names are measured again, and the table marks those that remain so. Nothing of a network or
kernel enters the description. What was measured and recorded stays in a folder (--keep), whose files --replay compares again
with another description or model.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# Shapes of `fornax bench` whose time is a kernel's. Submissions and dispatches are parts of the description.
KERNELS = ("saxpy", "saxpy_cached", "half_axpy", "int8_add", "dequantize_f32", "dequantize_f16", "copy", "fma", "sgemm",
           "matrix_sgemm", "row_sums", "prefix_rows", "look_back", "softmax", "softmax_f16", "layer_norm", "layer_norm_f16",
           "gelu", "gelu_f16", "mandelbrot", "transpose", "histogram")
# Networks of tools/models: float and int8, convolutions and attention.
NETWORKS = ("bert_base", "efficientnet_b0", "llama_small", "mobilenet_v2", "mobilenet_v2_qdq", "resnet50", "resnet50_qdq",
            "unet", "vit_b16", "whisper_tiny_encoder")


# Rounds that agree: the second fastest takes at most so much longer than the fastest.
ALIKE = 1.1


class RealityError(Exception):
    """The text is a sentence."""


def run(command, **environment):
    result = subprocess.run([str(word) for word in command], env=dict(os.environ, **environment), capture_output=True,
                            stdin=subprocess.DEVNULL, text=True)
    if result.returncode:
        lines = (result.stderr.strip() or result.stdout.strip() or "It said nothing.").splitlines()
        raise RealityError(f"{command[1]} failed: {lines[-1]}")
    return result.stdout


class Kernel:
    """A shape of `fornax bench`. The kernels that record count, and so are not those that are measured."""

    def __init__(self, name, options, folder):
        self.name, self.options, self.folder = name, options, folder

    def child(self, **environment):
        output = self.folder / "output.json"
        run([self.options.fornax, "exec", "--", self.options.fornax, "bench-child", "--shape", self.name, "--output", output,
             *(["--quick"] if self.options.quick else [])],
            FORNAX_CACHE_DIR=str(self.folder / "cache"), **environment)
        report = json.loads(output.read_text())
        if "error" in report:
            raise RealityError(report["error"])
        return report["benchmarks"][0]["lower_quartile"]

    def record(self, path):
        self.child(FORNAX_NPU_RECORDS=str(path))
        write_records(path, last_submission(read_records(path)))

    def measure(self):
        return self.child()


class Network:
    def __init__(self, name, options, folder):
        # Only those who measure networks need what makes them.
        from tools.models.bench import prepare

        self.name, self.options, self.folder = name, options, folder
        options.folder.mkdir(parents=True, exist_ok=True)
        self.path, _, self.inputs = prepare(name, options.folder, options.quick)

    def run(self, *more):
        report = self.folder / "report.json"
        run([self.options.fornax, "run", self.path, "--input", self.inputs, "--json", report, *more],
            FORNAX_CACHE_DIR=str(self.folder / "cache"))
        return json.loads(report.read_text())

    def record(self, path):
        self.run("--records", path)

    def measure(self):
        seconds = 0.05 if self.options.quick else 0.6
        return 1e6 * self.run("--warm-up", seconds, "--repeat", 9)["least_ms"]


def read_records(path):
    """The records of a file, without its first line and its checksum."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines[1:] if "checksum" not in line]


def write_records(path, records):
    lines = [{"fornax_npu_records": 1, "records": len(records)}, *records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def last_submission(records):
    """Those of the last one, which wait for no other."""
    first = max(i for i, record in enumerate(records) if record.get("begins_submission") or i == 0)
    made = []
    for record in records[first:]:
        after = [before - first for before in record.get("after", []) if before >= first]
        made.append({**{key: value for key, value in record.items() if key != "after"}, **({"after": after} if after else {})})
    return made


def twice(records):
    """The same again, once all of it has ended: with the cache as the first time leaves it."""
    count = len(records)
    again = []
    for record in records:
        made = {key: value for key, value in record.items() if key != "begins_submission"}
        made["after"] = [before + count for before in record.get("after", [])] or list(range(count))
        again.append(made)
    return records + again


def modelled(path, options, scratch):
    """Nanoseconds of a run that another one came before, and what bounds most of it."""
    records = read_records(path)
    both, one = scratch / "both.jsonl", scratch / "one.jsonl"
    write_records(one, records)
    write_records(both, twice(records))
    profiles = [json.loads(run([options.fornax, "profile", file, "--npu", options.npu, "--json"])) for file in (one, both)]
    submission = options.description["command_processor"]
    launch = 1e3 * submission["driver_us"] + submission["doorbell_ns"]
    bounds = {}
    for kernel in profiles[1]["kernels"]:
        bounds[kernel["bound"]] = bounds.get(kernel["bound"], 0) + kernel["time_ns"]
    return profiles[1]["total_ns"] - profiles[0]["total_ns"] + launch, max(bounds, key=bounds.get)


def ranks(values):
    """From 1; equal values share the mean of theirs."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) + 1) / 2 for value in values]


def spearman(a, b):
    """The rank correlation; None where one of both is constant."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return statistics.correlation(ranks(a), ranks(b))


def summary(rows):
    """The last lines of the table, for kernels, networks and all."""
    lines = []
    groups = {"kernels": KERNELS, "networks": NETWORKS, "all": KERNELS + NETWORKS}
    for title, names in groups.items():
        chosen = [row for row in rows if row["name"] in names]
        if len(chosen) < 2 or (title == "all" and len(chosen) in (len([r for r in rows if r["name"] in KERNELS]),
                                                                 len([r for r in rows if r["name"] in NETWORKS]))):
            continue
        errors = [abs(row["error"]) for row in chosen]
        rank = spearman([row["measured_ns"] for row in chosen], [row["modelled_ns"] for row in chosen])
        lines.append(f"{title}: {len(chosen)}, median error {100 * statistics.median(errors):.0f} %, "
                     f"greatest {100 * max(errors):.0f} %, Spearman {'none' if rank is None else f'{rank:.3f}'}")
    return lines


def disturbance(rounds):
    """How much longer the second fastest of the rounds took than the fastest; None of one round."""
    fastest = sorted(rounds)[:2]
    return fastest[1] / fastest[0] - 1 if len(fastest) == 2 else None


def is_disturbed(rounds):
    spread = disturbance(rounds)
    return spread is not None and 1 + spread > ALIKE


def compare(name, rounds, path, options, scratch):
    time, bound = modelled(path, options, scratch)
    measured = min(rounds)
    return {"name": name, "measured_ns": measured, "rounds_ns": rounds, "spread": disturbance(rounds), "modelled_ns": time,
            "error": time / measured - 1, "bound": bound}


def describe(options, path):
    return json.loads(run([options.fornax, "npu", "describe", path, "--json"]))


def speeds_of(description):
    """By table and key, of the numbers that are speeds: whether "more" or "less" is faster."""
    return {(field["table"], field["key"]): field["faster"] for field in description["fields"] if field["faster"]}


def in_time(description, table, key, unit, clock=None):
    """A value of a description, with the unit's cycles in nanoseconds: what was measured while the clock seemed slower has
    fewer cycles and is no faster. With a clock, back again."""
    value = description[table][key]
    if unit == "cycles":
        return value * clock if clock else value / description["cores"]["clock_ghz"]
    if unit == "MAC/cycle":
        return value / clock if clock else value * description["cores"]["clock_ghz"]
    return value


def comparable(descriptions):
    """Those whose vectors are as wide as those of the one that multiplies fastest, which comes first: intervals count in
    vectors."""
    def multiply_add(description):
        return in_time(description, "vector", "multiply_add_interval", "cycles") / description["vector"]["bits"]
    first = min(descriptions, key=multiply_add)
    return [first] + [other for other in descriptions if other is not first and other["vector"]["bits"] == first["vector"]["bits"]]


def fastest_description(descriptions):
    """Of what `fornax npu host` measured several times, the TOML text of the fastest machine: of each speed the fastest
    value, because what else runs on a machine makes it slower; of what is no speed the median."""
    descriptions = comparable(descriptions)
    first, speeds = descriptions[0], speeds_of(descriptions[0])
    clock = max(description["cores"]["clock_ghz"] for description in descriptions)
    lines, table = [f'name = "{first["name"]}"'], ""
    for field in first["fields"]:
        place = field["table"], field["key"]
        ordered = [in_time(description, *place, field["unit"]) for description in descriptions]
        if isinstance(ordered[0], str):
            value = json.dumps(ordered[0])
        else:
            ordered.sort()
            # Of numbers that are no speeds the lower one of the middle two, so that whole numbers remain such.
            value = {"more": ordered[-1], "less": ordered[0]}.get(speeds.get(place), ordered[(len(ordered) - 1) // 2])
            if field["unit"] in ("cycles", "MAC/cycle"):
                # As exact as the measured ones are.
                value = float(f"{in_time({place[0]: {place[1]: value}}, *place, field['unit'], clock):.4g}")
        if table != place[0]:
            table = place[0]
            lines.append(f"\n[{table}]")
        unit = f"{field['unit']}: " if field["unit"] else ""
        lines.append(f"{f'{place[1]} = {value}':<28} # {unit}{field['meaning']}")
    return "\n".join(lines) + "\n"


def unsure_speeds(descriptions):
    """The speeds of which no two descriptions have nearly the fastest, with both values."""
    unsure = []
    descriptions = comparable(descriptions)
    for field in descriptions[0]["fields"] if len(descriptions) > 1 else ():
        table, key, faster = field["table"], field["key"], field["faster"]
        if not faster:
            continue
        best = sorted((in_time(description, table, key, field["unit"]) for description in descriptions),
                      reverse=faster == "more")[:2]
        if min(best) > 0 and max(best) / min(best) > ALIKE:
            unsure.append(f"{table}.{key} ({best[0]:g}, then {best[1]:g})")
    return unsure


def measure_host(options, path, passes=3):
    run([options.fornax, "npu", "host", "-o", path, "--passes", passes, *(["--quick"] if options.quick else [])])


def measure(names, options, folder):
    """Keeps the nanoseconds of each round; the rounds of all names, and of the machine's description, take turns."""
    subjects = []
    for name in names:
        scratch = folder / name
        scratch.mkdir(parents=True, exist_ok=True)
        subjects.append((Kernel if name in KERNELS else Network)(name, options, scratch))
    for subject in subjects:
        if not (folder / f"{subject.name}.jsonl").exists():
            show(f"recording {subject.name}")
            subject.record(folder / f"{subject.name}.jsonl")
    times = {name: [] for name in names}
    if not options.npu:
        for old in folder.glob("host.*.toml"):
            old.unlink()
    # As many rounds again for those that were disturbed.
    for number in range(2 * options.rounds):
        left = [subject for subject in subjects if number < options.rounds or is_disturbed(times[subject.name])]
        hosts = [] if options.npu else [describe(options, path) for path in sorted(folder.glob("host.*.toml"))]
        if number >= options.rounds and not left and not (hosts and unsure_speeds(hosts)):
            break
        if not options.npu:
            show(f"measuring the machine, {number + 1} of {options.rounds}")
            # One pass a round, of which there are several.
            measure_host(options, folder / f"host.{number:02}.toml", passes=1)
        for subject in left:
            show(f"measuring {subject.name}, {number + 1} of {options.rounds}")
            times[subject.name].append(subject.measure())
        keep(times, folder)
    show("")
    if not options.npu:
        hosts = [describe(options, path) for path in sorted(folder.glob("host.*.toml"))]
        (folder / "host.toml").write_text(fastest_description(hosts))


def kept(folder):
    """Nanoseconds of each round by name, of earlier runs as well."""
    path = folder / "measured.json"
    measured = json.loads(path.read_text()) if path.exists() else {}
    # Folders of earlier versions have one number.
    return {name: rounds if isinstance(rounds, list) else [rounds] for name, rounds in measured.items()}


def keep(times, folder):
    (folder / "measured.json").write_text(json.dumps(kept(folder) | times, indent=1) + "\n")


def show(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="fornax npu reality", description="Modelled beside measured times on this machine.")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"of kernels or networks, or kernels, networks, all (default): {', '.join(KERNELS + NETWORKS)}")
    parser.add_argument("--fornax", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--npu", help="a description of this machine (default: measured by fornax npu host)")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/models"), help="of the networks' models")
    parser.add_argument("--rounds", type=int, default=4, help="how often each is measured, in turns; the fastest counts, and what was disturbed is measured again")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for records and measured times; records that it has are not made again")
    parser.add_argument("--replay", action="store_true", help="measure nothing: compare what --keep has from before")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all works")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    groups = {"kernels": KERNELS, "networks": NETWORKS, "all": KERNELS + NETWORKS}
    names = []
    for name in options.names or ["all"]:
        if name not in groups and name not in groups["all"]:
            parser.error(f"there is no kernel or network {name}; there are {', '.join(groups['all'])}.")
        names += groups.get(name, [name])
    if options.replay and not options.keep:
        parser.error("--replay needs the folder of --keep.")
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; it must be at least 1.")
    options.names = list(dict.fromkeys(names))
    return options


def reality(options, folder):
    """The rows of the table, which it prints."""
    if not options.replay:
        measure(options.names, options, folder)
    measured = kept(folder)
    options.npu = options.npu or str(folder / "host.toml")
    if not pathlib.Path(options.npu).exists():
        measure_host(options, options.npu)
    options.description = describe(options, options.npu)
    missing = [name for name in options.names if name not in measured]
    if missing:
        raise RealityError(f"{folder} has no measurement of {', '.join(missing)}.")
    print("| | measured ms | second round % | modelled ms | error % | bound by |\n|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory(prefix="fornax_reality_") as scratch:
        for name in options.names:
            row = compare(name, measured[name], folder / f"{name}.jsonl", options, pathlib.Path(scratch))
            rows.append(row)
            spread = "" if row["spread"] is None else f"+{100 * row['spread']:.0f}"
            mark = ", disturbed" if is_disturbed(row["rounds_ns"]) else ""
            print(f"| {name} | {row['measured_ns'] / 1e6:.3f} | {spread}{mark} | {row['modelled_ns'] / 1e6:.3f} | "
                  f"{100 * row['error']:+.0f} | {row['bound']} |", flush=True)
    print("", f"modelled, description {options.description['hash'][:16]}, model {options.description['model_version']}",
          *summary(rows), *doubts(rows, folder, options), sep="\n")
    return rows


def doubts(rows, folder, options):
    """What the rounds did not agree on, as sentences."""
    lines = []
    disturbed = [row["name"] for row in rows if is_disturbed(row["rounds_ns"])]
    if disturbed:
        lines.append(f"disturbed: of {len(disturbed)} of {len(rows)} no second round came within {100 * ALIKE - 100:.0f} % of the "
                     f"fastest ({', '.join(disturbed)}).")
    if pathlib.Path(options.npu) == folder / "host.toml":
        hosts = [describe(options, path) for path in sorted(folder.glob("host.*.toml"))]
        if unsure := unsure_speeds(hosts) if hosts else []:
            lines.append(f"unsure of the machine: {', '.join(unsure)}.")
    return lines


def main(arguments):
    options = parse(arguments)
    try:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            rows = reality(options, options.keep)
        else:
            with tempfile.TemporaryDirectory(prefix="fornax_reality_") as folder:
                rows = reality(options, pathlib.Path(folder))
        if options.json:
            options.json.write_text(json.dumps({"description": options.description, "rows": rows}, indent=1) + "\n")
    except (RealityError, OSError) as error:
        sys.exit(f"fornax npu reality: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
