"""libfornax_ort_ep.so in onnxruntime as its wheel has it. The environment is that of provider.py;
FORNAX_ORT_CLIENT is the program of client.cpp."""

import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import provider

CLIENT = os.environ["FORNAX_ORT_CLIENT"]
RANDOM = np.random.default_rng(5)
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def make_model(nodes, inputs, outputs, weights=None):
    """Inputs and outputs are {name: (type, dimensions)}, dimensions numbers or names."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def perceptron(batch="batch"):
    """With weights that are too large to be copied into messages."""
    return make_model(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["s"]),
         helper.make_node("Relu", ["s"], ["r"]), helper.make_node("MatMul", ["r", "v"], ["y"])],
        {"x": (FLOAT, [batch, 300])}, {"y": (FLOAT, [batch, 64])},
        {"w": floats(300, 200) / 17, "b": floats(200), "v": floats(200, 64) / 14})


def mixed():
    """Strings in the middle of one branch, indices that the data decide in the other."""
    return make_model(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
         helper.make_node("NonZero", ["b"], ["n"]), helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
         helper.make_node("ReduceSum", ["f"], ["c"], keepdims=0),
         helper.make_node("Add", ["b", "c"], ["d"]), helper.make_node("Softmax", ["d"], ["y"]),
         helper.make_node("Tanh", ["a"], ["z"])],
        {"x": (FLOAT, ["n", 16])}, {"y": (FLOAT, ["n", 32]), "z": (FLOAT, ["n", 32])}, {"w": floats(16, 32)})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        provider.devices()

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="fornax_ort_")))

    def check(self, made, model, feeds):
        for actual, expected in zip(made.run(None, feeds), provider.reference(model).run(None, feeds), strict=True):
            self.assertEqual(actual.dtype, expected.dtype)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)

    def assertFails(self, text, function):
        with self.assertRaises(Exception) as caught:
            function()
        self.assertRegex(str(caught.exception), text)


class Provider(Case):
    def test_the_device_is_offered_as_the_processor(self):
        (device,) = provider.devices()
        self.assertEqual(device.device.type, onnxruntime.OrtHardwareDeviceType.CPU)
        self.assertIn("Fornax", device.ep_metadata["vulkan_device"])

    def test_sizes_change_between_runs(self):
        model = perceptron()
        made = provider.session(model)
        self.assertEqual(provider.partitions(made), [["Gemm", "Relu", "MatMul"]])  # onnxruntime joined two
        for batch in (1, 3, 200, 3, 0, 1):
            self.check(made, model, {"x": floats(batch, 300)})

    def test_it_is_found_by_its_name(self):
        model = perceptron()
        made = onnxruntime.InferenceSession(model, providers=[(provider.NAME, {"cache": "none"})], enable_fallback=0)
        self.assertEqual(made.get_providers()[0], provider.NAME)
        self.check(made, model, {"x": floats(3, 300)})

    def test_fixed_sizes(self):
        model = perceptron(batch=4)
        made = provider.session(model)
        self.assertEqual(provider.others(made), [])
        for _ in range(3):
            self.check(made, model, {"x": floats(4, 300)})

    def test_nodes_are_shared_with_other_providers(self):
        model = mixed()
        made = provider.session(model)
        self.assertEqual([sorted(part) for part in provider.partitions(made)],
                         [["MatMul", "Relu", "Tanh"], ["Add", "Cast", "ReduceSum", "Softmax"]])
        self.assertEqual(provider.others(made), ["NonZero"])
        for rows in (1, 5, 2):
            self.check(made, model, {"x": floats(rows, 16)})

    def test_memory_that_stays_is_used_in_place(self):
        """The same addresses again and again, then others: results are always those of this run's inputs."""
        model = perceptron()
        made = provider.session(model)
        kept = onnxruntime.OrtValue.ortvalue_from_numpy(floats(64, 300))
        for run in range(12):
            value = kept if run % 5 != 4 else onnxruntime.OrtValue.ortvalue_from_numpy(floats(64, 300))
            if value is kept:
                kept.update_inplace(floats(64, 300))
            result = onnxruntime.OrtValue.ortvalue_from_shape_and_type([64, 64], np.float32)
            binding = made.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_ortvalue_output("y", result)
            made.run_with_iobinding(binding)
            expected = provider.reference(model).run(None, {"x": value.numpy()})[0]
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)

    def test_many_threads_run_one_session(self):
        model = perceptron()
        made, reference = provider.session(model), provider.reference(model)
        wrong = []

        def work(seed):
            random = np.random.default_rng(seed)
            for _ in range(12):
                x = random.standard_normal((int(random.integers(1, 6)), 300)).astype(np.float32)
                if not np.allclose(made.run(None, {"x": x})[0], reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4):
                    wrong.append(x.shape)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_several_sessions_live_at_once(self):
        models = [perceptron(), mixed()]
        made = [provider.session(model) for model in models]
        self.check(made[0], models[0], {"x": floats(2, 300)})
        self.check(made[1], models[1], {"x": floats(2, 16)})
        del made[0]
        self.check(made[0], models[1], {"x": floats(3, 16)})

    def test_subgraphs_belong_to_their_node(self):
        """A loop of a number of iterations that only the data tell, with values from around it."""
        body = helper.make_graph(
            [helper.make_node("MatMul", ["h", "w"], ["m"]), helper.make_node("Tanh", ["m"], ["h2"]),
             helper.make_node("Identity", ["go"], ["go2"])], "body",
            [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("h", FLOAT, [2, 8])],
            [helper.make_tensor_value_info("go2", TensorProto.BOOL, []), helper.make_tensor_value_info("h2", FLOAT, [2, 8])])
        model = make_model(
            [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body), helper.make_node("Relu", ["y"], ["z"])],
            {"x": (FLOAT, [2, 8]), "count": (INT64, [])}, {"z": (FLOAT, [2, 8])}, {"w": floats(8, 8) / 4})
        made = provider.session(model)
        for count in (0, 1, 7):
            self.check(made, model, {"x": floats(2, 8), "count": np.array(count, np.int64)})

    def test_a_trip_count_that_is_known(self):
        body = helper.make_graph(
            [helper.make_node("MatMul", ["h", "w"], ["h2"]), helper.make_node("Identity", ["go"], ["go2"])], "body",
            [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
             helper.make_tensor_value_info("h", FLOAT, [2, 8])],
            [helper.make_tensor_value_info("go2", TensorProto.BOOL, []), helper.make_tensor_value_info("h2", FLOAT, [2, 8])])
        model = make_model(
            [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body), helper.make_node("Relu", ["y"], ["z"])],
            {"x": (FLOAT, [2, 8])}, {"z": (FLOAT, [2, 8])}, {"w": floats(8, 8) / 4, "count": np.array(3, np.int64)})
        made = provider.session(model)
        self.assertEqual(provider.others(made), [])
        self.check(made, model, {"x": floats(2, 8)})

    def test_narrow_types(self):
        model = make_model(
            [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), helper.make_node("Add", ["h", "h"], ["s"]),
             helper.make_node("Cast", ["s"], ["b"], to=TensorProto.UINT8), helper.make_node("Greater", ["x", "zero"], ["g"])],
            {"x": (FLOAT, ["n"])},
            {"s": (TensorProto.FLOAT16, ["n"]), "b": (TensorProto.UINT8, ["n"]), "g": (TensorProto.BOOL, ["n"])},
            {"zero": np.zeros((), np.float32)})
        made = provider.session(model)
        self.assertEqual(provider.others(made), [])
        self.check(made, model, {"x": np.arange(11, dtype=np.float32)})


