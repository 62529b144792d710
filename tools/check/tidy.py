"""Runs clang-tidy over every source of a build, and keeps what it found in ccache.

Usage: tidy.py BUILD [--seconds N] [PATH...]
A source is analysed again only if it, a header that it includes, its command line or .clang-tidy changed. With --seconds,
what is not analysed by then is left for another run: what changed last comes first, the rest in an order that differs from
commit to commit. Prints findings as they come; exits with 1 if there is any.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRAPPER = ROOT / "tools/check/tidy_compiler.sh"
NOT_ANALYSED = 75


def git(*arguments):
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else ""


def changed_files():
    """What is not committed, and what the last commit changed."""
    return set((git("diff", "--name-only", "HEAD") + git("diff", "--name-only", "HEAD~1", "HEAD")).split())


def ours(command):
    """Whether a compile command is of a source of the project and of its ordinary build."""
    path = pathlib.Path(command["file"])
    return path.suffix == ".cpp" and path.is_relative_to(ROOT) and "_fuzzed.dir" not in command["command"] \
        and not path.is_relative_to(ROOT / "build")


def compiler_options(command):
    """The command's own options: no launcher, no compiler, no precompiled header (each source stands on its own)."""
    words = shlex.split(command["command"])
    words = words[next(i for i, word in enumerate(words) if "clang" in pathlib.Path(word).name) + 1:]
    options = []
    while words:
        word = words.pop(0)
        if word == "-Xclang":
            # CMake spells a precompiled header as four words: -Xclang -include-pch -Xclang FILE.
            if words[0] in ("-include-pch", "-include"):
                del words[:3]
            elif words[0] in ("-fno-pch-timestamp", "-emit-pch"):
                del words[:1]
            else:
                options += [word, words.pop(0)]
        elif word in ("-MF", "-MT", "-o", "-include", "-include-pch"):
            words.pop(0)
        elif word not in ("-MD", "-Winvalid-pch"):
            options.append(word)
    return options


def environment():
    kept = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + WRAPPER.read_bytes())
    kept.update(subprocess.run(["clang-tidy-19", "--version"], capture_output=True, check=True).stdout)
    return {**os.environ,
            "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1",
            "CCACHE_COMPILERTYPE": "clang", "CCACHE_COMPILERCHECK": f"string:{kept.hexdigest()}",
            # A comment may be what keeps a check quiet.
            "CCACHE_COMMENTS": "1"}


class Tidy:
    def __init__(self, build, seconds):
        self.environment = environment()
        self.deadline = time.monotonic() + seconds if seconds is not None else None
        self.objects = tempfile.TemporaryDirectory()

    def analyse(self, command):
        """0 for nothing found, 1 for findings, NOT_ANALYSED; and what is to be printed."""
        environment = self.environment
        if self.deadline is not None and time.monotonic() > self.deadline:
            environment = {**environment, "FORNAX_TIDY_STORED_ONLY": "1"}
        name = hashlib.sha256(command["command"].encode()).hexdigest()
        result = subprocess.run(
            ["ccache", WRAPPER, *compiler_options(command), "-o", f"{self.objects.name}/{name}.o"],
            cwd=command["directory"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


def ordered(commands, seed):
    """What changed first, then what is built into the product, then its tests; each in the seed's order."""
    changed = changed_files()

    def key(command):
        path = pathlib.Path(command["file"]).relative_to(ROOT).as_posix()
        is_test = path.endswith("_test.cpp") or path.startswith("tests/")
        return path not in changed, is_test, hashlib.sha256((seed + path).encode()).digest()

    return sorted(commands, key=key)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_intermixed_args()

    commands = json.loads((arguments.build / "compile_commands.json").read_text())
    unique = {command["file"]: command for command in commands if ours(command)}
    if arguments.paths:
        wanted = tuple(str((ROOT / path).resolve()) for path in arguments.paths)
        unique = {path: command for path, command in unique.items() if path.startswith(wanted)}
    todo = ordered(unique.values(), git("rev-parse", "HEAD").strip())
    tidy = Tidy(arguments.build, arguments.seconds)
    found, left, printed, done = 0, 0, set(), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for command, (code, text) in zip(todo, pool.map(tidy.analyse, todo)):
            done += 1
            if code == NOT_ANALYSED:
                left += 1
            elif code != 0:
                found += 1
                # A header's finding comes with every source that includes it.
                if text not in printed:
                    print(text.strip(), flush=True)
                printed.add(text)
            if done % 50 == 0:
                print(f"[tidy] {done} of {len(todo)} sources", file=sys.stderr, flush=True)
    print(f"[tidy] {len(todo) - left - found} of {len(todo)} sources have no findings, {found} have, "
          f"{left} are left for ./check tidy", file=sys.stderr)
    sys.exit(1 if found or not todo else 0)


if __name__ == "__main__":
    main()
