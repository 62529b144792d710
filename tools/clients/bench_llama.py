#!/usr/bin/env python3
"""Measures llama.cpp on Fornax, on lavapipe and on ggml's own CPU backend, and prints one table.

Drivers: `plugin` is libggml-fornax.so, `fornax` and `lavapipe` are ggml's Vulkan backend on that driver. The
ratios are of the first one to the others. Operators run in test-backend-ops' perf mode, a 1.1-billion-parameter model of seeded weights in
llama-bench; the drivers take turns, and the median of the repetitions counts. What is measured runs once
before, with FORNAX_TIER=1, so that the driver's disk cache has the optimized tier of its kernels: the largest
take longer to compile than some of the rows run. `first token` is the wall time from the start of a
process to its first token, `after a prompt` the time for each of the next 24 tokens: this backend still packs
weights there. `after 1024` generates tokens behind as many others. `of read` is the share of the memory's read
bandwidth (`fornax bench limits`, before and after each run) at which the first driver reads the file's weights.
Operators are not measured on `plugin`: perf mode repeats a node with the same inputs, which is then computed once.
tools/clients/setup.sh brings the programs; models are written to the models folder once (9.5 GB).

    fornax bench llama                          the whole table; lavapipe takes most of an hour
    fornax bench llama --drivers plugin,fornax,cpu     without lavapipe
    fornax bench llama --filter 'q4_0|soft_max' rows whose names match
    fornax bench llama --drivers plugin,cpu --filter '(pp|tg).*q._K$'    k-quants
    fornax bench llama --drivers fornax,plugin,cpu --filter 270m         a small model of mixed types
    fornax bench llama --drivers plugin,cpu --filter 'token|prompt'     the begin of a process
    fornax bench llama --drivers fornax,../older/build/release/icd/fornax_icd.x86_64.json    beside another build
"""

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import gguf

from programs import ROOT, Programs, default_folder, table

PERF = re.compile(r"([\d.]+) us/run -\s*([\d.]+) (\w+)/run -\s*(?:\x1b\[[\d;]*m)?\s*([\d.]+) (\w+)")
THREADS = "2"
EVALUATION = re.compile(r"(?<!prompt )eval time =\s*([\d.]+) ms /\s*(\d+) runs")
PROMPT = 512
GENERATED = 64
AFTER_PROMPT = 24
DEPTH = 1024
# Types of the models; those that llama-quantize has to write are made of the model of f16.
TYPES = ("f16", "bf16", "q8_0", "q4_0", "q4_K", "q2_K", "q3_K", "q5_K", "q6_K")
# The mixture of types that llama-quantize makes by default, with Gemma 3's smallest shape.
SMALL = "270m q4_K_M"
DRIVERS = ("plugin", "fornax", "lavapipe", "cpu")
DEVICES = {"plugin": "FORNAX0", "cpu": "CPU"}  # as ggml names them; else Vulkan0


@dataclass
class Row:
    """A line of the table. Larger is better unless the unit is seconds."""
    name: str
    unit: str
    measure: object  # (bench, driver) -> float
    weights: str = ""  # tokens of this type are generated: memory's bandwidth is the limit
    without: tuple[str, ...] = ()  # drivers on which it would mean nothing
    shares: dict[str, list[float]] = field(default_factory=dict)  # of the bandwidth, by driver
    values: dict[str, list[float]] = field(default_factory=dict)  # by driver
    problems: dict[str, str] = field(default_factory=dict)


class Problem(Exception):
    """Why a measurement is missing."""


