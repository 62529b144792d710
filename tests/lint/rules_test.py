"""Tests of rules.py: each rule finds what it is for and lets the rest pass."""

import unittest

import rules

COMMENT = "// What this file is for.\n"


def findings(*files):
    return sorted(rules.check([rules.SourceFile(path, text) for path, text in files]))


def messages(path, text):
    return [message for _, _, message in findings((path, text))]


def header(include):
    return f"{COMMENT}#include {include}\n"


class IncludeDirection(unittest.TestCase):
    def test_downwards_passes(self):
        for path, include in [
            ("base/file.h", '"base/result.h"'),
            ("hal/device.h", '"base/result.h"'),
            ("hal/model/core.h", '"hal/device.h"'),
            ("hal/model/core.h", '"hal/support/host_heap.h"'),
            ("hal/null/core.h", '"hal/support/host_heap.h"'),
            ("hal/support/host_heap.h", '"hal/memory.h"'),
            ("hal/conformance/cases.h", '"hal/device.h"'),
            ("compiler/kernel/ir/ir.h", '"hal/kernel_abi.h"'),
            ("compiler/kernel/ir/ir.h", '"compiler/kernel/interface/binding_layout.h"'),
            ("compiler/kernel/spirv/reader.h", '"compiler/kernel/interface/compile_request.h"'),
            ("compiler/kernel/interpreting_compiler.h", '"compiler/kernel/tiers/tiered_kernel.h"'),
            ("compiler/kernel/kernel_compiler.h", '"compiler/kernel/interface/compile_request.h"'),
            ("compiler/kernel/transform/a.h", '"compiler/kernel/analysis/a.h"'),
            ("compiler/kernel/codegen/a.h", '"compiler/kernel/ir/ir.h"'),
            ("compiler/kernel/fuzz/a.h", '"compiler/kernel/spirv/reader.h"'),
            ("compiler/kernel/backend/backend.h", '"compiler/kernel/codegen/a.h"'),
            ("compiler/graph/plan.h", '"shaders/embedded_kernels.h"'),
            ("compiler/frontends/onnx/import.h", '"compiler/graph/graph.h"'),
            ("driver/device.h", '"hal/device.h"'),
            ("driver/device.h", '"compiler/kernel/kernel_compiler.h"'),
            ("driver/device.h", "<vulkan/vulkan.h>"),
            ("icd/entry.h", '"driver/device.h"'),
            ("runtime/program.h", '"runtime/plan/launches.h"'),
            ("runtime/hal/hal_program.h", '"runtime/plan/launches.h"'),
            ("runtime/hal/hal_program.h", '"hal/device.h"'),
            ("runtime/hal/hal_program.h", '"compiler/kernel/kernel_compiler.h"'),
            ("tools/fornax/main.h", '"hal/model/model.h"'),
            ("base/file.h", "<vector>"),
            ("base/file.h", "<sys/stat.h>"),
        ]:
            self.assertEqual(messages(path, header(include)), [], f"{path} includes {include}")

    def test_upwards_is_found(self):
        for path, include in [
            ("base/file.h", '"hal/device.h"'),
            ("runtime/program.h", '"hal/device.h"'),
            ("runtime/plan/launches.h", '"hal/device.h"'),
            ("runtime/plan/launches.h", '"runtime/program.h"'),
            ("runtime/hal/hal_program.h", '"runtime/program.h"'),
            ("runtime/hal/hal_program.h", '"hal/model/device.h"'),
            ("hal/device.h", '"driver/device.h"'),
            ("hal/device.h", '"hal/support/host_heap.h"'),
            ("hal/device.h", '"hal/model/model.h"'),
            ("hal/support/host_heap.h", '"hal/model/model.h"'),
            ("hal/support/host_heap.h", '"driver/device.h"'),
            ("hal/conformance/cases.h", '"hal/support/host_heap.h"'),
            ("driver/device.h", '"hal/support/host_heap.h"'),
            ("compiler/kernel/ir/ir.h", '"hal/support/futex.h"'),
            ("hal/model/core.h", '"compiler/kernel/kernel_compiler.h"'),
            ("compiler/kernel/ir/ir.h", '"compiler/graph/graph.h"'),
            ("compiler/kernel/ir/ir.h", '"driver/device.h"'),
            ("compiler/kernel/ir/ir.h", '"compiler/kernel/kernel_compiler.h"'),
            ("compiler/kernel/ir/ir.h", '"compiler/kernel/interface/compile_request.h"'),
            ("compiler/kernel/spirv/reader.h", '"compiler/kernel/kernel_compiler.h"'),
            ("compiler/kernel/codegen/a.h", '"compiler/kernel/kernel_compiler.h"'),
            ("compiler/kernel/tiers/tiered_kernel.h", '"compiler/kernel/kernel_compiler.h"'),
            ("compiler/kernel/interface/compiled_kernel.h", '"compiler/kernel/ir/kernel.h"'),
            ("driver/device.h", '"compiler/kernel/tiers/tiered_kernel.h"'),
            ("compiler/graph/plan.h", '"compiler/kernel/kernel_compiler.h"'),
            ("compiler/kernel/ir/ir.h", '"compiler/kernel/analysis/a.h"'),
            ("compiler/kernel/analysis/a.h", '"compiler/kernel/transform/a.h"'),
            ("compiler/kernel/transform/a.h", '"compiler/kernel/codegen/a.h"'),
            ("compiler/kernel/codegen/a.h", '"compiler/kernel/transform/a.h"'),
            ("compiler/kernel/codegen/a.h", '"compiler/kernel/spirv/reader.h"'),
            ("compiler/kernel/spirv/a.h", '"compiler/kernel/interpret/a.h"'),
            ("compiler/kernel/interpret/a.h", '"compiler/kernel/fuzz/a.h"'),
            ("compiler/graph/plan.h", '"compiler/frontends/onnx/import.h"'),
            ("compiler/frontends/onnx/import.h", '"compiler/kernel/kernel_compiler.h"'),
            ("driver/device.h", '"icd/entry.h"'),
            ("icd/entry.h", '"compiler/kernel/kernel_compiler.h"'),
            ("shaders/embedded_kernels.h", '"compiler/graph/graph.h"'),
        ]:
            found = findings((path, header(include)))
            self.assertEqual(len(found), 1, f"{path} includes {include}")
            self.assertEqual(found[0][:2], (path, 2))
            self.assertIn(include.strip('"'), found[0][2])

    def test_tests_may_use_test_helpers_only(self):
        listed = ("hal/CMakeLists.txt", "# Lists the tests of hal.\nqueue_test.cpp\n")
        good = ("hal/queue_test.cpp", header('"tests/helpers/poison.h"'))
        bad = ("hal/queue_test.cpp", header('"driver/device.h"'))
        self.assertEqual(findings(listed, good), [])
        self.assertEqual(len(findings(listed, bad)), 1)

    def test_the_factory_alone_sees_backends(self):
        listed = ("hal/CMakeLists.txt", "# The HAL.\nbackends.cpp\n")
        for include in ['"hal/model/device.h"', '"hal/null/device.h"', '"hal/support/host_heap.h"', '"hal/device.h"']:
            self.assertEqual(findings(listed, ("hal/backends.cpp", header(include))), [], include)
        self.assertEqual(len(findings(listed, ("hal/backends.cpp", header('"driver/device.h"')))), 1)

    def test_kernel_tests_may_use_every_folder_of_the_kernel_compiler(self):
        listed = ("compiler/kernel/codegen/CMakeLists.txt", "# Lists its tests.\na_test.cpp\n")
        for include, count in [('"compiler/kernel/interpret/a.h"', 0), ('"compiler/graph/a.h"', 1)]:
            test = ("compiler/kernel/codegen/a_test.cpp", header(include))
            self.assertEqual(len(findings(listed, test)), count, include)

    def test_spelling_of_the_directive_does_not_matter(self):
        self.assertEqual(len(messages("base/a.h", COMMENT + '  #  include   "hal/device.h"\n')), 1)
        self.assertEqual(len(messages("base/a.h", COMMENT + "#include <hal/device.h>\n")), 1)


