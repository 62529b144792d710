"""Directories of kernels made before, and the backend without the graph compiler, which has them alone.

Environment: as of backend_test.py, and FORNAX_GGML_WITHOUT_COMPILER, the backend of that build.
"""

import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
import features_test  # noqa: E402  (the folder must be known first)
from features_test import BACKEND, COMPUTE, LOAD_CPU  # noqa: E402

WITHOUT_COMPILER = os.environ["FORNAX_GGML_WITHOUT_COMPILER"]
# Another graph than COMPUTE's.
OTHER = COMPUTE.replace("backend = ", "y = ggml.add(context, y, y)\ngraph = ggml.graph(context, y)\nbackend = ", 1
                        ).replace("values * 3", "values * 6")


class Kernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fornax-kernels-")
        self.addCleanup(folder.cleanup)
        self.kernels, self.cache = (Path(folder.name) / name for name in ("kernels", "cache"))

    def run_script(self, script, backend=BACKEND, **variables):
        return features_test.run(script, FORNAX_CACHE_DIR=str(self.cache), backend=backend, **variables)

    def export(self, script=COMPUTE):
        text = self.run_script(script, FORNAX_GGML_EXPORT=str(self.kernels))
        self.assertNotIn("not exported", text)
        return text

    def plans(self):
        return sorted(self.kernels.glob("[0-9a-f]" * 32 + ".plan"))

    def test_the_directory_wins_over_the_cache_and_the_compiler(self):
        self.assertIn("MISS", self.export())
        self.assertEqual(len(self.plans()), 1)
        self.assertRegex(self.plans()[0].name, "^[0-9a-f]{32}[.]plan$")
        text = self.run_script(COMPUTE, FORNAX_KERNEL_DIR=str(self.kernels))  # the cache has it as well
        self.assertIn(f"(HIT in {self.kernels})", text)
        self.cache = self.cache.with_name("empty")
        self.assertIn(f"(HIT in {self.kernels})", self.run_script(COMPUTE, FORNAX_KERNEL_DIR=str(self.kernels)))
        self.assertEqual(list(self.cache.glob("graphplan-*")), [])

    def test_what_the_directory_lacks_is_compiled(self):
        self.export()
        text = self.run_script(OTHER, FORNAX_KERNEL_DIR=str(self.kernels))
        self.assertRegex(text, f"graph [0-9a-f]{{32}} of 2 nodes has no plan {self.kernels}/[0-9a-f]{{32}}[.]plan")
        self.assertIn("MISS", text)

    def test_exports_are_complete_from_the_cache_too(self):
        self.run_script(COMPUTE)
        self.assertIn("HIT", self.export())
        self.assertEqual(len(self.plans()), 1)

    def test_damaged_plans_are_told_and_stay(self):
        self.export()
        plan = self.plans()[0]
        whole = plan.read_bytes()
        for bytes_left in (whole[:40], whole[:-1], b"", whole[:200] + b"\0\1\2\3" + whole[204:]):
            plan.write_bytes(bytes_left)
            for backend, ending in ((BACKEND, "HIT"), (WITHOUT_COMPILER, "the CPU backend computes the graph")):
                text = self.run_script(LOAD_CPU + COMPUTE, backend, FORNAX_KERNEL_DIR=str(self.kernels))
                self.assertIn(f"is skipped. {plan}", text)
                self.assertIn(ending, text)
            self.assertEqual(plan.read_bytes(), bytes_left)

    def test_a_plan_under_another_name_does_not_run(self):
        self.export()
        first = self.plans()[0]
        self.export(OTHER)
        second = next(plan for plan in self.plans() if plan != first)
        second.write_bytes(first.read_bytes())
        text = self.run_script(OTHER, FORNAX_KERNEL_DIR=str(self.kernels))
        self.assertIn(f"{second} holds the plan of the graph {first.stem}", text)

    def test_without_the_compiler_the_directory_suffices(self):
        self.export()
        self.cache = self.cache.with_name("empty")
        text = self.run_script(COMPUTE, WITHOUT_COMPILER, FORNAX_KERNEL_DIR=str(self.kernels))
        self.assertIn(f"(HIT in {self.kernels})", text)

    def test_without_the_compiler_what_is_missing_is_named(self):
        self.export()
        missing = self.run_script(LOAD_CPU + OTHER, WITHOUT_COMPILER, FORNAX_KERNEL_DIR=str(self.kernels))
        named = re.search(f"no graph compiler, and graph [0-9a-f]{{32}} of 2 nodes has no usable plan in "
                          f"FORNAX_KERNEL_DIR, where it is ({self.kernels}/[0-9a-f]{{32}}[.]plan)[.]", missing)
        self.assertTrue(named, missing)
        self.assertIn("the CPU backend computes the graph", missing)
        unset = self.run_script(LOAD_CPU + OTHER, WITHOUT_COMPILER)
        self.assertIn(f"FORNAX_KERNEL_DIR is not set to a directory that has {Path(named[1]).name}", unset)
        self.export(OTHER)
        self.assertTrue(Path(named[1]).exists())  # the name that was told is the one that is looked for
        self.run_script(OTHER, WITHOUT_COMPILER, FORNAX_KERNEL_DIR=str(self.kernels))

    def test_the_compiler_may_be_a_process_or_off(self):
        command = os.environ["FORNAX_COMMAND"]
        for backend in (BACKEND, WITHOUT_COMPILER):
            self.cache = self.cache.with_name(f"cache of {Path(backend).parent.name}")
            self.assertIn("MISS", self.run_script(COMPUTE, backend, FORNAX_COMPILER=command))
            self.assertIn("HIT", self.run_script(COMPUTE, backend, FORNAX_COMPILER=command))
            self.assertIn("MISS", self.run_script(OTHER, backend, FORNAX_COMPILER=command))
            off = self.run_script(LOAD_CPU + COMPUTE, backend, FORNAX_COMPILER="off")
            self.assertIn("FORNAX_COMPILER is off, and FORNAX_KERNEL_DIR is not set", off)
            self.assertIn("the CPU backend computes the graph", off)
        for compiler, told in (("/nowhere/fornax", "/nowhere/fornax of FORNAX_COMPILER cannot be run: No such file"),
                               ("false", "false of FORNAX_COMPILER ended with status 1"),
                               ("true", "fornax-compile-")):
            self.cache = self.cache.with_name("cache of failures")
            text = self.run_script(LOAD_CPU + COMPUTE, FORNAX_COMPILER=compiler, TMPDIR=str(self.cache.parent))
            self.assertIn(told, text)
            self.assertEqual(list(self.cache.glob("graph*")), [])  # what failed is not kept
            self.assertIn("the CPU backend computes the graph", text)
        self.assertEqual(list(self.cache.parent.glob("fornax-compile-*")), [])

    def test_a_directory_that_cannot_be_written_costs_a_warning(self):
        text = self.run_script(COMPUTE, FORNAX_GGML_EXPORT="/proc/nowhere")
        self.assertIn("is not exported. ", text)

    def test_clearing_the_cache_leaves_kernels_alone(self):
        self.kernels = self.cache
        self.export()
        self.run_script(COMPUTE, FORNAX_GGML_CLEAR_CACHE="1")
        self.assertEqual(len(self.plans()), 1)


if __name__ == "__main__":
    unittest.main()
