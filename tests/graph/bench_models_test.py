"""`fornax bench models`: a table of small models beside onnxruntime, and its numbers as JSON."""

import json
import unittest

from fornax_command import FornaxCase


class BenchModels(FornaxCase):
    def bench(self, *arguments):
        return self.fornax("bench", "models", *arguments, "--small", "--rounds", 1, "--seconds", 0.05, "--warm-up", 0,
                           "--folder", self.directory / "models")

    def test_networks_and_limits(self):
        numbers = self.directory / "bench.json"
        result = self.bench("gru_tagger", "limits", "--json", numbers)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        rows = {row["model"]: row for row in json.loads(numbers.read_text())["rows"]}
        self.assertEqual(set(rows), {"gru_tagger", "product", "weighted_product", "attention", "elementwise", "softmax",
                                     "layer_norm"})
        for name, row in rows.items():
            with self.subTest(name=name):
                self.assertLess(row["norm"], 1e-4)
                self.assertEqual(row["problem"], "")
                self.assertAlmostEqual(row["ratio"], row["onnxruntime_ms"] / row["fornax_ms"])
                self.assertGreater(row["load_first_ms"], 0)
                self.assertGreater(row["load_cached_ms"], 0)
                self.assertGreater(row["fornax_peak_bytes"], 1 << 20)
                self.assertGreaterEqual(row["arena_bytes"], row["lower_bound_bytes"])
                self.assertEqual("share" in row, name != "gru_tagger")
        self.assertIn("geometric mean of the ratios of 1 networks", result.stdout)
        self.assertRegex(result.stdout, r"\| product \| [\d.]+ GFLOP/s \| \d+ % of the FMA peak")
        self.assertRegex(result.stdout, r"\| softmax \| [\d.]+ GB/s \| \d+ % of copy bandwidth")

    def test_what_cannot_be_measured_is_a_row(self):
        models = self.directory / "models"
        models.mkdir()
        (models / "product_small.onnx").write_bytes(b"damaged")
        (models / "product_small.json").write_text("{\"only\": {}}")
        result = self.bench("product", "softmax")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\| product \| fornax: .*not an ONNX model")
        self.assertRegex(result.stdout, r"\| softmax \| \d")
        self.assertIn("There is no model nobody", self.bench("nobody").stderr)


if __name__ == "__main__":
    unittest.main()
