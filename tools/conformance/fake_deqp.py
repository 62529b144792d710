#!/usr/bin/env python3
"""Plays a dEQP binary for conformance_test.py: each case does what the last part of its name says.

    pass, quality, unsupported, fail, internal   the result of that name
    crash, exit                                  ends by a signal, with status 3
    hang                                         is silent, with a child process that holds the output open
    crash_after                                  passes, then the process dies between two cases
    unknown                                      is no case of this binary: passed over
    flaky                                        fails the first time (FAKE_DEQP_STATE names a folder for that)
    driver                                       passes if VK_DRIVER_FILES ends in fake.json
"""

import os
import signal
import subprocess
import sys

CASES = ["dEQP-VK.alpha.one.pass", "dEQP-VK.alpha.one.fail", "dEQP-VK.alpha.two.crash", "dEQP-VK.beta.pass",
         "dEQP-VK.beta.unsupported"]
LINES = {
    "pass": "Pass (Ok)",
    "crash_after": "Pass (Ok)",
    "quality": "QualityWarning (Not so good)",
    "unsupported": "NotSupported (shaderInt64 is not supported at vktTest.cpp:12)",
    "fail": "Fail (Compare failed (twice) at element 17)",
    "internal": "InternalError (Caught std::exception)",
}


def option(name):
    values = [argument.split("=", 1)[1] for argument in sys.argv if argument.startswith(name + "=")]
    return values[-1] if values else None


def flaky(case):
    mark = os.path.join(os.environ["FAKE_DEQP_STATE"], case)
    if os.path.exists(mark):
        return "Pass (Ok)"
    with open(mark, "w", encoding="utf-8"):
        return "Fail (not today)"


def run(case):
    kind = case.split(".")[-1].split("-")[0]
    if kind == "unknown":
        return
    print(f"\nTest case '{case}'..", flush=True)
    if kind == "hang":
        subprocess.run(["sleep", "100"], check=False)
    if kind == "crash":
        print("driver: about to crash", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "exit":
        os._exit(3)
    if kind == "fail":
        print("driver: the product of 3 and 4 is 13", file=sys.stderr, flush=True)
    if kind == "driver":
        good = os.environ.get("VK_DRIVER_FILES", "").endswith("fake.json")
        line = "Pass (Ok)" if good else "Fail (another driver)"
    else:
        line = flaky(case) if kind == "flaky" else LINES[kind]
    print(f"  {line}", flush=True)
    if kind == "crash_after":
        os.kill(os.getpid(), signal.SIGABRT)


def main():
    if os.environ.get("FAKE_DEQP_BROKEN"):
        print("cannot load libvulkan", flush=True)
        sys.exit(1)
    if os.environ.get("FAKE_DEQP_WANTS") and os.environ["FAKE_DEQP_WANTS"] not in sys.argv:
        sys.exit("the argument is missing")
    if option("--deqp-runmode") == "stdout-caselist":
        prefix = option("--deqp-case").rstrip("*")
        for case in CASES:
            if case.startswith(prefix):
                print(f"TEST: {case}")
        return
    print("dEQP Core unknown starting..", flush=True)
    with open(option("--deqp-caselist-file"), encoding="utf-8") as file:
        for case in file.read().split():
            run(case)
    print("\nDONE!\n\nTest run totals:", flush=True)


if __name__ == "__main__":
    main()
