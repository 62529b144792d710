"""Runs clang-tidy over every source of a build, and keeps what it found in ccache.

Usage: tidy.py BUILD [--changed] [PATH...]
A source is analysed again only if it, a header that it includes, its command line or .clang-tidy changed. --changed takes
those alone that are not committed or that the last commit changed, and none if these are more than MOST_CHANGED. Prints findings as they come; exits with 1 if there is
any.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
WRAPPER = ROOT / "tools/check/tidy_compiler.sh"
MOST_CHANGED = 100  # sources of a commit: some four minutes on two cores


def git(*arguments):
    result = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else ""


def changed_files():
    """What is not committed, and what the last commit changed."""
    return set((git("diff", "--name-only", "HEAD") + git("diff", "--name-only", "HEAD~1", "HEAD")).split())


def ours(command):
    """Whether a compile command is of a source of the project."""
    path = pathlib.Path(command["file"])
    return path.suffix == ".cpp" and path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build")


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
    def __init__(self):
        self.environment = environment()
        self.objects = tempfile.TemporaryDirectory()

    def analyse(self, command):
        """Whether something was found, and what is to be printed."""
        name = hashlib.sha256(command["command"].encode()).hexdigest()
        result = subprocess.run(
            ["ccache", WRAPPER, *compiler_options(command), "-o", f"{self.objects.name}/{name}.o"],
            cwd=command["directory"], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return result.returncode != 0, result.stdout + result.stderr


def only_changed(commands):
    """Those of {path: command} whose source changed."""
    changed = {str(ROOT / path) for path in changed_files()}
    return {path: command for path, command in commands.items() if path in changed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_intermixed_args()

    commands = json.loads((arguments.build / "compile_commands.json").read_text())
    unique = {os.path.normpath(command["file"]): command for command in commands if ours(command)}
    if arguments.paths:
        wanted = tuple(str((ROOT / path).resolve()) for path in arguments.paths)
        unique = {path: command for path, command in unique.items() if path.startswith(wanted)}
    if arguments.changed:
        unique = only_changed(unique)
        if len(unique) > MOST_CHANGED:
            print(f"[tidy] {len(unique)} sources changed, and only up to {MOST_CHANGED} are analysed here: "
                  "run ./check tidy", file=sys.stderr)
            return
    elif not unique:
        sys.exit("[tidy] no source of the build has such a path")
    tidy, found, printed = Tidy(), 0, set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (is_found, text) in enumerate(pool.map(tidy.analyse, unique.values()), 1):
            found += is_found
            # A header's finding comes with every source that includes it.
            if is_found and text not in printed:
                print(text.strip(), flush=True)
                printed.add(text)
            if done % 50 == 0:
                print(f"[tidy] {done} of {len(unique)} sources", file=sys.stderr, flush=True)
    print(f"[tidy] {len(unique) - found} of {len(unique)} sources have no findings, {found} have", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