class Options(Case):
    def test_unknown_ones_are_named(self):
        model = perceptron()
        for options, text in (({"speed": "1"}, "no option 'speed'"), ({"precision": "low"}, "precision .* 'low'"),
                              ({"strict": "yes"}, "strict .* 'yes'"), ({"device": "Unobtainium"}, "Unobtainium")):
            self.assertFails(text, lambda options=options: provider.session(model, options))

    def test_strict_refuses_what_would_be_left(self):
        self.assertFails("1 of 8 nodes .*NonZero", lambda: provider.session(mixed(), {"strict": "1", "cache": "none"}))
        self.assertEqual(provider.others(provider.session(perceptron(), {"strict": "1", "cache": "none"})), [])

    def test_precision(self):
        model = perceptron(batch=8)
        feeds = {"x": floats(8, 300)}
        expected = provider.reference(model).run(None, feeds)[0]
        for precision in ("highest", "high", "medium"):
            made = provider.session(model, {"precision": precision, "cache": "none"})
            apart = np.linalg.norm(made.run(None, feeds)[0] - expected) / np.linalg.norm(expected)
            self.assertLess(apart, 0.02 if precision == "medium" else 1e-5)

    def test_devices_by_name_and_index(self):
        for device in ("Fornax", "0"):
            made = provider.session(perceptron(), {"device": device, "cache": "none"})
            self.assertEqual(len(provider.partitions(made)), 1)

    def test_plans_are_cached(self):
        model = perceptron(batch=4)
        cache = self.folder / "cache"
        cache.mkdir(mode=0o700)
        feeds = {"x": floats(4, 300)}
        for _ in range(2):
            self.check(provider.session(model, {"cache": str(cache)}), model, feeds)
        plans = sorted(cache.glob("graphplan*"))
        self.assertEqual(len(plans), 1)
        # Other weights are another plan.
        other = perceptron(batch=4)
        self.check(provider.session(other, {"cache": str(cache)}), other, feeds)
        self.assertEqual(len(list(cache.glob("graphplan*"))), 2)
        # A damaged one is made again.
        plans[0].write_bytes(plans[0].read_bytes()[:100] + bytes(50))
        self.check(provider.session(model, {"cache": str(cache)}), model, feeds)

    def test_a_cache_that_cannot_be_written(self):
        model = perceptron(batch=4)
        blocked = self.folder / "file"
        blocked.write_text("not a directory")
        self.check(provider.session(model, {"cache": str(blocked / "cache")}), model, {"x": floats(4, 300)})


