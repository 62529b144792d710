"""Tests of the conformance runner, with fake_deqp.py in the place of the Khronos binary."""

import contextlib
import io
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import baseline
import batches
import deqp
import report
import run_cts

FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_deqp.py")


def binary(case_seconds=20.0, **environment):
    return deqp.Binary(FAKE, ("--deqp-wanted=1",), {**os.environ, **environment}, case_seconds)


def statuses(cases, **options):
    results = []
    deqp.run_batch(binary(**options), cases, results.append)
    return {result.case: result.status for result in results}, results


class RunBatch(unittest.TestCase):
    def test_each_result_of_deqp_gets_its_status(self):
        found, _ = statuses(["t.pass", "t.quality", "t.unsupported", "t.fail", "t.internal"],
                            FAKE_DEQP_WANTS="--deqp-wanted=1")
        self.assertEqual(found, {"t.pass": "pass", "t.quality": "warning", "t.unsupported": "unsupported",
                                 "t.fail": "fail", "t.internal": "fail"})

    def test_detail_of_a_failure_is_whole_and_holds_the_drivers_message(self):
        _, results = statuses(["t.fail"])
        self.assertEqual(results[0].detail, "Compare failed (twice) at element 17 | "
                                            "driver: the product of 3 and 4 is 13")

    def test_crashes_cost_their_own_case_only(self):
        cases = ["t.pass-1", "t.crash-1", "t.pass-2", "t.exit", "t.crash-2", "t.pass-3"]
        found, results = statuses(cases)
        self.assertEqual(list(found), cases)
        self.assertEqual([case for case in cases if found[case] == "crash"], ["t.crash-1", "t.exit", "t.crash-2"])
        self.assertTrue(all(found[case] == "pass" for case in cases if "pass" in case))
        details = {result.case: result.detail for result in results}
        self.assertEqual(details["t.crash-1"], "ended by SIGSEGV | driver: about to crash")
        self.assertEqual(details["t.exit"], "ended with status 3 inside of the case")

    def test_a_death_between_two_cases_loses_none(self):
        found, _ = statuses(["t.pass-1", "t.crash_after", "t.pass-2"])
        self.assertEqual(found, {"t.pass-1": "pass", "t.crash_after": "pass", "t.pass-2": "pass"})

    def test_a_hang_is_killed_with_its_children(self):
        started = time.monotonic()
        found, results = statuses(["t.pass-1", "t.hang", "t.pass-2"], case_seconds=1.0)
        self.assertEqual(found, {"t.pass-1": "pass", "t.hang": "hang", "t.pass-2": "pass"})
        self.assertLess(time.monotonic() - started, 90)  # of the 100 that its child sleeps
        self.assertIn("no result within 1 s", results[1].detail)

    def test_unknown_cases_are_missing(self):
        found, _ = statuses(["t.unknown-1", "t.pass", "t.unknown-2"])
        self.assertEqual(found, {"t.pass": "pass", "t.unknown-1": "missing", "t.unknown-2": "missing"})

    def test_a_binary_that_cannot_start_is_no_endless_loop(self):
        found, results = statuses(["t.pass-1", "t.pass-2"], FAKE_DEQP_BROKEN="1")
        self.assertEqual(set(found.values()), {"crash"})
        self.assertIn("cannot load libvulkan", results[0].detail)


class RunAll(unittest.TestCase):
    def test_parallel_batches_give_every_case_one_result_in_order(self):
        cases = [f"t.{'crash' if i % 7 == 3 else 'pass'}-{i}" for i in range(40)]
        seen = []
        results = batches.run_all(binary(), cases, baseline.Baseline(), 3, 8, lambda result: seen.append(result.case))
        self.assertEqual([result.case for result in results], cases)
        self.assertEqual(sorted(seen), sorted(cases))
        for result in results:
            self.assertEqual(result.status, result.case[2:].split("-")[0])

    def test_batches_hold_all_cases_and_are_neither_large_nor_few(self):
        cases = [str(i) for i in range(1000)]
        split = batches.split(cases, 2, 100)
        self.assertEqual(sum(split, []), cases)
        self.assertTrue(all(len(batch) <= 100 for batch in split))
        self.assertGreaterEqual(len(batches.split(cases[:10], 2, 100)), 2)

    def test_flakes_are_run_again(self):
        with tempfile.TemporaryDirectory() as state:
            lists = baseline.Baseline(flakes=baseline.PatternList(["t.flaky-1", "t.fail"]))
            results = batches.run_all(binary(FAKE_DEQP_STATE=state), ["t.flaky-1", "t.flaky-2", "t.fail"], lists, 1, 9,
                                      lambda result: None)
        self.assertEqual([result.status for result in results], ["flake", "fail", "fail"])


class Lists(unittest.TestCase):
    def test_patterns_match_whole_names_and_only_stars_are_special(self):
        patterns = baseline.PatternList(["a.b", "c.*.d  # why", "# nothing", "", "e[0].*"])
        for case, matches in [("a.b", True), ("a.b.c", False), ("c.x.y.d", True), ("c.d", False), ("e[0].f", True),
                              ("e0.f", False)]:
            self.assertEqual(patterns.matches(case), matches, case)
        self.assertEqual(patterns.unused(["a.b", "e[0].f"]), ["c.*.d"])

    def test_judgement(self):
        lists = baseline.Baseline(expected_failures=baseline.PatternList(["t.*"]))
        for status, judged in [("fail", "expected"), ("crash", "expected"), ("hang", "expected"),
                               ("pass", "surprise"), ("unsupported", "unsupported")]:
            self.assertEqual(lists.judge(deqp.Result("t.a", status)), judged)
            self.assertEqual(lists.judge(deqp.Result("u.a", status)), status)

    def test_the_lists_of_the_repository_give_reasons(self):
        for path in pathlib.Path(baseline.FOLDER).glob("*.txt"):
            for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
                # A comment holds for the lines below it, up to an empty one.
                reason = ""
                for line in paragraph.splitlines():
                    reason = line if line.startswith("#") else reason
                    self.assertRegex(line + reason, r"#.*\w{3}", f"{path.name}: {line}")