@dataclass
class Bench:
    programs: Programs
    models: Path
    timeout: float
    warm: set[tuple] = field(default_factory=set)  # (driver, arguments...) that have run

    def environment(self, driver: str) -> dict[str, str]:
        if driver == "cpu":
            return {}
        if driver == "plugin":
            return self.programs.environment("fornax", own_backend=True)
        return self.programs.environment(driver)

    def run(self, program: Path, arguments: list[str], driver: str, tier: str | None = None) -> str:
        environment = self.environment(driver)
        if tier:
            environment["FORNAX_TIER"] = tier
        code, text = self.programs.run(program, arguments, environment, self.timeout)
        if code != 0:
            end = text.strip().splitlines()[-1:] or [""]
            raise Problem(f"more than {self.timeout:.0f} s" if code is None else f"status {code}: {end[0]}")
        return text

    def run_warm(self, program: Path, arguments: list[str], driver: str) -> str:
        """As run, with the driver's disk cache filled by an earlier run: kernels are not what is measured."""
        key = (driver, program, *arguments)
        if driver != "cpu" and key not in self.warm:
            self.run(program, arguments, driver, tier="1")
            self.warm.add(key)
        return self.run(program, arguments, driver)

    def operator(self, name: str, parameters: str, driver: str) -> float:
        """GFLOP/s, or GB/s for operators without floating-point operations to count."""
        backend = DEVICES.get(driver, "Vulkan0")
        text = self.run_warm(self.programs.operators,
                             ["perf", "-b", backend, "-o", name, "-p", parameters], driver)
        found = PERF.findall(text)
        if len(found) != 1:
            raise Problem(f"{len(found)} cases match instead of one")
        _, _, _, rate, unit = found[0]
        return float(rate) * {"TFLOPS": 1000, "GFLOPS": 1, "MFLOPS": 1e-3, "GB": 1, "MB": 1e-3}[unit]

    def model(self, name: str) -> Path:
        """A model by its type, and by its shape where that is not the one of 1.1 billion parameters: "270m q4_K_M"."""
        shape, type_name = name.split() if " " in name else ("1b", name)
        path = self.models / f"llama-{shape}-{type_name}.gguf"
        if not path.exists():
            print(f"writing {path}", file=sys.stderr)
            self.models.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            if "_K" in type_name:  # which the Python package does not write
                pure = ["--pure"] if type_name.endswith("_K") else []
                self.run(self.programs.folder / "usr/bin/llama-quantize",
                         [*pure, str(self.model(f"{shape} f16")), str(fresh), type_name], "cpu")
            else:
                subprocess.run([ROOT / ".venv/bin/python3", Path(__file__).with_name("write_llama.py"), fresh,
                                "--type", type_name, "--shape", shape], check=True)
            fresh.rename(path)
        return path

    def bytes_a_token(self, name: str) -> int:
        """Bytes of the weights that each token reads: all but the embeddings, of which it reads a row unless they are the output matrix."""
        sizes = {tensor.name: int(tensor.n_bytes) for tensor in gguf.GGUFReader(self.model(name)).tensors}
        if "output.weight" in sizes:
            sizes.pop("token_embd.weight")
        return sum(sizes.values())

    def read_bandwidth(self) -> float:
        """Bytes a second that all threads read from memory now."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "limits.json"
            subprocess.run([ROOT / "build/release/bin/fornax", "bench", "limits", "--json", path], check=True,
                           stdout=subprocess.DEVNULL)
            return json.loads(path.read_text())["read_gbs"] * 1e9

    def on_device(self, driver: str) -> list[str]:
        if driver == "cpu":
            return ["-dev", "none", "-ngl", "0"]
        return ["-dev", DEVICES.get(driver, "Vulkan0"), "-ngl", "99"]

    def llama(self, type_name: str, prompt: int, generated: int, driver: str, depth: int = 0) -> float:
        """Tokens a second, behind `depth` others."""
        text = self.run_warm(self.programs.folder / "usr/bin/llama-bench",
                             ["-m", str(self.model(type_name)), "-p", str(prompt), "-n", str(generated), "-d",
                              str(depth), "-r", "1", "-t", THREADS, "-o", "json", *self.on_device(driver)], driver)
        results = json.loads(text[text.index("[\n"):text.rindex("]") + 1])
        return results[0]["avg_ts"]

    def complete(self, type_name: str, generated: int, driver: str) -> tuple[float, str]:
        """Seconds of a process that goes on with a short prompt, the second of two, and what it says."""
        for _ in range(2):
            start = time.monotonic()
            text = self.run(self.programs.folder / "usr/bin/llama-completion",
                            ["-m", str(self.model(type_name)), "-p", "fornax ", "-n", str(generated), "-t", THREADS,
                             "-no-cnv", "--no-warmup", "--ignore-eos", *self.on_device(driver)], driver)
            seconds = time.monotonic() - start
        return seconds, text

    def first_token(self, type_name: str, driver: str) -> float:
        """Seconds from the start of the process."""
        return self.complete(type_name, 1, driver)[0]

    def after_prompt(self, type_name: str, driver: str) -> float:
        """Seconds for each of the tokens that follow the first one."""
        text = self.complete(type_name, AFTER_PROMPT + 1, driver)[1]
        found = EVALUATION.findall(text)
        if len(found) != 1 or int(found[0][1]) != AFTER_PROMPT:
            raise Problem(f"it does not tell the time of {AFTER_PROMPT} tokens")
        return float(found[0][0]) / AFTER_PROMPT / 1000


def operator_row(label: str, name: str, parameters: str, unit: str) -> Row:
    return Row(label, unit, lambda bench, driver: bench.operator(name, parameters, driver), without=("plugin",))


def all_rows() -> list[Row]:
    rows = []
    for columns in (512, 1):
        for type_name in ("f16", "bf16", "q8_0", "q4_0", "q4_K"):
            rows.append(operator_row(
                f"mul_mat {type_name} n={columns}", "MUL_MAT",
                rf"type_a={type_name},type_b=f32,m=4096,n={columns},k=14336,bs=\[1,1\],nr=\[1,1\]", "GFLOP/s"))
    rows += [
        operator_row("flash_attn 128 kv=4096 n=1", "FLASH_ATTN_EXT",
                     r"hsk=128,hsv=128,nh=8,nr23=\[4,1\],kv=4096,nb=1,.*type_KV?=f16", "GFLOP/s"),
        operator_row("flash_attn 64 q8_0 n=512", "FLASH_ATTN_EXT",
                     r"hsk=64,hsv=64,nh=8,nr23=\[8,1\],kv=7680,nb=512,.*=q8_0", "GFLOP/s"),
        operator_row("soft_max 8192x16", "SOFT_MAX", r"ne=\[8192,16,1,1\]", "GB/s"),
        operator_row("rope f32 128x32x512", "ROPE",
                     r"type=f32,ne_a=\[128,32,512,1\],.*ff=0,v=0,", "GB/s"),
        operator_row("cpy f32 to f16 512x3072", "CPY",
                     r"type_src=f32,type_dst=f16,ne_src=\[512,3072,1,1\],permute_src=\[0,0,0,0\]", "GB/s"),
        operator_row("cpy f32 8192x512x2 permuted", "CPY",
                     r"type_src=f32,type_dst=f32,ne_src=\[8192,512,2,1\],permute_src=\[0,2,1,3\]", "GB/s"),
        operator_row("sum_rows 8192x8192", "SUM_ROWS", r"ne=\[8192,8192,1,1\]", "GB/s"),
    ]
    for type_name in (*TYPES, SMALL):
        rows.append(Row(f"pp{PROMPT} {type_name}", "tokens/s",
                        lambda bench, driver, t=type_name: bench.llama(t, PROMPT, 0, driver)))
        rows.append(Row(f"tg{GENERATED} {type_name}", "tokens/s",
                        lambda bench, driver, t=type_name: bench.llama(t, 0, GENERATED, driver), weights=type_name))
        rows.append(Row(f"first token {type_name}", "s",
                        lambda bench, driver, t=type_name: bench.first_token(t, driver)))
        rows.append(Row(f"after a prompt {type_name}", "s",
                        lambda bench, driver, t=type_name: bench.after_prompt(t, driver)))
    rows.append(Row(f"tg{GENERATED} q4_0 after {DEPTH}", "tokens/s",
                    lambda bench, driver: bench.llama("q4_0", 0, GENERATED, driver, DEPTH)))
    return rows


def cell(row: Row, driver: str) -> str:
    if driver in row.values:
        return f"{statistics.median(row.values[driver]):.3g}"
    return "-"


def ratio(row: Row, first: str, driver: str) -> str:
    """How many times better the first driver is."""
    if first not in row.values or driver not in row.values:
        return "-"
    own, other = (statistics.median(row.values[d]) for d in (first, driver))
    return f"{other / own if row.unit == 's' else own / other:.2f}"


def share(row: Row, driver: str) -> str:
    return f"{100 * statistics.median(row.shares[driver]):.0f} %" if driver in row.shares else ""


def show_progress(step: str):
    if sys.stderr.isatty():
        print(f"\r\033[K{step}", end="", file=sys.stderr, flush=True)


def measure(rows: list[Row], drivers: list[str], bench: Bench, repetitions: int):
    for round_number in range(repetitions):
        for row in rows:
            for driver in drivers:
                if driver in row.problems or driver in row.without:
                    continue
                step = f"[{round_number + 1}/{repetitions}] {row.name} on {driver}"
                show_progress(step)
                try:
                    bandwidths = [bench.read_bandwidth()] if row.weights else []
                    value = row.measure(bench, driver)
                    if row.weights:
                        bandwidths.append(bench.read_bandwidth())
                        row.shares.setdefault(driver, []).append(
                            value * bench.bytes_a_token(row.weights) / statistics.mean(bandwidths))
                except Problem as problem:
                    row.problems[driver] = str(problem)
                    row.values.pop(driver, None)
                    row.shares.pop(driver, None)
                    continue
                row.values.setdefault(driver, []).append(value)
                show_progress("")
                print(f"{step}: {value:.3g} {row.unit}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="fornax bench llama", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drivers", default=",".join(DRIVERS),
                        help=f"of {', '.join(DRIVERS)}, or a Vulkan driver's manifest file (separated by commas)")
    parser.add_argument("--filter", default="", help="rows whose names match this regular expression")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run")
    parser.add_argument("--json", type=Path, help="write all measurements to this file")
    parser.add_argument("--clients", type=Path, default=default_folder(),
                        help="the folder that tools/clients/setup.sh fills")
    parser.add_argument("--models", type=Path, help="the folder of the models (models in the clients' folder)")
    options = parser.parse_args()

    drivers = options.drivers.split(",")
    unknown = {driver for driver in drivers if driver not in DRIVERS and not Path(driver).is_file()}
    if unknown:
        parser.error(f"There is no driver {', '.join(sorted(unknown))}.")
    rows = [row for row in all_rows() if re.search(options.filter, row.name)]
    if not rows:
        parser.error(f"No row matches '{options.filter}'.")
    clients = options.clients.resolve()
    bench = Bench(Programs(clients), options.models or clients / "models", options.timeout)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    complete = False
    try:
        measure(rows, drivers, bench, options.repetitions)
        complete = True
    except KeyboardInterrupt:
        print("\nCut off: medians of fewer repetitions, and - for what was not measured.", file=sys.stderr)

    first, others = drivers[0], drivers[1:]
    print(table([["case", "unit", *drivers, *(f"x {driver}" for driver in others), "of read"],
                 *[[row.name, row.unit, *(cell(row, d) for d in drivers), *(ratio(row, first, d) for d in others), share(row, first)]
                   for row in rows]]))
    for row in rows:
        for driver, problem in row.problems.items():
            print(f"{row.name} on {driver}: {problem}")
    if options.json:
        options.json.write_text(json.dumps(
            [{"case": r.name, "unit": r.unit, "values": r.values, "shares": r.shares, "problems": r.problems} for r in rows], indent=2))
    return 1 if any(row.problems for row in rows) or not complete else 0


if __name__ == "__main__":
    sys.exit(main())