class Bad(Case):
    def test_damaged_models(self):
        model = perceptron()
        for broken in (model[:len(model) // 2], b"", b"\xff" * 64):
            self.assertFails(".", lambda broken=broken: provider.session(broken))

    def test_what_is_not_covered_is_left(self):
        model = make_model(
            [helper.make_node("Gather", ["x", "i"], ["y"])],
            {"x": (STRING, ["n"])}, {"y": (STRING, [2])}, {"i": np.array([1, 0])})
        made = provider.session(model)
        self.assertEqual(provider.partitions(made), [])
        self.assertEqual(made.run(None, {"x": np.array(["A", "Bc"])})[0].tolist(), ["Bc", "A"])

    def test_sizes_that_cannot_be_fail_and_others_go_on(self):
        model = make_model(
            [helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": (FLOAT, ["n"])}, {"y": (FLOAT, [2, "m"])},
            {"shape": np.array([2, -1], np.int64)})
        made = provider.session(model)
        x = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x.reshape(2, 3))
        self.assertFails("Fornax", lambda: made.run(None, {"x": x[:5]}))
        np.testing.assert_array_equal(made.run(None, {"x": x[:4]})[0], x[:4].reshape(2, 2))


class Contexts(Case):
    def compiled(self, model, embed, **more):
        path = self.folder / f"net_{len(list(self.folder.iterdir()))}_ctx.onnx"
        source = self.folder / "net.onnx"
        source.write_bytes(model)
        provider.session(source, config={"ep.context_enable": "1", "ep.context_embed_mode": embed,
                                         "ep.context_file_path": str(path)}, **more)
        return path

    def test_compiled_models_run(self):
        for name, model, feeds in (("open", perceptron(), [{"x": floats(n, 300)} for n in (1, 5, 2)]),
                                   ("fixed", perceptron(batch=4), [{"x": floats(4, 300)}]),
                                   ("mixed", mixed(), [{"x": floats(n, 16)} for n in (3, 1)])):
            for embed in "01":
                with self.subTest(name=name, embed=embed):
                    path = self.compiled(model, embed)
                    nodes = [node.op_type for node in onnx.load(path).graph.node]
                    self.assertIn("EPContext", nodes)
                    self.assertNotIn("MatMul", nodes)
                    made = provider.session(path)
                    for one in feeds:
                        self.check(made, model, one)

    def test_damaged_ones_are_refused(self):
        for model in (perceptron(), perceptron(batch=4)):
            path = self.compiled(model, "1")
            original = onnx.load(path)
            (index,) = [i for i, node in enumerate(original.graph.node) if node.op_type == "EPContext"]
            for damage in (lambda s: s[:len(s) // 2], lambda s: s[:-9] + bytes(9), lambda s: b"", lambda s: b"x" * 500,
                           lambda s: s[:200] + bytes([s[200] ^ 1]) + s[201:]):
                broken = onnx.ModelProto()
                broken.CopyFrom(original)
                for attribute in broken.graph.node[index].attribute:
                    if attribute.name == "ep_cache_context":
                        attribute.s = damage(attribute.s)
                self.assertFails("[Tt]he |a compiled partition", lambda broken=broken: provider.session(
                    broken.SerializeToString()))

    def test_a_file_that_is_elsewhere_is_refused(self):
        path = self.compiled(perceptron(batch=4), "0")
        model = onnx.load(path)
        for name in ("/etc/passwd", "../net.onnx", "missing.fornax"):
            for node in model.graph.node:
                for attribute in node.attribute:
                    if attribute.name == "ep_cache_context":
                        attribute.s = name.encode()
            onnx.save(model, self.folder / "moved.onnx")
            self.assertFails("Fornax", lambda: provider.session(self.folder / "moved.onnx"))

    def test_a_plan_of_another_model_is_refused(self):
        one, other = self.compiled(perceptron(batch=4), "1"), self.folder / "other.onnx"
        model = onnx.load(one)
        model.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
        onnx.save(model, other)
        self.assertFails("reads x as f32", lambda: provider.session(other))

    def test_other_weights_are_refused(self):
        """Else a plan in the cache, which is found by the partition, would compute with those of before."""
        path = self.compiled(perceptron(), "1")
        model = onnx.load(path)
        (weight,) = [tensor for tensor in model.graph.initializer if tensor.name == "w"]
        for change in (lambda w: w + 1, lambda w: w.reshape(200, 300), lambda w: w[:, :100]):
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            for tensor in changed.graph.initializer:
                if tensor.name == "w":
                    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(numpy_helper.to_array(weight))), "w"))
            self.assertFails("constant", lambda changed=changed: provider.session(changed.SerializeToString()))

    def test_by_the_compiler_of_onnxruntime(self):
        model = perceptron(batch=4)
        options = onnxruntime.SessionOptions()
        options.add_provider_for_devices(provider.devices(), {"cache": "none"})
        path = self.folder / "compiled.onnx"
        onnxruntime.ModelCompiler(options, model, embed_compiled_data_into_model=True).compile_to_file(str(path))
        self.check(provider.session(path), model, {"x": floats(4, 300)})


