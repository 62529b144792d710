"""The baseline of a machine: every case of every model with onnxruntime, as a table and as JSON."""

import json
import os
import pathlib
import subprocess
import sys
import time

import onnxruntime

from tools.models.cases import read_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIET_CORES = 0.1  # what other processes may take of the cores that a case is measured on


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def disturbance(row):
    """Cores that others took beyond those that the threads leave free."""
    return max(0.0, row["others_cores"] - (os.cpu_count() - row["threads"]))


def measured(path, label, threads, seconds, attempts):
    """One case; tried again while other processes disturbed it, and the least disturbed result is kept."""
    best = None
    for attempt in range(attempts):
        if attempt:
            time.sleep(5)
        result = subprocess.run([sys.executable, "-m", "tools.models.measure", str(path.resolve()), label, str(threads),
                                 str(seconds)], cwd=ROOT, capture_output=True, text=True)
        if result.returncode:
            return {"model": path.stem, "case": label, "threads": threads, "error": result.stderr.strip()[-500:]}
        row = json.loads(result.stdout.splitlines()[-1])
        if best is None or disturbance(row) < disturbance(best):
            best = row
        if disturbance(best) < QUIET_CORES:
            break
    return best


def table_line(row):
    if "error" in row:
        return f"| {row['model']} | {row['case']} | {row['threads']} | {row['error'].splitlines()[-1]} |"
    rate = row["gflop"] / row["median_ms"] * 1e3
    taken = disturbance(row)
    disturbed = f" ({taken:.1f} cores disturbed)" if taken >= QUIET_CORES else ""
    return (f"| {row['model']} | {row['case']} | {row['threads']} | {row['median_ms']:.2f}{disturbed} | "
            f"{row['least_ms']:.2f} | {row['gflop']:.3f} | {rate:.0f} | {row['peak_bytes'] / 2**20:.0f} | "
            f"{(row['peak_bytes'] - row['before_bytes']) / 2**20:.0f} |")


HEADER = ["| model | case | threads | median ms | least ms | GFLOP | GFLOP/s | peak MiB | of the model MiB |",
          "|---|---|---|---|---|---|---|---|---|"]


def baseline(paths, threads, seconds, all_cases, attempts, output):
    """Prints the table line by line and writes what is there after each line to `output`, if given."""
    report = {"processor": processor(), "cores": os.cpu_count(), "onnxruntime": onnxruntime.__version__, "rows": []}
    print("\n".join(HEADER), flush=True)
    for path in paths:
        cases = read_cases(path)
        for case in cases if all_cases else cases[:1]:
            for count in threads:
                row = measured(path, case.label, count, seconds, attempts)
                report["rows"].append(row)
                print(table_line(row), flush=True)
                if output:
                    pathlib.Path(output).write_text(json.dumps(report, indent=1) + "\n")
    return all("error" not in row for row in report["rows"])
