"""What the programs of this folder share: cases of a client are run, compared and timed, and each is one line of JSON.

A case is a function that runs once and returns its result, and the expected result. compute_clients.py reads the lines.
"""

import json
import os
import statistics
import sys
import time

import numpy as np

WARM_UP_SECONDS = 2.0  # the driver's optimized tier comes in the background
MEASURED_SECONDS = 1.5
LEAST_RUNS = 3
FAST = 0.8  # of the steady speed
ONCE = "FORNAX_CLIENT_CASES_ONCE" in os.environ  # for tests of results alone


def seconds_of(run) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def reached(early: list[float], steady: float) -> dict[str, float]:
    """The first run that has FAST of the steady speed, and the seconds from the first of `early` to its end; nothing if none has."""
    for index, seconds in enumerate(early):
        if steady >= FAST * seconds:
            return {"fast_run": index + 2, "fast_after_seconds": sum(early[:index + 1])}
    return {}


def measured(run) -> dict[str, float]:
    """Median seconds of a run, after runs that do not count, and how these come to it: the first of them is the process' second where
    the result was looked at before."""
    begin = time.perf_counter()
    early = [seconds_of(run)]
    if ONCE:
        return {"seconds": early[0]}
    while len(early) < LEAST_RUNS or time.perf_counter() - begin < WARM_UP_SECONDS:
        early.append(seconds_of(run))
    times: list[float] = []
    while len(times) < LEAST_RUNS or sum(times) < MEASURED_SECONDS:
        times.append(seconds_of(run))
    steady = statistics.median(times)
    return {"seconds": steady, "second_run_seconds": early[0], **reached(early, steady)}


def measure(run) -> float:
    """The median alone."""
    return measured(run)["seconds"]


def is_close(result, expected, tolerance: float = 0.0, share: float = 0.0) -> bool:
    """Whether all elements, but for a share of them, differ by at most the tolerance of the largest expected one.
    A share is for loops that a rounding of floats may end an iteration earlier."""
    result, expected = np.asarray(result), np.asarray(expected)
    if result.shape != expected.shape or not np.all(np.isfinite(result)):
        return False
    difference = np.abs(result.astype(np.float64) - expected.astype(np.float64))
    scale = float(np.abs(expected.astype(np.float64)).max())
    return bool(np.count_nonzero(difference > tolerance * scale) <= share * expected.size)


def report(case: str, **values):
    print(json.dumps({"case": case, **values}), flush=True)


def report_error(case: str, error: Exception):
    report(case, right=False, error=f"{type(error).__name__}: {error}".splitlines()[0][:200])
    print(f"{case}: {error}", file=sys.stderr)


def run_case(case: str, run, expected, tolerance: float = 0.0, share: float = 0.0):
    """Runs, compares with the expected result and times one case; `run` waits and returns the result."""
    try:
        right = is_close(run(), expected, tolerance, share)
        report(case, right=right, **measured(run))
    except Exception as error:  # whatever a client raises is its answer
        report_error(case, error)
