"""Tests of check.py and tidy.py: what ./check counts, how it ends, and what clang-tidy is called with."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import check  # noqa: E402
import tidy  # noqa: E402

REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="Linux-c++" tests="7" failures="2" disabled="1" skipped="1" hostname="" time="3">
<testcase name="a.passes" status="run"><system-out>fine</system-out></testcase>
<testcase name="a.fails" status="fail"><failure message=""/><system-out>%s</system-out></testcase>
<testcase name="a.has_no_output" status="fail"><failure message="Timeout"/></testcase>
</testsuite>
""" % "\n".join(f"line {i}" for i in range(100))


def run_main(*arguments, **layers):
    """(exit status, what was printed) of ./check where layers have these outcomes and the others pass."""
    replaced = {name: mock.Mock(return_value=layers.get(name, check.Outcome(passed=1))) for name in check.ALL}
    out = io.StringIO()
    with mock.patch.multiple(check.Check, **replaced), mock.patch.object(sys, "argv", ["check", *arguments]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            check.main()
        except SystemExit as end:
            return end.code, out.getvalue(), replaced
    raise AssertionError("it does not end with a status")


class Ending(unittest.TestCase):
    def test_the_last_line_is_the_sum(self):
        status, text, _ = run_main("lint", "test", test=check.Outcome(passed=40, skipped=2))
        self.assertEqual((status, text.splitlines()[-1]), (0, "41 passed, 0 failed, 2 skipped"))

    def test_a_failed_layer_is_named_and_stops_no_other(self):
        status, text, layers = run_main(lint=check.Outcome(1, 1))
        self.assertEqual((status, text.splitlines()[-1]), (1, f"{len(check.ALL)} passed, 1 failed"))
        self.assertIn("failed layers: lint\n", text)
        self.assertTrue(all(layer.called for layer in layers.values()))

    def test_the_end_repeats_what_failed(self):
        _, text, _ = run_main("lint", "test", test=check.Outcome(3, 1, failures=(("graph.a", "1 is not 2"),)))
        self.assertIn("failed: graph.a; the end of its output:\n1 is not 2\n", text)
        self.assertEqual(text.splitlines()[-2:], ["failed tests: graph.a", "4 passed, 1 failed"])

    def test_quick_leaves_layers_out(self):
        _, _, layers = run_main("quick")
        self.assertEqual({name for name, layer in layers.items() if layer.called}, set(check.QUICK))

    def test_an_unknown_layer_is_refused(self):
        status, text, _ = run_main("asan-ubsan")
        self.assertIn("asan-ubsan is no layer", status)
        self.assertEqual(text, "")

    def test_tests_are_left_out_where_the_build_fails(self):
        with mock.patch.object(check, "build", return_value=check.Outcome(failed=1)), \
                mock.patch.object(check, "ctest") as ctest, contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(check.Check("single").test(), check.Outcome(failed=2))
        ctest.assert_not_called()

    def test_the_whole_check_leaves_sources_of_tests_to_gcc_alone(self):
        targets = "a.dir/file.cpp.o: CXX\na.dir/file_test.cpp.o: CXX\na.dir/test_device.cpp.o: CXX\n"
        for extent, count in (("all", 2), ("quick", 2), ("single", 3)):
            with mock.patch.object(check, "configured", return_value=True), mock.patch.object(check, "build") as build, \
                    mock.patch.object(check.subprocess, "run", return_value=mock.Mock(stdout=targets)):
                check.Check(extent).gcc()
            self.assertEqual(len(build.call_args.args), 1 + count, extent)

    def test_ctest_is_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.xml")
            report.write_text(REPORT)
            outcome = check.summary_of(report)
            self.assertEqual((outcome.passed, outcome.failed, outcome.skipped), (3, 2, 2))
            self.assertEqual([test for test, _ in outcome.failures], ["a.fails", "a.has_no_output"])
            printed = outcome.failures[0][1].splitlines()
            self.assertEqual((len(printed), printed[-1]), (check.LAST_LINES, "line 99"))


class Tidy(unittest.TestCase):
    def options(self, words):
        return tidy.compiler_options({"command": f"/usr/bin/env A=b /usr/bin/ccache /usr/bin/clang++-19 {words}"})

    def test_the_launcher_and_the_outputs_go(self):
        self.assertEqual(self.options("-DA=1 -I. -MD -MT a.o -MF a.o.d -o a.o -c a.cpp"), ["-DA=1", "-I.", "-c", "a.cpp"])

    def test_precompiled_headers_go(self):
        self.assertEqual(self.options("-Winvalid-pch -Xclang -include-pch -Xclang a.pch -Xclang -include -Xclang a.hxx -c a.cpp"),
                         ["-c", "a.cpp"])
        self.assertEqual(self.options("-Xclang -fno-validate-pch -c a.cpp"), ["-Xclang", "-fno-validate-pch", "-c", "a.cpp"])

    def test_only_sources_of_the_project_are_analysed(self):
        def command(path):
            return {"file": str(path), "command": f"clang++-19 -c {path}"}
        self.assertTrue(tidy.ours(command(tidy.ROOT / "base/file.cpp")))
        for path in (tidy.ROOT / "build/release/a.cpp", "/usr/include/volk.c"):
            self.assertFalse(tidy.ours(command(path)), path)

    def test_only_what_changed_is_selected(self):
        commands = {str(tidy.ROOT / path): {} for path in ("base/a.cpp", "base/b.cpp")}
        with mock.patch.object(tidy, "changed_files", return_value={"base/b.cpp", "docs/testing.md"}):
            self.assertEqual(list(tidy.only_changed(commands)), [str(tidy.ROOT / "base/b.cpp")])


class SyntaxOnly(unittest.TestCase):
    def run_on(self, source):
        """Whether the compiler accepts a source, and what the object holds then."""
        with tempfile.TemporaryDirectory() as folder:
            file, made = pathlib.Path(folder, "a.cpp"), pathlib.Path(folder, "a.o")
            file.write_text(source)
            accepted = subprocess.run([tidy.ROOT / "tools/check/syntax_only.sh", "g++", "-Wall", "-Werror", "-o", made, "-c", file],
                                      capture_output=True).returncode == 0
            return accepted, made.read_text() if made.exists() else None

    def test_a_source_that_is_accepted_gives_an_object_without_code_that_ccache_keeps(self):
        self.assertEqual(self.run_on("int f() { return 0; }"), (True, "looked at\n"))

    def test_errors_and_warnings_give_none(self):
        for source in ("int f() { return g(); }", "void f() { int unused; }",
                       "template <class T> int f(T t) { return t.none(); } int g() { return f(1); }"):
            self.assertEqual(self.run_on(source), (False, None), source)


if __name__ == "__main__":
    unittest.main()