class Loading(Case):
    def test_it_is_registered_again_in_one_process(self):
        script = """if True:
            import numpy as np, onnxruntime, provider, provider_test
            model = provider_test.perceptron()
            for _ in range(3):
                provider.devices.cache_clear()
                made = provider.session(model)
                assert len(provider.partitions(made)) == 1
                made.run(None, {"x": np.ones((2, 300), np.float32)})
                del made
                onnxruntime.unregister_execution_provider_library("Fornax")
            print("done")
        """
        result = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True)
        self.assertEqual(result.stdout, "done\n", result.stderr)

    def test_no_device(self):
        script = """if True:
            import onnxruntime, provider
            onnxruntime.register_execution_provider_library("Fornax", provider.LIBRARY)
            print([device for device in onnxruntime.get_ep_devices() if device.ep_name == provider.NAME])
        """
        result = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True,
                                env=dict(os.environ, VK_DRIVER_FILES="/nowhere.json"))
        self.assertEqual(result.stdout, "[]\n", result.stderr)
        self.assertIn("Fornax has no device", result.stderr)

    def client(self, what, *arguments):
        (library,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*")
        return subprocess.run([CLIENT, what, library, provider.LIBRARY, *arguments], capture_output=True, text=True)

    def test_from_cpp(self):
        model = make_model([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (FLOAT, ["n", 3])}, {"y": (FLOAT, ["n", 3])})
        (self.folder / "add.onnx").write_bytes(model)
        result = self.client("run", self.folder / "add.onnx")
        self.assertEqual(result.stdout, "0 2 4 6 8 10 \n" * 3, result.stderr)

    def test_an_older_onnxruntime_is_refused(self):
        self.assertEqual(self.client("old").stdout,
                         "Fornax is built for onnxruntime 1.23 or later; this is 1.22.0.\n")

    def test_exports(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", provider.LIBRARY], capture_output=True, text=True,
                                 check=True).stdout
        self.assertEqual({line.split()[-1] for line in symbols.splitlines()}, {"CreateEpFactories", "ReleaseEpFactory"})


if __name__ == "__main__":
    unittest.main()
