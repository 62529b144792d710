"""The lists of cases that are known not to pass, and what they make of a result.

Three text files in lists/ (the goal is that they are empty), each line a pattern of case names in which `*`
is any text, `#` begins a comment that says why:

    expected_failures.txt   cases that fail; one that passes is an error too, so that the list shrinks
    flakes.txt              cases that may fail; they are run again, alone
    skips.txt               cases that are not run
"""

import dataclasses
import fnmatch
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lists")
BAD = ("fail", "crash", "hang", "missing")


class PatternList:
    """Patterns of case names, with fast exact matches."""

    def __init__(self, lines=()):
        lines = [line.split("#")[0].strip() for line in lines]
        self.patterns = [line for line in lines if line]
        self._exact = {line for line in self.patterns if "*" not in line}
        wild = [fnmatch.translate(line.replace("[", "[[]").replace("?", "[?]"))
                for line in self.patterns if "*" in line]
        self._wild = re.compile("|".join(wild)) if wild else None

    def matches(self, case):
        return case in self._exact or bool(self._wild and self._wild.match(case))

    def unused(self, cases):
        """The patterns that match none of the cases."""
        return [pattern for pattern in self.patterns
                if not any(PatternList([pattern]).matches(case) for case in cases)]


def read_list(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return PatternList(file)
    except FileNotFoundError:
        return PatternList()


@dataclasses.dataclass
class Baseline:
    expected_failures: PatternList = dataclasses.field(default_factory=PatternList)
    flakes: PatternList = dataclasses.field(default_factory=PatternList)
    skips: PatternList = dataclasses.field(default_factory=PatternList)

    @staticmethod
    def read(folder=FOLDER):
        return Baseline(read_list(folder, "expected_failures.txt"), read_list(folder, "flakes.txt"),
                        read_list(folder, "skips.txt"))

    def wants_retry(self, result):
        return result.status in BAD and self.flakes.matches(result.case)

    def judge(self, result):
        """The status of a result in the light of the lists: "expected" for a failure that is listed,
        "surprise" for a pass where a failure is listed, else its own."""
        if self.expected_failures.matches(result.case):
            if result.status in BAD:
                return "expected"
            if result.status in ("pass", "warning"):
                return "surprise"
        return result.status
