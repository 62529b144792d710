"""The main job: the digit classifier on its whole test split, its plan file, and the cache."""

import contextlib
import json
import os
import pty
import re
import subprocess
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fornax_command import DIGITS, IMAGES, LABELS, FornaxCase, make_model, onnxruntime_outputs, png_bytes


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

    def test_sizes_stay_open(self):
        self.assertRegex(self.run_digits("--dynamic", "N"), r"accuracy +9[7-9]")
        for command in (("run",), ("compile", "--explain")):
            result = self.fornax(*command, DIGITS, "--dynamic", "n")
            self.assertEqual(result.returncode, 1)
            self.assertIn("leaves no size n open; those that it does are: N.", result.stderr)

    def test_precision_is_of_products(self):
        """Weights of products of few rows are rounded to bf16 by every device in `medium`, and by none else."""
        random = np.random.default_rng(3)
        weights, x = (random.standard_normal(shape).astype(np.float32) for shape in ((256, 64), (1, 256)))
        path = self.directory / "product.onnx"
        onnx.save(make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, 256)}, {"y": (1, 64)},
                             {"w": weights}), path)
        exact = x.astype(np.float64) @ weights
        off = {}
        for precision in ("highest", "high", "medium"):
            for model, options in ((path, ("--precision", precision)), (self.directory / "product.plan", ())):
                if not options:
                    self.fornax_ok("compile", path, "-o", model, "--precision", precision)
                result = self.run_model(model, {"x": x}, *options)["y"]
                off[precision, bool(options)] = np.linalg.norm(result - exact) / np.linalg.norm(exact)
        for precision, is_model in off:
            with self.subTest(precision=precision, is_model=is_model):
                least, most = (1e-4, 1e-2) if precision == "medium" else (0, 1e-6)
                self.assertTrue(least <= off[precision, is_model] <= most, off)

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

    def test_explain_says_why_values_are_kept(self):
        for text in (self.fornax_ok("compile", DIGITS, "--explain"), self.run_digits("--explain")):
            self.assertRegex(text, r"(?m)^ +node +operation +kept +bytes +read by +because$")
            self.assertRegex(text, r"(?m)^ +softmax +.* f32\[\d+,10\] +\d+ +outputs +it is an output of the model$")
        plan = self.directory / "digits.plan"
        self.fornax_ok("compile", DIGITS, "-o", plan)
        self.assertIn("does not hold why", self.fornax_ok("run", plan, "--explain"))

    def test_profile_and_report(self):
        report, numbers = self.directory / "report", self.directory / "run.json"
        text = self.run_digits("--profile", "--top-steps", "2", "--write-report", report, "--json", numbers)
        self.assertRegex(text, r"(?m)^ +all +6 +[\d.]+ +100\.0 ")
        self.assertRegex(text, r"limits of \d+ threads: [\d.]+ Gop/s of FMA")
        self.assertIn("and 4 steps more", text)
        nodes = dict(line.split("\t") for line in (report / "nodes.txt").read_text().splitlines())
        self.assertLessEqual({node.name for node in onnx.load(str(DIGITS)).graph.node if node.op_type == "Conv"},
                             set(nodes))
        for name in ("boundaries.txt", "plan.txt", "memory.txt", "profile.txt"):
            self.assertTrue((report / name).read_text())
        values = json.loads(numbers.read_text())
        self.assertEqual((values["steps"], values["host_steps"], values["runs"]), (6, 0, 1))
        self.assertGreater(values["limits"]["fma_gflops"], 0)

    def test_nothing_but_results_in_files(self):
        result = self.fornax("run", DIGITS, "--input", IMAGES, "--no-cache")
        self.assertEqual(result.stderr, "")

    def test_a_terminal_shows_progress(self):
        leader, follower = pty.openpty()
        environment = dict(os.environ, FORNAX_CACHE_DIR=str(self.cache))
        with subprocess.Popen([os.environ["FORNAX_COMMAND"], "run", DIGITS], env=environment, stdout=subprocess.DEVNULL,
                              stderr=follower) as process:
            os.close(follower)
            shown = b""
            with contextlib.suppress(OSError):  # the end of a terminal
                while part := os.read(leader, 4096):
                    shown += part
            os.close(leader)
        self.assertEqual(process.returncode, 0, shown)
        for text in (b"importing ...", b"compiling ...", b"making kernels ["):
            self.assertIn(text, shown)
        self.assertTrue(shown.endswith(b"\r\033[K"), shown)

    def test_pictures(self):
        pixels = np.rint(images()[3, 0] * 255).astype(np.uint8)
        png = self.directory / "digit.PNG"
        png.write_bytes(png_bytes(pixels))
        expected = self.run_model(DIGITS, {"image": pixels[None, None].astype(np.float32) / 255})["probabilities"]
        text = self.fornax_ok("run", DIGITS, "--input", png, "--output-dir", self.directory)
        self.assertIn("8x8 to 8x8 (stretch), GRAY, NCHW, (value * 0.00392157 - 0) / 1", text)
        np.testing.assert_allclose(np.load(self.directory / "probabilities.npy"), expected, atol=1e-5)
        large = self.directory / "large.png"
        large.write_bytes(png_bytes(pixels.repeat(5, 0).repeat(5, 1)))
        self.fornax_ok("run", DIGITS, "--input", f"image={large}", "--output-dir", self.directory)
        self.assertEqual(np.load(self.directory / "probabilities.npy").argmax(), expected.argmax())
        text = self.fornax_ok("run", DIGITS, "-i", png, "--fit", "crop", "--scale", "1", "--mean", "128", "--std", "64")
        self.assertIn("(crop), GRAY, NCHW, (value * 1 - 128) / 64", text)

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
