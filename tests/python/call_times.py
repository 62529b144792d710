"""How long calls take: what the benchmarks of calls share."""

import time


def measure(calls_of, calls):
    """{way: times in us}, the ways in turns so that they meet the same machine."""
    times = {name: [] for name in calls_of}
    for _ in range(10):
        for name, call in calls_of.items():
            for _ in range(200):
                call()
            for _ in range(calls // 10):
                begin = time.perf_counter_ns()
                call()
                times[name].append((time.perf_counter_ns() - begin) / 1000)
    return times
