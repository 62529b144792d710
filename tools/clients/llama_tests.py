#!/usr/bin/env python3
"""Runs the tests of llama.cpp that use a device on our own backend of ggml, and prints a table.

    archs     test-llama-archs: a small model of every architecture, its logits beside the CPU backend's
    opt       test-opt: ggml's training
    threads   test-thread-safety: several contexts of one model at once
    sampler   test-backend-sampler: tokens chosen on the device

tools/clients/setup.sh brings the programs. Ends with status 1 if a test fails, or if the CPU backend had to
compute a graph that the device did not.

    tools/clients/llama_tests.py                all of them, about ten minutes
    tools/clients/llama_tests.py archs opt      these
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from programs import ROOT, Programs, default_folder, table

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
DEVICE = "Fornax"
NOT_RUN = "a graph did not run"
SAMPLER = "test-backend-sampler"
LIBRARY = ROOT / "build/release/plugins/ggml/libggml-fornax.so"


class Tests:
    def __init__(self, programs: Programs, timeout: float):
        self.programs = programs
        self.timeout = timeout

    def run(self, name: str, arguments: list[str], folder: Path | None = None):
        """Status (None: out of time) and output of a packaged test."""
        found = sorted(self.programs.folder.glob(f"usr/libexec/*/llama.cpp-tests/{name}"))
        if not found:
            sys.exit(f"{self.programs.folder} has no {name}; remove it and run tools/clients/setup.sh again.")
        environment = self.programs.environment("fornax", own_backend=True)
        if folder:
            del environment["GGML_BACKEND_PATH"]
        code, text = self.programs.run(found[0], arguments, environment, self.timeout, folder)
        return code, COLOUR.sub("", text)

    def archs(self) -> tuple[bool, str]:
        code, text = self.run("test-llama-archs", [])
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in text.splitlines() if line.startswith("|") and DEVICE in line]
        run = [row for row in rows if len(row) > 3 and not row[3].startswith("SKIP")]
        bad = [row for row in run if not row[3].startswith("OK")]
        # A model that was written and read again lies elsewhere, so that other nodes share memory and kernels:
        # its last bits may differ, which is told and is no failure.
        other = [row for row in run if row not in bad and any(cell.startswith("FAIL") for cell in row[4:])]
        said = f"{len(run) - len(bad)} of {len(run)} models equal, {len(rows) - len(run)} skipped"
        said += "".join(f"; {row[0]} {row[2]}: {row[3]}" for row in bad)
        said += "".join(f"; {row[0]} {row[2]}: other last bits elsewhere in memory" for row in other)
        # It ends with status 1 for such a model.
        code = 0 if code == 1 and other else code
        return code == 0 and bool(run) and not bad and NOT_RUN not in text, said + self.failures(code, text)

    def opt(self) -> tuple[bool, str]:
        """The test wants the CPU backend to be the last that is loaded, so ours has another's name."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for library in self.programs.backends.glob("libggml-cpu-*.so"):
                (folder / library.name).symlink_to(library)
            (folder / "libggml-opencl.so").symlink_to(LIBRARY)
            code, text = self.run("test-opt", [], folder)
        passed = re.findall(r"Backend FORNAX0 (\w+): OK", text)
        said = ", ".join(passed) + " pass" if passed else "no optimiser passes"
        return code == 0 and len(passed) >= 2 and NOT_RUN not in text, said + self.failures(code, text)

    def threads(self) -> tuple[bool, str]:
        with tempfile.TemporaryDirectory() as name:
            model = self.tiny_model(Path(name))
            code, text = self.run("test-thread-safety", ["-m", str(model), "-ngl", "99", "-p", "fornax", "-n", "8",
                                                         "-c", "256", "-ub", "32", "-np", "4", "-t", "2"])
        contexts = len(re.findall(r"Model \d+/\d+, Context \d+/\d+: ", text))
        return code == 0 and contexts > 1 and NOT_RUN not in text, f"{contexts} contexts" + self.failures(code, text)

    def sampler(self) -> tuple[bool, str]:
        """Each test of it by itself, as the program ends with the first that fails. Some need a trained model:
        those that ggml's CPU backend does not pass either are told."""
        with tempfile.TemporaryDirectory() as name:
            model = self.tiny_model(Path(name))
            _, text = self.run(SAMPLER, ["--model", str(model), "--test", "none of them"])
            tests = re.findall(r"^\W*(\w+)\s*$", text.partition("Available tests:")[2], re.MULTILINE)
            passed, failed, untrained = 0, [], []
            for test in tests:
                arguments = ["--model", str(model), "--test", test, "--device"]
                code, text = self.run(SAMPLER, [*arguments, "gpu"])
                if code == 0 and NOT_RUN not in text:
                    passed += 1
                elif NOT_RUN not in text and self.run(SAMPLER, [*arguments, "cpu"])[0] != 0:
                    untrained.append(test)
                else:
                    failed.append(test + self.failures(code, text))
        said = f"{passed} of {len(tests)} pass"
        said += f"; on the CPU backend fail too: {', '.join(untrained)}" if untrained else ""
        said += "".join(f"; {one}" for one in failed)
        return passed > 0 and not failed, said

    @staticmethod
    def tiny_model(folder: Path) -> Path:
        model = folder / "tiny.gguf"
        subprocess.run([ROOT / ".venv/bin/python3", Path(__file__).with_name("write_llama.py"), model,
                        "--type", "q8_0", "--shape", "tiny"], check=True)
        return model

    @staticmethod
    def failures(code, text: str) -> str:
        ended = "" if code == 0 else "; out of time" if code is None else f"; status {code}"
        count = text.count(NOT_RUN)
        return ended + (f"; {count} graphs were computed by the CPU backend" if count else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", metavar="TEST", help="archs, opt, threads or sampler (all)")
    parser.add_argument("--clients", type=Path, default=default_folder(), help="the folder that setup.sh fills")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one test")
    arguments = parser.parse_args()
    tests = Tests(Programs(arguments.clients.resolve()), arguments.timeout)
    known = {"archs": tests.archs, "opt": tests.opt, "threads": tests.threads, "sampler": tests.sampler}
    for name in arguments.tests:
        if name not in known:
            parser.error(f"there is no test {name}; there are {', '.join(known)}")
    if not LIBRARY.exists():
        sys.exit(f"{LIBRARY} is missing; build it first.")
    rows, all_good = [["test", "", "seconds", "result"]], True
    for name in arguments.tests or known:
        print(f"running {name}", file=sys.stderr)
        start = time.monotonic()
        good, said = known[name]()
        all_good &= good
        rows.append([name, "passed" if good else "FAILED", f"{time.monotonic() - start:.0f}", said])
    print(table(rows))
    sys.exit(0 if all_good else 1)


if __name__ == "__main__":
    main()
