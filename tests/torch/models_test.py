"""Networks of `transformers` through torch.compile and torch.export on Fornax, beside eager torch.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest. Without transformers there is nothing to test.
"""

import importlib.util
import pathlib
import tempfile
import unittest
import warnings

import torch

import fornax
import fornax.torch

HAS_MODELS = importlib.util.find_spec("transformers") is not None
if HAS_MODELS:
    import models
    import transformers

CLOSE = {"rtol": 1e-3, "atol": 1e-4}
warnings.filterwarnings("ignore")


def backend(**options):
    return fornax.torch.Backend(strict=True, options={"cache": False}, **options)


@unittest.skipUnless(HAS_MODELS, "transformers is not installed")
class Compiled(unittest.TestCase):
    def check(self, name):
        torch._dynamo.reset()
        model, case = models.network(name)
        chosen = backend()
        compiled = torch.compile(model, backend=chosen, fullgraph=True)
        with torch.no_grad():
            for size in case.sizes:
                inputs = case.inputs(size).values()
                torch.testing.assert_close(compiled(*inputs), model(*inputs), **CLOSE)
        self.assertGreater(chosen.segments, 0)
        self.assertEqual(chosen.fallbacks, [])

    def tokens(self, make_cache, steps):
        """The logits of a prompt and some tokens after it, of a compiled and of an eager network."""
        torch._dynamo.reset()
        torch.manual_seed(11)
        model = models.llama().eval()
        chosen = backend()
        compiled = torch.compile(model, backend=chosen, fullgraph=True)
        given = models.words(1, 6 + steps)
        ours, theirs = make_cache(model.config), make_cache(model.config)
        with torch.no_grad():
            for begin, end in [(0, 6), *((6 + i, 7 + i) for i in range(steps))]:
                place = torch.arange(begin, end)
                call = lambda run, cache: run(  # noqa: E731
                    input_ids=given[:, begin:end], position_ids=place[None], past_key_values=cache,
                    use_cache=True).logits
                torch.testing.assert_close(call(compiled, ours), call(model, theirs), **CLOSE)
        self.assertEqual(chosen.fallbacks, [])
        return chosen

    def test_llama_with_a_static_cache(self):
        chosen = self.tokens(lambda config: transformers.StaticCache(config=config, max_cache_len=16), 6)
        self.assertLessEqual(chosen.segments, 4)

    def test_llama_with_a_dynamic_cache(self):
        chosen = self.tokens(lambda config: transformers.DynamicCache(config=config), 6)
        self.assertLessEqual(chosen.segments, 4)


@unittest.skipUnless(HAS_MODELS, "transformers is not installed")
class Exported(unittest.TestCase):
    def check(self, name):
        model, case = models.network(name)
        inputs = tuple(case.inputs(case.sizes[1]).values())
        shapes = tuple(dict.fromkeys(range(value.dim()), torch.export.Dim.AUTO) for value in inputs)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = pathlib.Path(folder) / "model.fx"
            writer = fornax.torch.export(model, inputs, path, dynamic_shapes=(shapes,))
            session = fornax.load(path, cache=False)
            names = [node.name for node in writer.inputs]
            for size in case.sizes:
                inputs = case.inputs(size).values()
                got = session.run(dict(zip(names, (value.numpy() for value in inputs))))
                torch.testing.assert_close(torch.from_numpy(next(iter(got.values()))), model(*inputs), **CLOSE)


@unittest.skipUnless(HAS_MODELS, "transformers is not installed")
class Training(unittest.TestCase):
    def losses(self, name, run_of):
        torch.manual_seed(11)
        case = models.CASES[name]
        model = case.make().train()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        run = run_of(model)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for step in range(50):
            torch.manual_seed(100 + step)
            inputs = case.inputs(case.sizes[1])
            if "pixel_values" in inputs:
                inputs["labels"] = torch.randint(0, 2, inputs["pixel_values"].shape[:1])
            else:
                inputs["labels"] = inputs["input_ids"]
            loss = run(**inputs).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    def check(self, name):
        torch._dynamo.reset()
        theirs = self.losses(name, lambda model: model)
        ours = self.losses(name, lambda model: torch.compile(model, backend=backend(), fullgraph=True))
        torch.testing.assert_close(ours, theirs, rtol=5e-3, atol=5e-3)


def _add_tests():
    for name in models.CASES:
        setattr(Compiled, f"test_{name}", lambda self, name=name: self.check(name))
        setattr(Exported, f"test_{name}", lambda self, name=name: self.check(name))
    for name in ("bert", "vit", "llama"):
        setattr(Training, f"test_{name}", lambda self, name=name: self.check(name))


if HAS_MODELS:
    _add_tests()

if __name__ == "__main__":
    unittest.main()
