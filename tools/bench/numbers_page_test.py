#!/usr/bin/env python3
"""What numbers_page.py makes of reports, and whether the page of the tree is that of its files."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import numbers_page

BENCH = {
    "processor": "P", "quick": False, "limits": {"threads": 2, "copy_gbs": 50.0, "read_gbs": 40.0},
    "benchmarks": [
        {"title": "copy", "unit": "GB/s", "limit": 50.0, "limit_name": "copy",
         "results": {"Fornax": {"median": 25.0}, "lavapipe": {"median": 5.0}}},
        {"title": "start", "unit": "ms", "results": {"Fornax": {"median": 2.5}, "lavapipe": {"error": "lost"}}},
    ]}
LLAMA = [
    {"case": "tg64 q4_0", "unit": "tokens/s", "values": {"fornax": [50, 60, 52], "cpu": [26]},
     "shares": {"fornax": [0.8]}, "problems": {}},
    {"case": "first token", "unit": "s", "values": {"fornax": [2.0], "cpu": [0.5]}, "shares": {}, "problems": {}},
]


class NumbersPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_script(self, *arguments) -> tuple[int, str]:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            code = numbers_page.main([str(argument) for argument in arguments])
        return code, errors.getvalue()

    def add(self, report, title="Run", machine="A machine") -> tuple[int, str]:
        path = self.folder / "report"
        path.write_text(json.dumps(report))
        return self.run_script("add", self.folder / "m.json", path, "--title", title, "--date", "2026-01-02",
                               "--version", "abc", "--command", "fornax bench", *(["--machine", machine] if machine else []))

    def section(self) -> str:
        return numbers_page.section(json.loads((self.folder / "m.json").read_text()))

    def test_a_report_of_fornax_bench(self):
        self.assertEqual(self.add(BENCH), (0, ""))
        self.assertEqual(self.section(), """## A machine

### Run

2026-01-02, version abc: `fornax bench`

| benchmark | unit | Fornax | lavapipe | vs lavapipe |  of limit |
|-----------|------|-------:|---------:|------------:|----------:|
| copy      | GB/s |   25.0 |     5.00 |       5.00x | 50 % copy |
| start     | ms   |   2.50 |        - |           - |         - |

| host limit     | unit | measured |
|----------------|------|---------:|
| copy in memory | GB/s |     50.0 |
| read of memory | GB/s |     40.0 |
""")

    def test_a_report_of_fornax_bench_llama(self):
        self.assertEqual(self.add(LLAMA), (0, ""))
        self.assertIn("| tg64 q4_0   | tokens/s |   52.0 | 26.0 |  2.00x | 80 % read |", self.section())
        self.assertIn("| first token | s        |   2.00 | 0.50 |  0.25x |         - |", self.section())

    def test_a_run_takes_the_place_of_one_with_its_title(self):
        self.add(BENCH)
        self.add(LLAMA, title="Other", machine=None)
        self.add(LLAMA, machine=None)
        self.assertEqual(self.section().count("### Run"), 1)
        self.assertNotIn("lavapipe", self.section())

    def test_what_cannot_be_added(self):
        self.assertEqual(self.add(BENCH, machine=None)[0], 1)
        self.assertIn("not for comparison", self.add(BENCH | {"quick": True})[1])
        self.assertIn("one run each", self.add({"runs": [BENCH]})[1])

    def test_check(self):
        self.add(BENCH)
        page = self.folder / "page.md"
        arguments = ("write", "--folder", self.folder, "--page", page)
        self.assertEqual(self.run_script(*arguments)[0], 0)
        self.assertEqual(self.run_script(*arguments, "--check")[0], 0)
        page.write_text(page.read_text().replace("25.0", "26.0"))
        self.assertIn("is not the page of", self.run_script(*arguments, "--check")[1])

    def test_the_page_of_the_tree(self):
        self.assertEqual(self.run_script("write", "--check"), (0, ""))


if __name__ == "__main__":
    unittest.main()
