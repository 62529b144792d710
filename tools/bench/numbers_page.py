#!/usr/bin/env python3
"""docs/numbers.md from what `fornax bench --json` and `fornax bench llama --json` wrote.

    fornax bench --json run.json
    tools/bench/numbers_page.py add docs/numbers/MACHINE.json run.json --title "All benchmarks" \\
        --date 2026-11-22 --version 9ac355b8 --command "fornax bench"
    tools/bench/numbers_page.py write

A file of docs/numbers is a machine and its runs, of which medians are kept; its section of the page has a table a
run. A run with the title of an older one takes its place. A new file needs --machine, which describes the machine.
`write --check` says whether the page is that of the files.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMES = {"s", "ms", "us", "ns"}
LIMITS = (
    ("fma_one_thread_gflops", "f32 fma, one thread", "GFLOP/s"),
    ("fma_all_threads_gflops", "f32 fma, all threads", "GFLOP/s"),
    ("triad_gbs", "triad of arrays in memory", "GB/s"),
    ("triad_cached_gbs", "triad of arrays in caches", "GB/s"),
    ("copy_gbs", "copy in memory", "GB/s"),
    ("read_gbs", "read of memory", "GB/s"),
)
INTRODUCTION = """# Numbers

Made by `tools/bench/numbers_page.py` from the runs in `docs/numbers/`; do not edit. A machine is a section, a run a table,
with the day and the version (a commit) that it measured.

