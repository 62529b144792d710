"""The modes of the backend, and fornax.torch.explain().

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import contextlib
import html.parser
import io
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import torch
from torch import nn

import fornax.torch


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x):
        return self.down(self.up(x).relu())


def run(mode, model, *inputs, **options):
    """What is printed, the backend, and whether results are torch's."""
    torch._dynamo.reset()
    chosen = fornax.torch.Backend(mode, options={"cache": False}, **options)
    text = io.StringIO()
    with torch.no_grad(), contextlib.redirect_stdout(text):
        compiled = torch.compile(model, backend=chosen)
        for x in inputs:
            torch.testing.assert_close(compiled(x), model(x), rtol=2e-4, atol=2e-5)
    return text.getvalue(), chosen


class Tags(html.parser.HTMLParser):
    """Checks that elements are closed in the order that they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Modes(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.folder = tempfile.TemporaryDirectory(prefix="fornax_modes_")
        self.path = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def test_run_says_nothing(self):
        text, chosen = run("run", Mlp().eval(), torch.randn(4, 16))
        self.assertEqual(text, "")
        self.assertEqual(chosen.segments, 1)

    def test_trace(self):
        text, _ = run("trace", Mlp().eval(), torch.randn(4, 16), output_dir=self.path)
        self.assertRegex(text, r"^graph_0:\nnode +operator +type +reads +line\n")
        self.assertRegex(text, r"relu +aten\.relu\.default +f32\[4,32\] +addmm +\S+:\d+\n")
        self.assertEqual("graph_0:\n" + (self.path / "graph_0.nodes.txt").read_text(), text)

    def test_compile(self):
        text, _ = run("compile", Mlp().eval(), torch.randn(4, 16), torch.randn(4, 16), output_dir=self.path)
        self.assertEqual(text, "")
        self.assertEqual(sorted(path.name for path in self.path.iterdir()),
                         [f"graph_0.{name}.txt" for name in ("boundaries", "ir", "memory", "nodes", "plan", "work")])
        read = {path.name.split(".")[1]: path.read_text() for path in self.path.iterdir()}
        self.assertRegex(read["ir"], r'input "\w+" f32\[4,16\]')
        self.assertRegex(read["plan"], r"kernel ")
        # 2 * 4 * (16 * 32 + 32 * 10) operations of products at least.
        total = [line for line in read["work"].splitlines() if line.startswith("all") or line.strip().startswith("all")]
        self.assertGreaterEqual(int(total[0].split()[1].replace(",", "")), 2 * 4 * (16 * 32 + 32 * 10))
        self.assertRegex(read["memory"], r"constants \d")
        with self.assertRaisesRegex(ValueError, "output_dir says where"):
            fornax.torch.Backend("compile")

    def test_simulate(self):
        text, _ = run("simulate", Mlp().eval(), torch.randn(4, 16), torch.randn(4, 16), output_dir=self.path)
        self.assertEqual(text.count("graph_0:"), 1)  # the second run has the same sizes
        self.assertRegex(text, r"step +kind +operations +bytes read +bytes written +node")
        self.assertIn("say nothing about how long an NPU would take", text)
        self.assertIn((self.path / "graph_0.work.txt").read_text(), text)

    def test_simulate_on_a_described_machine(self):
        with unittest.mock.patch.dict(os.environ, FORNAX_NPU="edge-4"):
            text, _ = run("simulate", Mlp().eval(), torch.randn(4, 16), output_dir=self.path)
        self.assertRegex(text, r"step +run us +launch us +bound by +bytes of DRAM +node")
        self.assertRegex(text, r"us and [\d.]+ uJ together; modelled, uncalibrated \(edge-4, description [0-9a-f]{16}, model 5\)")
        self.assertIn((self.path / "graph_0.modelled.txt").read_text(), text)

    def test_other_sizes_have_files_of_their_own(self):
        torch._dynamo.reset()
        chosen = fornax.torch.Backend("compile", output_dir=self.path, options={"cache": False})
        compiled = torch.compile(Mlp().eval(), backend=chosen, dynamic=True)
        with torch.no_grad():
            for rows in (4, 6, 4):
                compiled(torch.randn(rows, 16))
        names = {path.name for path in self.path.iterdir()}
        self.assertIn("graph_0.work.txt", names)
        self.assertIn("graph_0.1.work.txt", names)
        self.assertNotIn("graph_0.2.work.txt", names)

    def test_eager(self):
        text, chosen = run("eager", Mlp().eval(), torch.randn(4, 16))
        self.assertEqual((text, chosen.segments), ("", 0))

    def test_verbose(self):
        text, _ = run("run", Mlp().eval(), torch.randn(4, 16), verbose=True)
        self.assertRegex(text, r"^fornax: graph_0, \d+ nodes, is on the device\n$")

    def test_others_are_refused(self):
        with self.assertRaisesRegex(ValueError, "'codegen' writes files: output_dir says where"):
            fornax.torch.Backend("codegen")
        with self.assertRaisesRegex(ValueError, "it is 'fast'"):
            fornax.torch.Backend("fast")


class Explain(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_text_and_page(self):
        model = Mlp().eval()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            explanation = fornax.torch.explain(model, (torch.randn(4, 16),), runs=3, path=path)
            page = path.read_text()
            self.assertIn("Kernels on ", explanation.save(pathlib.Path(folder, "page.txt")).read_text())
        graph, = explanation.graphs
        self.assertEqual([len(times) for times in graph.times], [3] * len(graph.report["steps"]))
        kernels = graph.kernel_of()
        self.assertIn("relu", kernels)
        self.assertEqual(kernels["relu"], kernels["addmm"])  # fused
        text = str(explanation)
        for part in ("Mlp", "Before fusion", "aten.relu.default", "Kernels on ", "medians of 3 runs", "Memory"):
            self.assertIn(part, text)
        tags = Tags()
        tags.feed(page)
        self.assertEqual(tags.open, [])
        self.assertGreaterEqual(sum(tag == "svg" for tag, _ in tags.seen), 2)
        for _, attributes in tags.seen:  # nothing of the page is elsewhere
            self.assertFalse({"src", "href"} & set(attributes))
        for part in ("Before fusion", "After fusion", "Memory over time", "aten.relu.default"):
            self.assertIn(part, page)

    def test_what_runs_in_torch(self):
        def function(x):
            return torch.linalg.eigvals(x.relu() + 1).abs() * 2

        explanation = fornax.torch.explain(function, (torch.randn(4, 4),), options={"cache": False})
        fallbacks = explanation.graphs[0].fallbacks
        self.assertTrue(any("_eig" in target for _, target, _, _ in fallbacks))
        self.assertRegex(str(explanation), r"In torch\n(?s:.*)modes_test\.py:\d+")
        self.assertTrue(any(graph.report is not None for graph in explanation.graphs))  # parts on the device
        self.assertIn("Runs in torch", explanation.html)

    def test_many_explanations_in_a_process(self):
        for i in range(10):
            explanation = fornax.torch.explain(lambda x: x * 2, (torch.randn(i + 2),), runs=1)
            self.assertIsNotNone(explanation.graphs[0].report)


if __name__ == "__main__":
    unittest.main()