class VulkanHeaders(unittest.TestCase):
    def test_found_below_the_driver(self):
        for path in ["compiler/kernel/a.h", "compiler/graph/a.h", "hal/model/a.h", "base/a.h", "runtime/plan/a.h",
                     "runtime/hal/a.h"]:
            for include in ["<vulkan/vulkan.h>", '"vulkan/vulkan_core.h"', "<volk.h>"]:
                self.assertEqual(len(messages(path, header(include))), 1, f"{path} {include}")


class Backends(unittest.TestCase):
    def test_the_driver_names_none(self):
        self.assertEqual(len(messages("driver/a.h", header('"hal/model/model.h"'))), 1)
        self.assertEqual(len(messages("driver/a.h", COMMENT + "// as hal/null does\n")), 1)
        self.assertEqual(messages("driver/a.h", header('"hal/device.h"')), [])

    def test_backends_do_not_know_each_other(self):
        self.assertEqual(len(messages("hal/null/a.h", header('"hal/model/core.h"'))), 1)
        self.assertEqual(messages("hal/null/a.h", header('"hal/null/core.h"')), [])


class IcdNamespace(unittest.TestCase):
    def test_the_drivers_namespace_stays_closed(self):
        for text in ["namespace fornax::driver {\n", "namespace fornax {\nnamespace driver {\n",
                     "namespace fornax::driver\n{\n", "inline namespace fornax::driver::x {\n"]:
            self.assertEqual(len(messages("icd/a.h", COMMENT + text)), 1, text)
            self.assertEqual(messages("driver/a.h", COMMENT + text), [], text)

    def test_using_it_passes(self):
        for text in ["namespace fornax::icd {\n", "using namespace fornax::driver;\nstruct A {\n",
                     "namespace driver_test {\n", "// as in namespace fornax::driver {\n", "driver::Device d{};\n"]:
            self.assertEqual(messages("icd/a.h", COMMENT + text), [], text)


