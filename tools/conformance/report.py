"""What a run of the conformance tests prints and writes: the table a group, the failures by cause, the files.

The last step of run_cts.py. Statuses here are judged ones (baseline.py).
"""

import collections
import re

import deqp

COLUMNS = ("cases", "pass", "warning", "unsupported", "fail", "crash", "hang", "missing", "expected", "surprise",
           "flake")
# Any of these makes the run a failed one.
UNEXPECTED = ("fail", "crash", "hang", "missing", "surprise")


def group_of(case, depth):
    """The first `depth` parts of a case's name below the package: dEQP-VK.a.b.c is of group a.b at depth 2."""
    parts = case.split(".")
    return ".".join(parts[1:-1][:depth]) or parts[0]


def count(judged, depth):
    """{group: Counter of statuses} in order of the groups' first cases; `judged` is [(result, status)]."""
    groups = {}
    for result, status in judged:
        counter = groups.setdefault(group_of(result.case, depth), collections.Counter())
        counter["cases"] += 1
        counter[status] += 1
    return groups


def table(judged, depth):
    """The table a group, as lines of Markdown; columns without a number are left out."""
    groups = count(judged, depth)
    total = sum(groups.values(), collections.Counter())
    columns = [name for name in COLUMNS if name in ("cases", "pass") or total[name]]
    rows = [["group", *columns]]
    rows += [[group, *(str(counter[name]) for name in columns)] for group, counter in groups.items()]
    rows.append(["total", *(str(total[name]) for name in columns)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
    lines = ["| " + " | ".join([row[0].ljust(widths[0])]
                               + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]) + " |"
             for row in rows]
    rule = "|" + "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":"
                          for i, width in enumerate(widths)) + "|"
    return [lines[0], rule, *lines[1:]]


def cause(detail):
    """A detail without what differs from case to case, so that failures of one cause count together."""
    text = re.sub(r"0x[0-9a-fA-F]+|[-+]?\d+(\.\d+)?", "#", detail)
    return re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]", "...", text)[:160]


def causes(judged, statuses=UNEXPECTED):
    """Lines that list the causes of bad results, the most frequent first, each with its first cases."""
    found = {}
    for result, status in judged:
        if status in statuses:
            found.setdefault((status, cause(result.detail)), []).append(result)
    lines = []
    for (status, _), results in sorted(found.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(results)} x {status}: {results[0].detail[:400]}")
        lines += [f"    {result.case}" for result in results[:3]]
    return lines


def write_results(path, judged):
    """One line a case: name, status, seconds, detail, separated by tabulators."""
    with open(path, "w", encoding="utf-8") as file:
        for result, status in judged:
            detail = result.detail.replace("\t", " ")
            file.write(f"{result.case}\t{status}\t{result.seconds:.2f}\t{detail}\n")


def read_results(path):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [(deqp.Result(case, status, detail, float(seconds)), status) for case, status, seconds, detail in rows]


def lost(judged, other):
    """The cases that pass in `other` (another driver's results) but not here."""
    good = ("pass", "warning", "flake")
    passes = {result.case for result, status in other if status in good}
    return [(result, status) for result, status in judged if status not in good and result.case in passes]
