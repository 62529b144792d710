#!/usr/bin/env python3
"""Runs ggml's test-backend-ops through a Vulkan driver, or on our own backend of ggml, and prints a table,
an operator a line.

ggml's own CPU backend is the judge. Each operator runs in a process of its own, so a crash or an endless
kernel costs that operator only. tools/clients/setup.sh brings the programs.

    tools/clients/backend_ops.py                          every operator, on Fornax
    tools/clients/backend_ops.py --ops 'MUL_MAT|ADD'      operators whose names match
    tools/clients/backend_ops.py --driver lavapipe        on the peer of the same suite
    tools/clients/backend_ops.py --params 'type=f16'      cases whose parameters match
    tools/clients/backend_ops.py --backend FORNAX0        on libggml-fornax.so, not on ggml's Vulkan backend

Ends with status 1 if a case fails, crashes or runs out of time.
"""

import argparse
import concurrent.futures
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from programs import Programs, default_folder, table

# A failed case says before its name by how much it is off.
CASE = re.compile(r"^(?:\s+|(\[\w+\].*?)\s+)(\w+)(\([a-zA-Z].*\)): (.*)$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Outcome:
    """What the cases of one operator did."""
    operator: str
    passed: int = 0
    unsupported: int = 0
    seconds: float = 0
    problem: str = ""  # crash or time-out
    failures: list[str] = field(default_factory=list)  # the cases with their message

    @property
    def good(self) -> bool:
        return not self.failures and not self.problem

    def row(self) -> list[str]:
        return [self.operator, str(self.passed), str(len(self.failures)), str(self.unsupported),
                f"{self.seconds:.1f}", self.problem]


def parse_output(operator: str, text: str) -> Outcome:
    """Counts the cases of a run. A case's line may come in pieces when kernels print between."""
    outcome = Outcome(operator)
    for line in COLOUR.sub("", text).splitlines():
        match = CASE.match(line)
        if not match:
            continue
        error, name, parameters, result = match.groups()
        if result.startswith("not supported"):
            outcome.unsupported += 1
        elif result.rstrip().endswith("OK"):
            outcome.passed += 1
        else:
            outcome.failures.append(f"{name}{parameters}: {result} {error or ''}")
    return outcome


# They take most of the time, so that they had better not begin last.
LONGEST = ("FLASH_ATTN_EXT", "MUL_MAT", "MUL_MAT_ID")


def run_operator(programs: Programs, operator: str, options) -> Outcome:
    start = time.monotonic()
    arguments = ["test", "-b", options.backend, "-o", operator]
    if options.params:
        arguments += ["-p", options.params]
    code, text = programs.run(programs.operators, arguments,
                              programs.environment(options.driver, own_backend=options.backend != "Vulkan0"),
                              options.timeout)
    outcome = parse_output(operator, text)
    outcome.seconds = time.monotonic() - start
    if code is None:
        outcome.problem = f"out of time ({options.timeout:.0f} s)"
    elif code < 0:
        outcome.problem = f"ended by signal {-code}"
    elif code != 0 and not outcome.failures:
        outcome.problem = f"exit status {code}"
    elif options.backend not in text:
        outcome.problem = f"ggml found no device {options.backend}"
    if options.log:
        options.log.mkdir(parents=True, exist_ok=True)
        (options.log / f"{operator}.log").write_text(text)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="fornax", help="fornax (of build/release), lavapipe, or a manifest")
    parser.add_argument("--backend", default="Vulkan0", choices=("Vulkan0", "FORNAX0"),
                        help="ggml's Vulkan backend, or libggml-fornax.so of build/release")
    parser.add_argument("--ops", default="", help="operators whose whole names match this expression")
    parser.add_argument("--params", default="", help="only cases whose parameters match this expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one operator")
    parser.add_argument("--log", type=Path, help="folder for each operator's output")
    parser.add_argument("--show", type=int, default=5, help="failed cases to show per operator")
    parser.add_argument("--clients", type=Path, default=default_folder(),
                        help="the folder that tools/clients/setup.sh fills")
    options = parser.parse_args()

    programs = Programs(options.clients.resolve())
    if not programs.manifest(options.driver).exists():
        sys.exit(f"The manifest {programs.manifest(options.driver)} does not exist.")
    _, listed = programs.run(programs.operators, ["test", "--list-ops"], {}, 60)
    operators = [w for w in re.findall(r"^\s*([A-Z][A-Z0-9_]+)\s*$", listed, re.MULTILINE)
                 if not options.ops or re.fullmatch(options.ops, w)]
    if not operators:
        sys.exit(f"No operator matches '{options.ops}'.")

    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        longest_first = sorted(operators, key=lambda o: o not in LONGEST)
        running = {pool.submit(run_operator, programs, o, options) for o in longest_first}
        for done in concurrent.futures.as_completed(running):
            outcomes.append(done.result())
            print(f"\r[{len(outcomes)}/{len(operators)}] {outcomes[-1].operator:32}", end="", file=sys.stderr)
    print(file=sys.stderr)

    outcomes.sort(key=lambda o: operators.index(o.operator))
    total = Outcome("all", sum(o.passed for o in outcomes), sum(o.unsupported for o in outcomes),
                    sum(o.seconds for o in outcomes), "",
                    [f for o in outcomes for f in o.failures])
    shown = [o for o in outcomes if o.passed or not o.good]
    print(table([["operator", "passed", "failed", "not supported", "seconds", "problem"],
                 *[o.row() for o in shown], total.row()]))
    for outcome in outcomes:
        for failure in outcome.failures[:options.show]:
            print(failure)
    return 0 if all(o.good for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