class Reports(unittest.TestCase):
    JUDGED = [(deqp.Result("dEQP-VK.a.b.c", "pass"), "pass"),
              (deqp.Result("dEQP-VK.a.b.d", "fail", "element 17 is 0x1f"), "fail"),
              (deqp.Result("dEQP-VK.a.e.f", "fail", "element 4 is 0x2e"), "fail"),
              (deqp.Result("dEQP-VK.g", "unsupported"), "unsupported")]

    def test_table_counts_by_group(self):
        self.assertEqual(report.table(self.JUDGED, 2), [
            "| group   | cases | pass | unsupported | fail |",
            "|---------|------:|-----:|------------:|-----:|",
            "| a.b     |     2 |    1 |           0 |    1 |",
            "| a.e     |     1 |    0 |           0 |    1 |",
            "| dEQP-VK |     1 |    0 |           1 |    0 |",
            "| total   |     4 |    1 |           1 |    2 |"])

    def test_failures_of_one_cause_stand_together(self):
        self.assertEqual(report.causes(self.JUDGED), ["2 x fail: element 17 is 0x1f", "    dEQP-VK.a.b.d",
                                                      "    dEQP-VK.a.e.f"])

    def test_results_are_read_as_written_and_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results")
            report.write_results(path, self.JUDGED)
            other = report.read_results(path)
        self.assertEqual([(result.case, status, result.detail) for result, status in other],
                         [(result.case, status, result.detail) for result, status in self.JUDGED])
        here = [(deqp.Result("dEQP-VK.a.b.c", "unsupported"), "unsupported"), *self.JUDGED[1:]]
        self.assertEqual([result.case for result, _ in report.lost(here, other)], ["dEQP-VK.a.b.c"])


class CommandLine(unittest.TestCase):
    def run_tool(self, *arguments):
        output = io.StringIO()
        sys.argv = ["run_cts.py", "--deqp", FAKE, *arguments]
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                status = run_cts.main()
            except SystemExit as error:
                status = error.code
        return status, output.getvalue()

    def test_a_group_of_the_binary(self):
        status, output = self.run_tool("dEQP-VK.*", "--jobs", "2", "--depth", "1")
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"\| alpha +\| +3 \| +1 \| +0 \| +1 \| +1 \|")
        self.assertIn("1 x crash: ended by SIGSEGV", output)
        status, output = self.run_tool("dEQP-VK.beta.*")
        self.assertEqual(status, 0, output)

    def test_lists_sampling_and_exclusion(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in [("expected_failures.txt", "*.one.fail # known\n"), ("skips.txt", "*.two.* # known\n")]:
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
            status, output = self.run_tool("dEQP-VK.*", "--lists", folder, "--exclude", "*.unsupported")
            self.assertEqual(status, 0, output)
            self.assertRegex(output, r"\| total +\| +3 \| +2 \| +1 \|")
            _, output = self.run_tool("dEQP-VK.*", "--lists", folder, "--sample", "2")
            self.assertRegex(output, r"\| total +\| +2 \|")

    def test_case_lists_drivers_and_results(self):
        with tempfile.TemporaryDirectory() as folder:
            cases, manifest, results = (os.path.join(folder, name) for name in ("cases", "fake.json", "results"))
            pathlib.Path(cases).write_text("a.driver\nb.fail\n", encoding="utf-8")
            pathlib.Path(manifest).write_text("{}", encoding="utf-8")
            status, output = self.run_tool("--caselist", cases, "a.*", "--driver", manifest, "--results", results)
            self.assertEqual(status, 0, output)
            self.assertEqual(report.read_results(results)[0][0].case, "a.driver")

    def test_a_stopped_run_keeps_what_it_has(self):
        with tempfile.TemporaryDirectory() as folder:
            cases, results = (os.path.join(folder, name) for name in ("cases", "results"))
            pathlib.Path(cases).write_text("a.pass\na.unsupported\na.hang\nb.pass\n", encoding="utf-8")
            # Small batches of their own would hide that what a killed process finished counts.
            with mock.patch.object(batches, "split", lambda given, jobs, size: [given]):
                # timeout(1) sends its signal twice.
                timers = [threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGTERM)) for seconds in (3, 3.01)]
                for timer in timers:
                    timer.start()
                status, output = self.run_tool("--caselist", cases, "--results", results, "--jobs", "1")
                for timer in timers:
                    timer.join()
            self.assertEqual(status, 2, output)
            self.assertIn("stopped: 2 of 4 cases have a result", output)
            self.assertEqual([result.case for result, _ in report.read_results(results)], ["a.pass", "a.unsupported"])

    def test_wrong_usage_is_told(self):
        for arguments in [[], ["x.*", "--jobs", "0"], ["x.*", "--nonsense"], ["x.*", "--driver", "/nowhere.json"],
                          ["dEQP-VK.nothing.*"]]:
            status, output = self.run_tool(*arguments)
            self.assertEqual(status, 2, output)
            self.assertTrue(output)


if __name__ == "__main__":
    unittest.main()
