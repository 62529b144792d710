"""The table of what the driver advertises and which test covers it: docs/features.md.

Usage: feature_table.py ROOT [--write]

Reads driver/supported_api.cpp, tests/capabilities/feature_tests.txt and the tests' sources. Fails when something advertised has
no test, a test does not exist, a line of the mapping fits nothing, or the document is not what --write would write.
"""

import fnmatch
import re
import sys
from pathlib import Path

SUPPORTED = "driver/supported_api.cpp"
MAPPING = "tests/capabilities/feature_tests.txt"
DOCUMENT = "docs/features.md"
HEADER = f"""# Features and extensions, and their tests

Everything that `{SUPPORTED}` advertises. The tests are GoogleTest's names; `{MAPPING}` maps the one to the other.
What `CompatTest` covers is there with `FORNAX_COMPAT=graphics` only (docs/vulkan.md, Compatibility).
This file is written by `python3 tests/capabilities/feature_table.py . --write`; ctest fails when it is stale.
"""


def advertised(source):
    """(instance extensions, device extensions, features), each sorted."""
    extensions = {kind: sorted(f"VK_{name}" for name in re.findall(rf"\b{kind}\.(\w+) = ", source))
                  for kind in ("instance", "device")}
    features = sorted(set(re.findall(r"\b(?:features|supported)\.(\w+) = ", source)), key=str.lower)
    return extensions["instance"], extensions["device"], features


def read_mapping(text):
    """A list of (pattern, [tests])."""
    rows = []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            pattern, tests = line.split(None, 1)
            rows.append((pattern, [test.strip() for test in tests.split(",")]))
    return rows


def existing_tests(root):
    """The names of all tests, as Suite.Test."""
    names = set()
    for folder in ("driver", "icd", "tests", "compiler", "hal"):
        for path in (root / folder).rglob("*_test.cpp"):
            for suite, test in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE):
                names.add(f"{suite}.{test}")
    return names


def table(title, names, tests_of):
    lines = [f"\n## {title}\n", "| name | tests |", "|---|---|"]
    lines += [f"| `{name}` | {', '.join(f'`{test}`' for test in tests_of[name])} |" for name in names]
    return "\n".join(lines) + "\n"


def make(root):
    """(the document, what is wrong)."""
    instance, device, features = advertised((root / SUPPORTED).read_text())
    mapping = read_mapping((root / MAPPING).read_text())
    known = existing_tests(root)
    problems = []
    used = set()
    tests_of = {}
    for name in [*instance, *device, *features]:
        row = next(((pattern, tests) for pattern, tests in mapping if fnmatch.fnmatchcase(name, pattern)), None)
        if row is None:
            problems.append(f"{name} is advertised, and {MAPPING} names no test of it.")
        tests_of[name] = row[1] if row else []
        used.add(row and row[0])
    for pattern, tests in mapping:
        if pattern not in used:
            problems.append(f"{MAPPING}: {pattern} fits nothing that is advertised, or only what an earlier line fits.")
        for test in tests:
            if not fnmatch.filter(known, test):
                problems.append(f"{MAPPING}: there is no test {test}.")
    document = (HEADER + table("Instance extensions", instance, tests_of) +
                table("Device extensions", device, tests_of) + table("Features", features, tests_of))
    return document, problems


def main():
    root = Path(sys.argv[1])
    document, problems = make(root)
    path = root / DOCUMENT
    if "--write" in sys.argv[2:] and not problems:
        path.write_text(document)
    elif not path.exists() or path.read_text() != document:
        problems.append(f"{DOCUMENT} is stale: python3 tests/capabilities/feature_table.py . --write")
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
