"""Runs a selection of cases in parallel: batches of cases, a worker thread and a dEQP process for each.

Between run_cts.py, which selects cases and prints results, and deqp.py, which runs one batch.
"""

import concurrent.futures
import threading

import deqp

RETRIES = 3


def sample(cases, every):
    """Every nth case, beginning with the first."""
    return cases[::every]


def split(cases, jobs, size):
    """Batches of at most `size` neighbouring cases (they share the construction of their groups), and small
    enough that every job gets several, so that none waits long for the last."""
    size = max(1, min(size, -(-len(cases) // (jobs * 4))))
    return [cases[start:start + size] for start in range(0, len(cases), size)]


def run_all(binary, cases, baseline, jobs, size, report):
    """Runs all cases and gives their results in the order of the cases. Stopped by KeyboardInterrupt, it gives
    those that there are, and `binary.stopping` is set.

    `report` is called with each final result, from one thread at a time. A flake that fails is run again,
    alone; if it passes then its status is "flake".
    """
    results = {}
    lock = threading.Lock()

    def take(result):
        if baseline.wants_retry(result):
            result = retry(binary, result)
        with lock:
            results[result.case] = result
            report(result)

    def run_one(batch):
        deqp.run_batch(binary, batch, take)

    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(run_one, batch) for batch in split(cases, jobs, size)]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except KeyboardInterrupt:
            binary.stopping.set()
        except BaseException:
            binary.stopping.set()
            raise
    return [results[case] for case in cases if case in results]


def retry(binary, failed):
    """The result of a flake: "flake" if it passes when run again, else its first failure."""
    for _ in range(RETRIES):
        again = []
        deqp.run_batch(binary, [failed.case], again.append)
        if again and again[0].status in ("pass", "warning"):
            return deqp.Result(failed.case, "flake", f"failed at first: {failed.detail}", failed.seconds)
    return failed
