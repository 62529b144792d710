"""Applies the rules of rules.py to the source tree. A test of ctest.

Usage: lint.py ROOT
Prints each finding as path:line: message; exits with 1 if there is any. It walks the folder and needs no
git, so that it works in an unpacked archive too.
"""

import os
import pathlib
import sys

import rules

SKIPPED_FOLDERS = {"__pycache__"}
VISIBLE_DOT_FOLDERS = {".ci"}


def is_skipped(name):
    if name.startswith("."):
        return name not in VISIBLE_DOT_FOLDERS
    return name in SKIPPED_FOLDERS or name == "build" or name.startswith("build-")


def read_tree(root):
    """Every text file of the tree, in order of its path."""
    files = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_skipped(name))
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if name.startswith(".") or path.is_symlink():
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # a binary file
            files.append(rules.SourceFile(path.relative_to(root).as_posix(), text))
    return files


def main():
    root = pathlib.Path(sys.argv[1])
    files = read_tree(root)
    if not any(file.path == "CMakeLists.txt" for file in files):
        sys.exit(f"{root} is not the root of the source tree")
    findings = sorted(rules.check(files))
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    print(f"{len(files)} files, {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
