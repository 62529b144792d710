"""Runs the Khronos conformance tests (an external dEQP-VK binary) against a Vulkan driver.

Usage: run_cts.py --deqp PATH/deqp-vk [--driver MANIFEST.json] [--caselist FILE | PATTERN ...]

Cases run in parallel batches; crashes and hangs cost their case and no other. Prints a table a group and
the causes of failures, exits with 1 if a result is unexpected, with 2 if the run could not be made or was
stopped (Ctrl-C or SIGTERM), in which case it prints and writes what there is.
docs/conformance.md says how it is used.
"""

import argparse
import fnmatch
import os
import re
import signal
import sys
import time

import baseline
import batches
import deqp
import report


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description="Runs dEQP-VK against a Vulkan driver.")
    parser.add_argument("patterns", nargs="*", default=[], metavar="PATTERN",
                        help="cases to run, such as 'dEQP-VK.compute.*'")
    parser.add_argument("--deqp", required=True, metavar="FILE", help="the dEQP-VK binary")
    parser.add_argument("--driver", metavar="FILE", help="the driver's manifest; without it the loader chooses")
    parser.add_argument("--caselist", metavar="FILE", action="append", default=[],
                        help="a file with the names of cases; patterns then select among them")
    parser.add_argument("--exclude", metavar="PATTERN", action="append", default=[], help="cases to leave out")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="run every Nth case only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes at a time")
    parser.add_argument("--batch", type=int, default=500, metavar="N", help="cases a process, at most")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds a case may take")
    parser.add_argument("--lists", default=baseline.FOLDER, metavar="FOLDER", help="another folder of lists")
    parser.add_argument("--depth", type=int, default=2, metavar="N", help="parts of a name that make a group")
    parser.add_argument("--results", metavar="FILE", help="write each case's result here")
    parser.add_argument("--compare", metavar="FILE",
                        help="a results file of another driver: list what passes there and not here")
    options, deqp_arguments = parser.parse_known_args(arguments)
    wrong = [argument for argument in deqp_arguments if not argument.startswith("--deqp-")]
    if wrong:
        parser.error(f"unknown arguments: {' '.join(wrong)} (what begins with --deqp- goes to the binary)")
    if not options.patterns and not options.caselist:
        parser.error("no cases: give patterns or --caselist")
    if min(options.sample, options.jobs, options.batch) < 1 or options.timeout <= 0:
        parser.error("--sample, --jobs, --batch and --timeout take positive numbers")
    return options, deqp_arguments


def make_binary(options, deqp_arguments):
    environment = dict(os.environ)
    # The files below are read by the loader; layers that a user's system adds do not belong into a verdict.
    environment["VK_LOADER_LAYERS_DISABLE"] = "~implicit~"
    if options.driver:
        manifest = os.path.abspath(options.driver)
        if not os.path.isfile(manifest):
            raise RuntimeError(f"the driver's manifest {manifest} does not exist")
        environment["VK_DRIVER_FILES"] = environment["VK_ICD_FILENAMES"] = manifest
    fixed = ["--deqp-log-images=disable", "--deqp-log-shader-sources=disable", "--deqp-shadercache=disable"]
    return deqp.Binary(os.path.abspath(options.deqp), (*fixed, *deqp_arguments), environment, options.timeout)


def matcher(patterns):
    """A predicate for names that match one of the patterns, in which only `*` is special."""
    escaped = [fnmatch.translate(pattern.replace("[", "[[]").replace("?", "[?]")) for pattern in patterns]
    compiled = re.compile("|".join(escaped) or r"(?!)")
    return lambda case: bool(compiled.match(case))


def read_case_list(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file]
    return [line for line in lines if line]


def select(options, binary, skips):
    """The names of the cases to run, each once: those of the files or else those that the binary lists."""
    if options.caselist:
        cases = [case for path in options.caselist for case in read_case_list(path)]
        if options.patterns:
            cases = list(filter(matcher(options.patterns), cases))
    else:
        cases = [case for pattern in options.patterns for case in deqp.list_cases(binary, pattern)]
    excluded = matcher(options.exclude)
    cases = [case for case in dict.fromkeys(cases) if not excluded(case) and not skips.matches(case)]
    return batches.sample(cases, options.sample)


class Progress:
    """Prints failures as they come, and now and then how far the run is."""

    def __init__(self, total, lists):
        self._total, self._lists = total, lists
        self._done = self._bad = 0
        self._said = time.monotonic()

    def __call__(self, result):
        status = self._lists.judge(result)
        self._done += 1
        if status in report.UNEXPECTED:
            self._bad += 1
            print(f"{status}: {result.case}: {result.detail[:300]}", flush=True)
        if time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            print(f"... {self._done} of {self._total} cases, {self._bad} bad", flush=True)


def run(options, deqp_arguments):
    binary = make_binary(options, deqp_arguments)
    lists = baseline.Baseline.read(options.lists)
    cases = select(options, binary, lists.skips)
    if not cases:
        raise RuntimeError("the selection holds no cases")
    other = report.read_results(options.compare) if options.compare else None
    started = time.monotonic()
    results = batches.run_all(binary, cases, lists, options.jobs, options.batch, Progress(len(cases), lists))
    judged = [(result, lists.judge(result)) for result in results]
    if options.results:
        report.write_results(options.results, judged)
    print("", *report.table(judged, options.depth), "", *report.causes(judged), sep="\n")
    if other is not None:
        lost = report.lost(judged, other)
        print(f"\n{len(lost)} cases pass in {options.compare} and not here")
        print(*(f"    {status}: {result.case}" for result, status in lost), sep="\n")
    seconds = time.monotonic() - started
    if binary.stopping.is_set():
        print(f"\nstopped: {len(judged)} of {len(cases)} cases have a result, in {seconds:.0f} s")
        return 2
    print(f"\n{len(cases)} cases in {seconds:.0f} s")
    return 1 if any(status in report.UNEXPECTED for _, status in judged) else 0


def stop(number, frame):
    """As Ctrl-C, but once: timeout(1) sends its signal to the process and to its group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, stop)
    try:
        return run(*parse_arguments(sys.argv[1:]))
    except (RuntimeError, OSError) as error:
        print(f"run_cts.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