class Environment(unittest.TestCase):
    READS = ['getenv("HOME")', 'std::getenv ("HOME")', '::secure_getenv(name)', "__secure_getenv(name)", "::environ[0]"]

    def test_the_libraries_have_one_reader(self):
        for path in ["base/log.h", "hal/a.h", "compiler/kernel/a.h", "compiler/graph/a.h", "driver/a.h", "icd/a.h"]:
            for read in self.READS:
                found = findings((path, COMMENT + f"auto* text = {read};\n"))
                self.assertEqual([where[:2] for where in found], [(path, 2)], f"{path}: {read}")

    def test_the_reader_tests_and_programs_may(self):
        lists = ("base/CMakeLists.txt", "# What every layer uses.\nenvironment.cpp log_test.cpp\n")
        tool_lists = ("tools/CMakeLists.txt", "# Programs.\na.cpp\n")
        for read in self.READS:
            for path in ["base/environment.cpp", "base/log_test.cpp", "tools/a.cpp"]:
                found = findings(lists, tool_lists, (path, COMMENT + f"auto* text = {read};\n"))
                self.assertEqual(found, [], f"{path}: {read}")

    def test_words_that_only_look_alike_pass(self):
        for text in ['EnvironmentText("HOME")', "// As with getenv, nothing is copied.", "environment_", 'setenv("A", "", 1)']:
            self.assertEqual(messages("driver/a.h", COMMENT + text + "\n"), [], text)


