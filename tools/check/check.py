"""Runs the layers of ./check, shows their progress, and ends with one line that sums them up.

Usage: check.py LAYER... | quick | --preset PRESET      (./check --help says what each does)
A layer that fails does not stop the others, except those that run what could not be built. The end repeats what each
failed test printed last, because ctest printed it thousands of lines before. The last line is
"N passed, N failed" with ", N skipped" if there are any: ctest's tests, and one for each other step. Exits with 1 if any failed.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/lint"))
import lint  # noqa: E402

CORES = os.cpu_count() or 1

# How much of a failed test's output the end repeats.
LAST_LINES = 40

FUZZ_SECONDS = {"all": 30, "quick": 5, "single": 60}

# Kernels of tests fault on purpose, which the driver's handlers are to see and not a sanitiser's.
FAULTS = "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0"


@dataclasses.dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple = ()  # (test, the end of what it printed) of those that failed, for the end of the whole run

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
                       self.failures + other.failures)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


def say(message):
    print(f"[check] {message}", file=sys.stderr, flush=True)


def run(*command, **environment):
    """One step: passed if the command exits with 0."""
    result = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env={**os.environ, **environment})
    return Outcome(passed=1) if result.returncode == 0 else Outcome(failed=1)


def build(preset, *targets):
    return run("tools/setup/build.sh", preset, *targets)


def summary_of(report):
    """What ctest's JUnit report counts, and what the tests that failed printed last."""
    suite = ElementTree.parse(report).getroot()
    tests, failed, skipped = (int(suite.get(name, 0)) for name in ("tests", "failures", "skipped"))
    skipped += int(suite.get("disabled", 0))
    failures = tuple((case.get("name"), "\n".join((case.findtext("system-out") or "").splitlines()[-LAST_LINES:]))
                     for case in suite.iter("testcase") if case.find("failure") is not None)
    return Outcome(tests - failed - skipped, failed, skipped, failures)


def ctest(preset, *options, jobs=CORES, **environment):
    for sanitizer in ("ASAN_OPTIONS", "TSAN_OPTIONS"):
        environment[sanitizer] = f"{FAULTS}:{os.environ.get(sanitizer, '')}"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        ran = run("ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--parallel", str(jobs),
                  "--no-tests=error", "--output-junit", str(report), *options, **environment)
        if not report.exists():
            return Outcome(failed=1)
        outcome = summary_of(report)
    # An error of ctest itself is in no test's result.
    return outcome if not ran.failed or outcome.failed else outcome + ran


def sources():
    return [file.path for file in lint.read_tree(ROOT) if pathlib.PurePosixPath(file.path).suffix in {".h", ".cpp", ".c"}]


def outputs(preset, pattern):
    """The files that a preset's build makes, as ninja names them, as far as they match."""
    listed = subprocess.run(["ninja", "-C", f"build/{preset}", "-t", "targets", "all"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.findall(rf"^({pattern}): ", listed, re.MULTILINE)


def configured(preset):
    return (ROOT / f"build/{preset}/build.ninja").exists() or \
        run("cmake", "--preset", preset).failed == 0


class Check:
    def __init__(self, extent):
        self.extent = extent  # "all", "quick" or "single" layers
        self.builds = {}  # preset: whether all of it could be built

    def lint(self):
        """The rules of the tree and the format."""
        say("lint: the rules of the tree")
        outcome = run(sys.executable, "tests/lint/lint.py", ".", PYTHONDONTWRITEBYTECODE="1")
        say("lint: clang-format")
        return outcome + run("clang-format-19", "--dry-run", "-Werror", *sources())

    def tidy(self):
        """clang-tidy over every source, in the whole check over those that the last commit changed. It needs what a build
        generates: tables, shaders."""
        if not configured("release") or build("release", *outputs("release", r"generated/\S+")).failed:
            return Outcome(failed=1)
        changed = [] if self.extent == "single" else ["--changed"]
        return run(sys.executable, "tools/check/tidy.py", "build/release", *changed)

    def built(self, preset):
        outcome = build(preset)
        self.builds[preset] = not outcome.failed
        return outcome

    def build(self):
        """All of the release build."""
        return self.built("release")

    def test(self):
        """The tests of the release build."""
        outcome = Outcome() if "release" in self.builds else self.build()
        if not self.builds["release"]:
            say("test: left out, because the build failed")
            return outcome + Outcome(failed=1)
        return outcome + ctest("release", *(["-LE", "slow"] if self.extent == "quick" else []))

    def gcc(self):
        """GCC's front end accepts every source; in the whole check those of tests are left out, which take it half of the time."""
        if not configured("gcc-syntax"):
            return Outcome(failed=1)
        sources = r"\S+\.cpp\.o" if self.extent == "single" else r"\S+(?<!_test)\.cpp\.o"
        return build("gcc-syntax", *outputs("gcc-syntax", sources))

    def sanitized(self, preset):
        return build(preset, "sanitized_tests") + ctest(preset, "-L", "sanitized")

    def asan(self):
        """The tests of threads and parsers with the address and undefined-behaviour sanitisers."""
        return self.sanitized("asan-ubsan")

    def tsan(self):
        """The tests of threads with the thread sanitiser."""
        return self.sanitized("tsan")

    def fuzz(self):
        """Every fuzz target for a while; most of it is compiled as the layer asan has it."""
        seconds = os.environ.get("FORNAX_FUZZ_SECONDS", str(FUZZ_SECONDS[self.extent]))
        return build("asan-ubsan", "fuzzers") + ctest("asan-ubsan", "-L", "fuzz", FORNAX_FUZZ_SECONDS=seconds)

    def preset(self, name):
        """The whole build and every test of a preset."""
        outcome = self.built(name)
        return outcome if outcome.failed else outcome + ctest(name)


ALL = ("lint", "build", "tidy", "test", "gcc", "asan", "tsan", "fuzz")
QUICK = ("lint", "build", "test", "fuzz")
LAYERS = ALL


def steps_of(arguments):
    """[(name, function)] of the command line."""
    if arguments[:1] == ["--preset"] and len(arguments) == 2:
        return [(arguments[1], lambda: Check("single").preset(arguments[1]))]
    if arguments == ["quick"]:
        extent, names = "quick", QUICK
    else:
        extent, names = ("single", arguments) if arguments else ("all", ALL)
    for name in names:
        if name not in LAYERS:
            sys.exit(f"[check] {name} is no layer; the layers are {', '.join(LAYERS)}, and `quick` is some of them. "
                     "A preset is given as --preset PRESET.")
    check = Check(extent)
    return [(name, getattr(check, name)) for name in names]


def main():
    total, lines, failed = Outcome(), [], []
    for name, step in steps_of(sys.argv[1:]):
        say(f"{name}: begins")
        begin = time.monotonic()
        outcome = step()
        line = f"{name}: {outcome} in {time.monotonic() - begin:.0f} s"
        say(line)
        lines.append(line)
        total += outcome
        if outcome.failed:
            failed.append(name)
    sys.stderr.flush()
    print("\nlayers:")
    for line in lines:
        print(f"  {line}")
    if failed:
        for test, output in total.failures:
            print(f"\nfailed: {test}; the end of its output:\n{output}")
        print(f"\nfailed layers: {', '.join(failed)}")
    if total.failures:
        print(f"failed tests: {', '.join(test for test, _ in total.failures)}")
    # Continuous integration reads the last line, and nothing may stand beside it.
    print(total, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
