"""The main job: the digit classifier on its whole test split, its plan file, and the cache."""

import os
import re
import unittest

import numpy as np
import onnx
from onnx import numpy_helper

from fornax_command import DIGITS, IMAGES, LABELS, FornaxCase, onnxruntime_outputs


def images():
    return numpy_helper.to_array(onnx.load_tensor(str(IMAGES)))


class Digits(FornaxCase):
    def run_digits(self, *arguments):
        return self.fornax_ok("run", DIGITS, "--input", IMAGES, "--truth", LABELS, *arguments)

    def test_accuracy_and_summary(self):
        text = self.run_digits()
        accuracy = float(re.search(r"accuracy +([\d.]+) % \(\d+ of 450\)", text)[1])
        self.assertGreaterEqual(accuracy, 97)
        self.assertRegex(text, r"(?m)^plan +\d+ dispatches of \d+ kernels, 0 steps on the host$")
        self.assertRegex(text, r"(?m)^input +image: f32\[450,1,8,8\] from ")
        self.assertRegex(text, r"(?m)^output +probabilities: f32\[450,10\] ")
        self.assertRegex(text, r"(?m)^memory +arena [^,]+, no less than [^,]+ possible")

    def test_every_image_agrees_with_onnxruntime(self):
        expected = onnxruntime_outputs(DIGITS.read_bytes(), {"image": images()})[0]
        for count in (450, 7, 1, 0):
            with self.subTest(count=count):
                actual = self.run_model(DIGITS, {"image": images()[:count]})["probabilities"]
                self.assertEqual(actual.shape, (count, 10))
                np.testing.assert_allclose(actual, expected[:count], atol=1e-4)

    def test_compare_prints_differences_and_fails_beyond_tolerances(self):
        text = self.run_digits("--compare", "onnxruntime")
        self.assertRegex(text, r"(?m)^probabilities +absolute \S+ at \[\d+, \d\], relative ")
        result = self.fornax("run", DIGITS, "--input", IMAGES, "--compare", "onnxruntime", "--absolute", "0",
                             "--relative", "0", "--norm", "0")
        self.assertEqual(result.returncode, 1)
        self.assertIn("too much", result.stdout)
        self.assertRegex(result.stderr, r"\Afornax: An output differs [^\n]+\.\n\Z")

    def test_plan_files_give_the_same_results(self):
        plan = self.directory / "digits.plan"
        from_model = self.run_model(DIGITS, {"image": images()})["probabilities"]
        text = self.fornax_ok("compile", DIGITS, "-o", plan, "--dim", "N=450")
        self.assertRegex(text, r"(?s)compiled in .* written to .*memory +arena")
        np.testing.assert_array_equal(self.run_model(plan, {"image": images()})["probabilities"], from_model)
        self.fornax_ok("compile", DIGITS, "-o", plan, "--dynamic", "N")
        for count in (450, 7):
            actual = self.run_model(plan, {"image": images()[:count]})["probabilities"]
            np.testing.assert_allclose(actual, from_model[:count], atol=1e-5)

    def test_plans_know_their_sizes(self):
        plan = self.directory / "digits.plan"
        self.fornax_ok("compile", DIGITS, "-o", plan, "--dim", "N=3")
        self.assertIn("f32[3,1,8,8] random", self.fornax_ok("run", plan))
        result = self.fornax("run", plan, "--input", IMAGES)
        self.assertEqual(result.returncode, 1)
        self.assertIn("f32[3,1,8,8]", result.stderr)

    def test_runs_without_data(self):
        text = self.fornax_ok("run", DIGITS, "--dim", "N=3", "--seed", "5")
        self.assertIn("f32[3,1,8,8] random, seed 5", text)
        self.assertIn("f32[3,10]", text)
        self.assertNotIn("accuracy", text)

    def test_labels_name_the_greatest_scores(self):
        labels = self.directory / "labels.txt"
        labels.write_text("".join(f"the digit {i}\n" for i in range(10)))
        text = self.fornax_ok("run", DIGITS, "--input", self.save_tensor("one.pb", images()[:1]), "--labels", labels,
                              "--top", "2")
        expected = onnxruntime_outputs(DIGITS.read_bytes(), {"image": images()[:1]})[0][0]
        lines = re.findall(r"(?m)^ +(\S+)  (\d) the digit (\d)$", text)
        self.assertEqual([int(index) for _, index, _ in lines], list(np.argsort(-expected)[:2]))
        for score, index, name in lines:
            self.assertEqual(index, name)
            self.assertAlmostEqual(float(score), expected[int(index)], places=4)

    def test_outputs_in_every_format(self):
        expected = self.run_model(DIGITS, {"image": images()[:4]})["probabilities"]
        folder = self.directory / "out" / "deep"
        for ending in ("npy", "pb"):
            self.fornax_ok("run", DIGITS, "-i", self.save_tensor("image.pb", images()[:4]), "-o", folder, "--format",
                           ending)
        np.testing.assert_array_equal(np.load(folder / "probabilities.npy"), expected)
        np.testing.assert_array_equal(numpy_helper.to_array(onnx.load_tensor(str(folder / "probabilities.pb"))),
                                      expected)

    def test_inputs_as_numpy_writes_them(self):
        expected = self.run_model(DIGITS, {"image": images()[:4]})["probabilities"]
        np.save(self.directory / "fortran.npy", np.asfortranarray(images()[:4]))
        np.save(self.directory / "big.npy", images()[:4].astype(">f4"))
        np.savez_compressed(self.directory / "packed.npz", image=images()[:4])
        for name in ("image=" + str(self.directory / "fortran.npy"), self.directory / "big.npy",
                     self.directory / "packed.npz"):
            with self.subTest(name=name):
                self.fornax_ok("run", DIGITS, "-i", name, "-o", self.directory)
                np.testing.assert_array_equal(np.load(self.directory / "probabilities.npy"), expected)

    def test_the_second_run_finds_its_kernels(self):
        first = self.run_digits()
        self.assertIn("loaded", first)
        if not os.environ.get("FORNAX_TEST_DEVICE"):  # other drivers need not report it
            self.assertRegex(first, r", 0 of (\d+) found in the cache")
            self.assertRegex(self.run_digits(), r", (\d+) of \1 found in the cache")
            self.assertRegex(self.run_digits("--no-cache"), r", 0 of \d+ found in the cache")

    def test_cache_list_and_clear_touch_only_their_own_files(self):
        self.run_digits()
        stranger = self.cache / "plan-notes.txt"
        stranger.write_text("mine")
        self.assertRegex(self.fornax_ok("cache", "list"), r"(?m)^graphpipelines +[0-9a-f]{32} ")
        self.fornax_ok("cache", "clear")
        self.assertEqual(list(self.cache.glob("graphpipelines-*")), [])
        self.assertEqual(stranger.read_text(), "mine")
        self.assertRegex(self.fornax_ok("cache", "list"), r"(?m)^0 entries")


if __name__ == "__main__":
    unittest.main()
