"""libggml-fornax.so in the newer Debian's programs of ggml, whose API version is another than that of the packages
that tests/ggml has.

Environment: FORNAX_MANIFEST, the driver's; FORNAX_GGML_BACKEND, the library. Skipped unless tools/clients/setup.sh has
filled a folder (FORNAX_CLIENTS names it).
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools/clients"
sys.path.insert(0, str(TOOLS))

from backend_ops import parse_output  # noqa: E402  (the folder must be known first)
from programs import Programs, default_folder  # noqa: E402
from write_llama import write_model  # noqa: E402

if not (default_folder() / "stamp").exists():
    sys.exit(77)
ENVIRONMENT = {"VK_DRIVER_FILES": os.environ["FORNAX_MANIFEST"], "VK_ICD_FILENAMES": os.environ["FORNAX_MANIFEST"],
               "GGML_BACKEND_PATH": os.environ["FORNAX_GGML_BACKEND"], "GGML_VK_VISIBLE_DEVICES": ""}
NOT_RUN = "a graph did not run"


class Programs27(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = Programs(default_folder().resolve())

    def run_program(self, program, *arguments, **variables):
        code, text = self.programs.run(program, list(arguments), {**ENVIRONMENT, **variables}, 300)
        self.assertEqual(code, 0, text)
        self.assertNotIn(NOT_RUN, text)
        return text

    def test_operators(self):
        for operator, parameters in (("ADD", r"type=f32,ne=\[10,5,4,3\]"), ("SOFT_MAX", r"ne=\[16,2,32,1\],mask=1"),
                                     ("MUL_MAT", r"type_a=(f16|q4_0|q[2-6]_K),type_b=f32,m=16,n=(1|9),k=256,bs=\[1,1\]")):
            text = self.run_program(self.programs.operators, "test", "-b", "FORNAX0", "-o", operator, "-p", parameters)
            outcome = parse_output(operator, text)
            self.assertGreater(outcome.passed, 0, text)
            self.assertEqual((outcome.failures, outcome.unsupported), ([], 0))

    def test_a_model(self):
        with tempfile.TemporaryDirectory(prefix="fornax-clients-") as folder:
            model = Path(folder) / "tiny.gguf"
            write_model(model, "f16")
            text = self.run_program(
                self.programs.folder / "usr/bin/llama-completion", "-m", str(model), "-p", "fornax ", "-n", "4", "-ngl", "99",
                "-t", "2", "-no-cnv", "--no-warmup", FORNAX_LOG_LEVEL="info", FORNAX_CACHE_DIR=f"{folder}/cache")
            self.assertRegex(text, r"ggml: graph [0-9a-f]{32} of \d+ nodes is \d+ steps \(MISS\)")


if __name__ == "__main__":
    unittest.main()
