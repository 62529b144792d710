"""Runs an external dEQP binary over a list of cases and reads what it prints, one process at a time.

The lowest part of the conformance runner: run_cts.py splits a selection into batches, batches.py gives
them to `run_batch` here. A case's result comes from the lines that dEQP prints:

    Test case 'dEQP-VK.compute.basic.empty_shader'..
      Pass (Ok)

A process that ends inside of a case crashed in it; one that is silent for longer than the limit hangs in it
and is killed with everything it started.
"""

import dataclasses
import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import time

CASE_LINE = re.compile(r"Test case '([^']+)'\.\.")
STATUS_LINE = re.compile(r"^  (\w+) \((.*)\)\s*$")

# What dEQP calls a result -> what the runner calls it. Warnings about quality and compatibility are passes
# by the rules of conformance.
STATUSES = {
    "Pass": "pass",
    "QualityWarning": "warning",
    "CompatibilityWarning": "warning",
    "NotSupported": "unsupported",
    "Waiver": "warning",
    "Fail": "fail",
    "InternalError": "fail",
    "ResourceError": "fail",
    "Crash": "crash",
    "Timeout": "hang",
    "Pending": "fail",
    "Enabled": "pass",
}

MESSAGE_LINES = 8
SLICE_SECONDS = 1.0
START_SECONDS = 60.0  # until the first case, beyond the time of a case


@dataclasses.dataclass
class Result:
    """How one case ended: `status` is a value of STATUSES, `detail` one line that says why."""

    case: str
    status: str
    detail: str = ""
    seconds: float = 0.0


@dataclasses.dataclass
class Binary:
    """The dEQP binary and how it is run. `environment` is the whole environment of its processes.

    Once `stopping` is set, processes are killed and no others begin; what they finished before counts.
    """

    path: str
    arguments: tuple = ()
    environment: dict = dataclasses.field(default_factory=lambda: dict(os.environ))
    case_seconds: float = 60.0
    stopping: threading.Event = dataclasses.field(default_factory=threading.Event)

    @property
    def folder(self):
        """Where its data lies, and so where it runs."""
        return os.path.dirname(os.path.abspath(self.path))


class OutputReader:
    """Turns lines of dEQP's output into results; knows which case is under way, and whether all are done."""

    def __init__(self):
        self.running = None
        self.finished = []
        self.complete = False
        self._started = 0.0
        self._messages = []

    def feed(self, line):
        """Takes one line; true if it began or ended a case."""
        if line.startswith("DONE!"):
            self.complete = True
        if match := CASE_LINE.search(line):
            self.running = match.group(1)
            self._started = time.monotonic()
            self._messages = []
            return True
        match = STATUS_LINE.match(line)
        if match and self.running and match.group(1) in STATUSES:
            status, detail = STATUSES[match.group(1)], match.group(2)
            if match.group(1) == "InternalError":
                detail = f"internal error: {detail}"
            if status == "fail" and self._messages:
                detail += " | " + " / ".join(self._messages)
            self._end(status, detail)
            return True
        if line.strip() and self.running:
            self._messages = (self._messages + [line.strip()])[-MESSAGE_LINES:]
        return False

    def abort(self, status, detail):
        """The process is gone: the case under way takes the blame, if there is one."""
        if self.running:
            self._end(status, " | ".join([detail, *self._messages[-2:]]))

    def _end(self, status, detail):
        seconds = time.monotonic() - self._started
        self.finished.append(Result(self.running, status, detail, seconds))
        self.running = None


def describe_exit(code):
    if code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    return f"ended with status {code} inside of the case"


def kill_group(process):
    """Kills the process and its descendants (they share its process group) and waits for it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_once(binary, cases):
    """Runs one process over the cases: the results that it brought, in order, whether it came to its end, and
    its last words. If it crashed or was killed inside of a case, the last result says so.
    """
    reader = OutputReader()
    last_words = []
    with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="cases-") as case_list:
        case_list.write("".join(case + "\n" for case in cases))
        case_list.flush()
        command = [binary.path, f"--deqp-caselist-file={case_list.name}",
                   "--deqp-log-filename=/dev/null", *binary.arguments]
        process = subprocess.Popen(command, cwd=binary.folder, env=binary.environment, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            hung = not read_output(process, binary, reader, last_words)
        finally:
            kill_group(process)
            process.stdout.close()
    if binary.stopping.is_set():
        pass  # the case under way has no result
    elif hung:
        reader.abort("hang", f"no result within {binary.case_seconds:g} s")
    else:
        reader.abort("crash", describe_exit(process.returncode))
    return reader.finished, reader.complete, " / ".join(last_words) or describe_exit(process.returncode)


def read_output(process, binary, reader, last_words):
    """Feeds the reader until the process closes its output or the run is stopped; false if a case took longer
    than it may.

    Waits in short slices, of which each counts at most as long as it should have taken: a machine that was
    suspended meanwhile makes no hang.
    """
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    left = binary.case_seconds + START_SECONDS
    pending = b""
    while not binary.stopping.is_set():
        started = time.monotonic()
        ready = selector.select(min(left, SLICE_SECONDS))
        left -= min(time.monotonic() - started, SLICE_SECONDS)
        if not ready:
            if left <= 0:
                return False
            continue
        chunk = os.read(process.stdout.fileno(), 65536)
        *lines, pending = (pending + chunk).split(b"\n")
        if not chunk and pending:
            lines.append(pending)
        for line in lines:
            text = line.decode(errors="replace")
            if reader.feed(text):
                left = binary.case_seconds
            elif text.strip():
                last_words[:] = (last_words + [text.strip()])[-MESSAGE_LINES:]
        if not chunk:
            process.wait()
            return True
        if left <= 0:
            return False
    return True


def run_batch(binary, cases, report):
    """Runs all of the cases, in as many processes as crashes and hangs demand; calls `report` with each result.

    Every case gets exactly one result, unless the run is stopped. A case that the binary passes over, because it does not know it, is
    "missing"; one before which the process ends without a word is a crash.
    """
    left = list(cases)
    while left and not binary.stopping.is_set():
        results, complete, last_words = run_once(binary, left)
        wanted = set(left)
        for result in results:
            if result.case in wanted:
                wanted.remove(result.case)
                report(result)
        if binary.stopping.is_set():
            return
        if not results and not complete:
            wanted.remove(left[0])
            report(Result(left[0], "crash", f"the process ran no case: {last_words}"))
        left = [case for case in left if case in wanted]
        if complete:
            for case in left:
                report(Result(case, "missing", "the binary did not run this case"))
            return


def list_cases(binary, pattern):
    """The names of the binary's cases that match the pattern of dEQP (`*` is any text), in its order."""
    command = [binary.path, "--deqp-runmode=stdout-caselist", f"--deqp-case={pattern}",
               "--deqp-log-filename=/dev/null", *binary.arguments]
    run = subprocess.run(command, cwd=binary.folder, env=binary.environment, stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False)
    cases = [line.removeprefix("TEST: ").strip() for line in run.stdout.splitlines()
             if line.startswith("TEST: ")]
    if run.returncode != 0 and not cases:
        raise RuntimeError(f"{binary.path} lists no cases for {pattern}: {run.stdout}{run.stderr}".strip())
    return cases