class Files(unittest.TestCase):
    def test_length(self):
        self.assertEqual(messages("base/a.h", COMMENT + "\n" * (rules.MAX_LINES - 1)), [])
        self.assertEqual(len(messages("base/a.h", COMMENT + "\n" * rules.MAX_LINES)), 1)
        self.assertEqual(messages("docs/a.md", "# A long text\n" * 1000), [])

    def test_first_comment(self):
        for path, text in [
            ("base/a.h", "// Reads files whole.\n#pragma once\n"),
            ("base/a.h", "/* Reads files whole. */\n"),
            ("shaders/a.glsl", "#version 450\n// Adds two tensors.\n"),
            ("tools/a.py", '"""Makes the tables."""\n'),
            ("tools/a.py", "#!/usr/bin/env python3\n# Makes the tables.\n"),
            ("check", "#!/bin/bash\n# Runs every test.\n"),
            ("cmake/a.cmake", "# What every layer uses.\n"),
            ("driver/fence.h", "// Fences.\n"),
        ]:
            self.assertEqual(messages(path, text), [], text)
        for path, text in [
            ("base/a.h", "#pragma once\n// Reads files whole.\n"),
            ("base/a.h", "// a.h\n"),
            ("base/log.h", "// log.h\n"),
            ("base/log.h", "// base/log.h\n"),
            ("base/a.h", '#include "base/b.h"\n'),
            ("base/a.h", ""),
            ("tools/a.py", "import os\n"),
            ("check", "#!/bin/bash\nset -e\n"),
            ("cmake/a.cmake", "add_library(base)\n"),
        ]:
            self.assertEqual(len(messages(path, text)), 1, text)

    def test_a_source_may_leave_the_comment_to_its_header(self):
        lists = ("base/CMakeLists.txt", "# What every layer uses.\na.cpp a_test.cpp\n")
        own = '#include "base/a.h"\n'
        self.assertEqual(findings(lists, ("base/a.cpp", own), ("base/a_test.cpp", own)), [])
        for text in ['#include "base/aa.h"\n', "#include <vector>\n" + own]:
            self.assertEqual(len(findings(lists, ("base/a.cpp", text))), 1, text)

    def test_forbidden_text(self):
        for text in ["/wo" "rk/x", "see /ro" "ot/x", "'/ho" "me/me/x'", "http://pypi.o" "rg/simple",
                     "a\n" + "<" * 7 + " HEAD", "a\n" + ">" * 7 + " main"]:
            self.assertEqual(len(messages("docs/a.md", text + "\n")), 1, text)
        for text in ["$HOME/wo" "rk/x", "the wo" "rk/flow", "tests/ro" "ot/a", "~/.cac" "he/fornax", "/usr/sh" "are/x",
                     "x <" "<<<<<< y", "=" * 7]:
            self.assertEqual(messages("docs/a.md", text + "\n"), [], text)

    def test_comments(self):
        self.assertEqual(messages("base/a.h", COMMENT + "// The bits of a type.\nint a;\n"), [])
        self.assertEqual(len(messages("base/a.h", COMMENT + "    // Of a type.\nint a;\n")), 1)

    def test_white_space(self):
        self.assertEqual(len(messages("base/a.h", COMMENT + "\tint a;\n")), 1)
        self.assertEqual(len(messages("base/a.h", COMMENT + "int a;")), 1)

    def test_every_source_is_built(self):
        lists = ("base/CMakeLists.txt", "# What every layer uses.\nf(a.cpp sub/b.cpp)\n")
        good = [("base/a.cpp", COMMENT), ("base/sub/b.cpp", COMMENT)]
        self.assertEqual(findings(lists, *good), [])
        for path in ["base/aa.cpp", "base/b.cpp", "base/sub/a.cpp", "hal/a.cpp"]:
            self.assertEqual([found[0] for found in findings(lists, *good, (path, COMMENT))], [path])

    def test_every_fuzz_target_is_run(self):
        target = ("base/a_fuzz.cpp", COMMENT)
        registered = ("base/CMakeLists.txt", "# A fuzz target.\nfornax_fuzz(a TEST a\n    SOURCES a_fuzz.cpp\n    DEPS b)\n")
        by_hand = ("base/CMakeLists.txt", "# A fuzz target.\nadd_executable(a a_fuzz.cpp)\n")
        self.assertEqual(findings(registered, target), [])
        self.assertEqual([path for path, _, _ in findings(by_hand, target)], ["base/a_fuzz.cpp"])
        below = ("base/sub/a_fuzz.cpp", COMMENT)
        above = ("base/CMakeLists.txt", "# A fuzz target.\nfornax_fuzz(a TEST a\n    SOURCES sub/a_fuzz.cpp)\n")
        self.assertEqual(findings(above, below), [])
        self.assertIn("base/sub/a_fuzz.cpp", [path for path, _, _ in findings(registered, target, below)])


if __name__ == "__main__":
    unittest.main()
