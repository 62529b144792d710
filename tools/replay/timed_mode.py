"""How much slower a program runs while its time is modelled: the same command in turns without and with FORNAX_NPU.

Usage: python3 -m tools.replay.timed_mode [options] -- COMMAND...

Each run is a process of its own. The first of each kind fills the caches and does not count; then runs take turns, and the
table has the medians, and the ratio of the medians. Time is the wall clock's, the processor's of the process and its children (--cpu: on a machine that
does other work as well), or a number that the command prints (--number).
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time


class TimedModeError(Exception):
    """The text is a sentence."""


def environments(options, records):
    """What each kind of run has in its environment."""
    clean = {key: value for key, value in os.environ.items() if key not in ("FORNAX_NPU", "FORNAX_NPU_RECORDS")}
    timed = dict(clean, FORNAX_NPU=options.npu)
    if options.records:
        timed["FORNAX_NPU_RECORDS"] = records
    return {"host": clean, "timed": timed}


def processor_seconds():
    """Of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(options, environment):
    clock = processor_seconds if options.cpu else time.monotonic
    begin = clock()
    ran = subprocess.run(options.command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    seconds = clock() - begin
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip() or "It said nothing.").splitlines()[-1]
        raise TimedModeError(f"{options.command[0]} ended with {ran.returncode}: {last}")
    if not options.number:
        return seconds
    found = re.search(options.number, ran.stdout)
    if not found:
        raise TimedModeError(f"{options.command[0]} printed nothing that matches {options.number}.")
    return float(found[1])


def compare(options):
    """The numbers of each kind of run."""
    with tempfile.TemporaryDirectory(prefix="fornax_timed_mode_") as folder:
        kinds = environments(options, os.path.join(folder, "records.%p.jsonl"))
        numbers = {kind: [] for kind in kinds}
        for turn in range(options.runs + 1):
            for kind, environment in kinds.items():
                number = run(options, environment)
                if turn > 0:
                    numbers[kind].append(number)
    return numbers


def slower(numbers, is_rate):
    """In percent, of the medians."""
    host, timed = (statistics.median(numbers[kind]) for kind in ("host", "timed"))
    return 100 * ((host / timed if is_rate else timed / host) - 1)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools.replay.timed_mode", description=__doc__.splitlines()[0])
    parser.add_argument("--npu", default="laptop-45", help="the described machine (default: laptop-45)")
    parser.add_argument("--records", action="store_true", help="write the cost records as well")
    parser.add_argument("--runs", type=int, default=5, help="of each kind")
    parser.add_argument("--cpu", action="store_true", help="compare the processor's time")
    parser.add_argument("--number", help="a regular expression whose group in the output is the number, such as tokens a second")
    parser.add_argument("--rate", action="store_true", help="more of the number is faster")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error(f"--runs is {options.runs}; it must be at least 1.")
    if options.number and re.compile(options.number).groups != 1:
        parser.error("--number needs one group.")
    return options


def main(arguments):
    options = parse(arguments)
    try:
        numbers = compare(options)
    except (TimedModeError, OSError) as error:
        sys.exit(f"timed_mode: {error}")
    for kind, values in numbers.items():
        print(f"{kind:<6} {statistics.median(values):.4g}  ({min(values):.4g} to {max(values):.4g}, {len(values)} runs)")
    print(f"timed mode is {slower(numbers, options.rate):+.1f} % slower")


if __name__ == "__main__":
    main(sys.argv[1:])
