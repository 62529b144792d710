"""The main job: the digit classifier on its whole test split, its plan file, and its cache."""

import os
import re
import unittest

import numpy as np
import onnx
from onnx import numpy_helper

from fornax_command import DIGITS, IMAGES, LABELS, FornaxCase, onnxruntime_outputs


class Digits(FornaxCase):
    def run_digits(self, *arguments):
        return self.fornax_ok("run", DIGITS, "--input", IMAGES, "--labels", LABELS, *arguments)

    def test_accuracy_and_tables(self):
        text = self.run_digits()
        accuracy = float(re.search(r"accuracy ([\d.]+) % \(\d+ of 450\)", text)[1])
        self.assertGreaterEqual(accuracy, 97)
        self.assertRegex(text, r"conv2 *\+ *relu2|conv2\+relu2 +conv2d +\d+x\d+x\d+")
        self.assertRegex(text, r"probabilities +output +f32\[64x10\] +\d+ +2560")
        self.assertIn("of 64 samples each", text)

    def test_every_image_agrees_with_onnxruntime(self):
        images = numpy_helper.to_array(onnx.load_tensor(str(IMAGES)))
        self.assertEqual(images.shape, (450, 1, 8, 8))
        expected = onnxruntime_outputs(DIGITS.read_bytes(), {"image": images})[0]
        for options in ([], ["--batch", "450"], ["--batch", "7"], ["--no-fusion"]):
            with self.subTest(options=options):
                (actual,) = self.run_model(DIGITS, [images], 1, *options)
                self.assertEqual(actual.shape, (450, 10))
                self.assertLess(np.abs(actual - expected).max(), 1e-4)

    def test_plan_file_gives_the_same_results(self):
        images = numpy_helper.to_array(onnx.load_tensor(str(IMAGES)))
        plan = self.directory / "digits.plan"
        self.assertIn("written to", self.fornax_ok("compile", DIGITS, "-o", plan))
        (from_model,) = self.run_model(DIGITS, [images], 1)
        (from_plan,) = self.run_model(plan, [images], 1)
        np.testing.assert_array_equal(from_model, from_plan)

    def test_runs_without_data(self):
        text = self.fornax_ok("run", DIGITS, "--batch", "3")
        self.assertIn("1 of 3 samples each", text)
        self.assertIn("f32[3x10]", text)
        self.assertNotIn("predictions", text)

    def test_explain(self):
        text = self.fornax_ok("compile", DIGITS, "--explain")
        self.assertRegex(text, r"(?m)^dispatch 0: conv2d for conv1\+relu1, grid 64x2x1, set 0$")
        self.assertRegex(text, r"(?m)^output probabilities: f32\[64x10\]")
        self.assertRegex(text, r"(?m)^barrier$")

    def test_second_run_finds_plan_and_kernels(self):
        self.assertIn("compiled in", self.run_digits())
        self.assertIn("found in the cache", self.run_digits())
        if not os.environ.get("FORNAX_TEST_DEVICE"):  # other drivers need not report it
            self.assertIn("6 of them found in the cache", self.run_digits())
        self.assertIn("compiled in", self.run_digits("--batch", "32"))
        self.assertIn("compiled in", self.run_digits("--no-fusion"))
        self.assertIn("compiled in", self.run_digits("--no-cache"))

    def test_damaged_cache_entries_are_replaced(self):
        self.run_digits()
        (entry,) = self.cache.glob("plan-*.fnx")
        good = entry.read_bytes()
        for damage in (
            good[: len(good) // 2],
            b"",
            good[:-1] + bytes([good[-1] ^ 1]),
            good[: len(good) // 2] + bytes([good[len(good) // 2] ^ 0x40]) + good[len(good) // 2 + 1 :],
        ):
            entry.write_bytes(damage)
            text = self.run_digits()
            self.assertIn("compiled in", text)
            self.assertIn("accuracy 98.", text)
            self.assertEqual(entry.read_bytes()[-4096:], good[-4096:])
            self.assertIn("found in the cache", self.run_digits())

    def test_cache_list_and_clear_touch_only_their_own_files(self):
        self.run_digits()
        stranger = self.cache / "plan-notes.txt"
        stranger.write_text("mine")
        self.assertRegex(self.fornax_ok("cache", "list"), r"(?m)^plan +[0-9a-f]{32} ")
        self.fornax_ok("cache", "clear")
        self.assertEqual(list(self.cache.glob("plan-*.fnx")), [])
        self.assertEqual(stranger.read_text(), "mine")
        self.assertRegex(self.fornax_ok("cache", "list"), r"(?m)^0 entries")


if __name__ == "__main__":
    unittest.main()
