"""`pip wheel` makes a wheel out of a build, and it works in an environment that has numpy and nothing else.

FORNAX_BUILD is the build folder. Nothing is downloaded: numpy is this Python's.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np

from support import DIGITS, ROOT

MAX_BYTES = 25_000_000
RUN = """
import sys
import numpy as np
import fornax
from fornax import _types
assert _types._ml is None
session = fornax.load(sys.argv[1])
x = np.linspace(0, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)
print(session.device, session(x).shape, session.outputs[0].shape)
"""


def run(*command, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VK_", "PYTHON", "FORNAX_"))}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, env={**kept, **environment})


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="fornax_wheel_")))
        cls.ok("-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir",
               cls.folder / "wheel", "--config-settings", f"cmake.define.FORNAX_BUILD={os.environ['FORNAX_BUILD']}",
               "--config-settings", f"build-dir={cls.folder / 'build'}", ROOT)
        (cls.wheel,) = (cls.folder / "wheel").iterdir()
        cls.ok("-m", "venv", "--without-pip", cls.folder / "venv")
        cls.python = cls.folder / "venv" / "bin" / "python"
        cls.site = pathlib.Path(cls.ok("-c", "import sysconfig; print(sysconfig.get_path('purelib'))",
                                       python=cls.python).strip())
        # numpy alone, without what else this Python has.
        cls.link(cls.site, "numpy", "numpy.libs")
        cls.ok("-m", "pip", "--quiet", "--python", cls.python, "install", "--no-index", "--no-deps", cls.wheel)
        cls.package = cls.site / "fornax"

    @staticmethod
    def link(site, *names):
        """Makes packages of this Python those of another environment."""
        for name in names:
            source = pathlib.Path(np.__file__).parent.with_name(name)
            if source.exists():
                (site / name).symlink_to(source)

    @staticmethod
    def ok(*arguments, python=sys.executable):
        result = run(python, *arguments)
        if result.returncode != 0:
            raise AssertionError(f"{arguments} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
        return result.stdout

    def test_what_is_in_it(self):
        self.assertRegex(self.wheel.name, r"^fornax-\d+\.\d+\.\d+-cp39-abi3-\w+\.whl$")
        self.assertLess(self.wheel.stat().st_size, MAX_BYTES)
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            metadata = next(archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
        self.assertEqual({name.split("/")[0] for name in names if ".dist-info" not in name}, {"fornax"})
        for name in ("py.typed", "_core.abi3.so", "_core.pyi", "_native/bin/fornax", "_native/lib/libfornax.so",
                     "_native/lib/libvulkan_fornax.so", "_native/lib/libfornax_compiler.so", "_native/include/fornax.h",
                     "_native/lib/libfornax_ort_ep.so", "onnxruntime.py"):
            self.assertIn(f"fornax/{name}", names)
        self.assertFalse([name for name in names if name.endswith((".pyc", ".a", ".o"))])
        for extra in ("dev", "types"):
            self.assertIn(f"Provides-Extra: {extra}\n", metadata)

    def test_models_run(self):
        self.assertRegex(self.ok("-c", RUN, DIGITS, python=self.python), r"^Fornax.* \(2, 10\) \('N', 10\)$")

    def test_editable(self):
        """`pip install -e .`, which installs what is built, as `pip install .` does."""
        self.ok("-m", "venv", "--without-pip", self.folder / "editable")
        python = self.folder / "editable" / "bin" / "python"
        site = pathlib.Path(self.ok("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", python=python).strip())
        self.link(site, "numpy", "numpy.libs", "scikit_build_core", "packaging", "pathspec")
        self.ok("-m", "pip", "--quiet", "--python", python, "install", "--no-build-isolation", "--no-index", "--no-deps",
                "--config-settings", f"cmake.define.FORNAX_BUILD={os.environ['FORNAX_BUILD']}",
                "--config-settings", f"build-dir={self.folder / 'editable-build'}", "--editable", ROOT)
        self.assertRegex(self.ok("-c", RUN, DIGITS, python=python), r"^Fornax.* \(2, 10\) \('N', 10\)$")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_torch_finds_its_backend_by_name(self):
        code = (f"import sys; sys.path.insert(0, {str(self.package.parent)!r}); import torch; m = torch.nn.Linear(8, 4); "
                "x = torch.ones(2, 8); torch.testing.assert_close(torch.compile(m, backend='fornax')(x), m(x)); "
                "print(sorted(name for name in sys.modules if name == 'fornax.torch.backend'))")
        self.assertEqual(self.ok("-c", code, python=sys.executable), "['fornax.torch.backend']\n")

    def test_the_command_runs(self):
        scripts = self.python.parent
        for command in ((self.python, "-m", "fornax"), (scripts / "fornax",)):
            result = run(*command, "run", DIGITS, "--dim", "N=2")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"(?m)^device +Fornax")
        result = run(scripts / "fornax", "exec", "--", "sh", "-c", "echo $VK_DRIVER_FILES")
        self.assertTrue(os.path.isfile(result.stdout.strip()), result.stdout + result.stderr)
        result = run(scripts / "fornax", "ggml", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertRegex(result.stderr, r"The backend of ggml is neither .*The Python package comes without it\.")

    def test_its_libraries_are_its_own(self):
        for file in ("lib/libfornax.so", "bin/fornax", "lib/libvulkan_fornax.so", "lib/libfornax_ort_ep.so"):
            text = run("ldd", self.package / "_native" / file).stdout
            self.assertNotIn("not found", text)
            for name, path in re.findall(r"^\s*(\S+) => (\S+)", text, re.MULTILINE):
                if not re.match(r"(libc|libm|libdl|librt|libpthread|libz|libstdc\+\+|libgcc_s)\.so\.", name):
                    self.assertTrue(os.path.realpath(path).startswith(os.path.realpath(self.package)), f"{name}: {path}")

    def test_every_python_loads_it(self):
        found = 0
        for minor in range(9, 20):
            python = shutil.which(f"python3.{minor}")
            # Managers of versions put programs into the path that only say that there is no such version.
            if python is None or run(python, "-c", "").returncode != 0:
                continue
            found += 1
            code = f"import sys; sys.path.insert(0, {str(self.package)!r}); import _core; print(_core.type_names()[21])"
            result = run(python, "-c", code)
            self.assertEqual(result.stdout, "f32\n", f"{python}: {result.stderr}")
        self.assertGreater(found, 0)


if __name__ == "__main__":
    unittest.main()