`fornax bench` measures each driver in a process and cache directory of its own, takes turns between the drivers, checks
every result against a C++ reference first, and measures the host's limits in the same run in plain C++ with intrinsics; "of
limit" is the share of the limit that bounds a benchmark. `fornax bench llama` takes the times of ggml's own programs. Values are medians.
The machines are shared: absolute numbers of two runs differ by up to a third, so compare the columns of one table. What bounds
the numbers is in [kernel-decisions.md](kernel-decisions.md).
"""


class Problem(Exception):
    """A sentence for the user."""


def number(value: float) -> str:
    """Three significant digits are what repetitions agree on."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def table(rows: list[list[str]], left: int) -> str:
    """Markdown; the first `left` columns are text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) if i < left else cell.rjust(w)
                               for i, (cell, w) in enumerate(zip(row, widths))) + " |" for row in rows]
    rule = "|" + "|".join("-" * (w + 2) if i < left else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def compact(report: dict | list) -> dict:
    """What the page needs of a report: of `fornax bench`, or the list of `fornax bench llama`."""
    if isinstance(report, list):
        return {"benchmarks": [
            {"title": row["case"], "unit": row["unit"],
             "results": {driver: statistics.median(values) for driver, values in row["values"].items()},
             **({"share": statistics.median(next(iter(row["shares"].values())))} if row.get("shares") else {})}
            for row in report]}
    if "benchmarks" not in report:
        raise Problem("The file has no benchmarks. Of several targets or numbers of threads, add one run each.")
    if report.get("quick"):
        raise Problem("Runs of --quick are not for comparison.")
    benchmarks = []
    for row in report["benchmarks"]:
        medians = {driver: cell["median"] for driver, cell in row["results"].items() if "median" in cell}
        benchmarks.append({"title": row["title"], "unit": row["unit"], "results": medians})
        if "limit" in row:
            benchmarks[-1] |= {"limit": row["limit"], "limit_name": row["limit_name"]}
    return {"limits": report["limits"], "benchmarks": benchmarks}


def ratio(row: dict, first: str, driver: str) -> str:
    """How many times better the first driver is."""
    results = row["results"]
    if first not in results or driver not in results:
        return "-"
    own, other = results[first], results[driver]
    return number(other / own if row["unit"] in TIMES else own / other) + "x"


def share(row: dict, first: str) -> str:
    if "share" in row:
        return f"{100 * row['share']:.0f} % read"
    if "limit" not in row or first not in row["results"]:
        return "-"
    return f"{100 * row['results'][first] / row['limit']:.0f} % {row['limit_name']}"


def drivers_of(rows: list[dict]) -> list[str]:
    drivers: list[str] = []
    for row in rows:
        drivers += [driver for driver in row["results"] if driver not in drivers]
    return drivers


def measurements(rows: list[dict]) -> str:
    drivers = drivers_of(rows)
    first, others = drivers[0], drivers[1:]
    with_share = any(share(row, first) != "-" for row in rows)
    header = ["benchmark", "unit", *drivers, *(f"vs {driver}" for driver in others)] + ["of limit"] * with_share
    cells = [[row["title"], row["unit"],
              *(number(row["results"][d]) if d in row["results"] else "-" for d in drivers),
              *(ratio(row, first, d) for d in others)] + [share(row, first)] * with_share for row in rows]
    return table([header, *cells], 2)


def limits(values: dict) -> str:
    rows = [[name, unit, number(values[key])] for key, name, unit in LIMITS if key in values]
    return table([["host limit", "unit", "measured"], *rows], 2)


def section(machine: dict) -> str:
    text = f"## {machine['machine']}\n"
    for run in machine["runs"]:
        text += f"\n### {run['title']}\n\n{run['date']}, version {run['version']}: `{run['command']}`\n\n"
        text += measurements(run["benchmarks"])
        if "limits" in run:
            text += "\n" + limits(run["limits"])
        for note in run.get("notes", []):
            text += f"\n{note}\n"
    return text


def page(folder: Path) -> str:
    machines = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    # What was measured last comes first.
    machines.sort(key=lambda machine: max(run["date"] for run in machine["runs"]), reverse=True)
    return "\n".join([INTRODUCTION, *(section(machine) for machine in machines)])


def add(options: argparse.Namespace):
    if options.file.exists():
        machine = json.loads(options.file.read_text())
    elif options.machine:
        machine = {"machine": options.machine, "runs": []}
    else:
        raise Problem(f"{options.file} is new: say with --machine what it describes.")
    run = {"title": options.title, "date": options.date, "version": options.version, "command": options.command,
           **compact(json.loads(options.report.read_text()))}
    titles = [old["title"] for old in machine["runs"]]
    if options.title in titles:
        machine["runs"][titles.index(options.title)] = run
    else:
        machine["runs"].append(run)
    save(options.file, machine)


def save(path: Path, machine: dict):
    """A benchmark a line, so that changes are easy to see."""
    runs = []
    for run in machine["runs"]:
        lines = [f"   {json.dumps(key)}: {json.dumps(value)}" for key, value in run.items() if key != "benchmarks"]
        rows = ",\n".join(f"    {json.dumps(row)}" for row in run["benchmarks"])
        runs.append("  {\n" + ",\n".join([*lines, f'   "benchmarks": [\n{rows}\n   ]']) + "\n  }")
    path.write_text(f'{{\n "machine": {json.dumps(machine["machine"])},\n "runs": [\n' + ",\n".join(runs) + "\n ]\n}\n")


def write(options: argparse.Namespace):
    text = page(options.folder)
    if not options.check:
        options.page.write_text(text)
    elif options.page.read_text() != text:
        raise Problem(f"{options.page} is not the page of {options.folder}: run tools/bench/numbers_page.py write.")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    adding = commands.add_parser("add", help="add a run to a machine's file")
    adding.add_argument("file", type=Path)
    adding.add_argument("report", type=Path)
    for name in ("title", "date", "version", "command"):
        adding.add_argument(f"--{name}", required=True)
    adding.add_argument("--machine", help="what a new file describes")
    adding.set_defaults(run=add)
    writing = commands.add_parser("write", help="write the page")
    writing.add_argument("--check", action="store_true", help="only compare it")
    writing.add_argument("--folder", type=Path, default=ROOT / "docs/numbers")
    writing.add_argument("--page", type=Path, default=ROOT / "docs/numbers.md")
    writing.set_defaults(run=write)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except Problem as problem:
        print(f"numbers_page.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
