"""The package and processes: fork, Ctrl-C, the end of Python, the command, and other programs on the device."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import fornax
from fornax import _driver
from support import DIGITS, python

COMMAND = [sys.executable, "-m", "fornax"]


def run(*arguments, **environment):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


class Fork(unittest.TestCase):
    def test_a_child_has_to_load_its_own(self):
        result = python("""
            import os, sys
            import numpy as np
            import fornax
            source = open(sys.argv[1], "rb").read()
            session = fornax.load(source, cache=False)
            x = np.ones((2, 1, 8, 8), np.float32)
            expected = session(x)
            big = np.ones((1 << 14, 1, 8, 8), np.float32)
            session(big)
            child = os.fork()
            if child == 0:
                for call in (lambda: session(x), session.clone, session.reset):
                    try:
                        call()
                        os._exit(1)
                    except fornax.Error as error:
                        if error.status != fornax.Status.DEVICE_LOST or "load the model again here." not in str(error):
                            os._exit(2)
                own = fornax.load(source, cache=False)
                if not np.array_equal(own(x), expected):
                    os._exit(3)
                session.close()
                del session
                own.close()
                sys.exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            assert np.array_equal(session(x), expected)
            print("both")
            """, DIGITS)
        self.assertEqual(result.stdout, "both\n")


class Interruption(unittest.TestCase):
    def setUp(self):
        # Kernels that the driver's cache has are there within a tenth of a second, before the signal.
        self.cache = tempfile.TemporaryDirectory(prefix="fornax_python_")
        self.addCleanup(self.cache.cleanup)

    def fresh_cache(self):
        return {"FORNAX_CACHE_DIR": tempfile.mkdtemp(dir=self.cache.name)}

    def test_ctrl_c_while_a_model_is_compiled(self):
        # New sizes compile at the first run; a model whose sizes are known does in load().
        for options in ("dims={'n': 3}", ""):
            with self.subTest(options):
                result = python(f"""
                    import os, signal, sys, threading
                    import numpy as np
                    import fornax
                    sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
                    from support import chain, add
                    source = chain()
                    fornax.load(add(), cache=False)
                    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                    session = None
                    try:
                        session = fornax.load(source, cache=False, {options})
                        session(np.ones((3, 16), np.float32))
                        print("not interrupted")
                    except KeyboardInterrupt:
                        print("interrupted while", fornax._core.abandoned_count(), "goes on")
                    # The device and the session are as good as before.
                    a = np.ones((2, 4), np.float32)
                    assert np.array_equal(fornax.load(add(), cache=False)(a, a), a + a)
                    if session is not None:
                        assert session(np.ones((3, 16), np.float32)).shape == (3, 106)
                    print("goes on")
                    """, **self.fresh_cache())
                self.assertEqual(result.stdout, "interrupted while 1 goes on\ngoes on\n")
                self.assertEqual(result.stderr, "")

    def test_python_ends_after_it(self):
        result = python(f"""
            import os, signal, sys, threading
            import fornax
            sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
            from support import chain
            source = chain()
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            fornax.load(source, cache=False, dims={{"n": 3}})
            """, check=False, **self.fresh_cache())
        self.assertIn("KeyboardInterrupt", result.stderr)
        self.assertIn(result.returncode, (-signal.SIGINT, 1, 130), result.stderr)


class End(unittest.TestCase):
    def test_sessions_that_are_left_to_the_end(self):
        python("""
            import sys, threading
            import numpy as np
            import fornax
            session = fornax.load(sys.argv[1], cache=False)
            x = np.ones((2, 1, 8, 8), np.float32)
            session(x)
            keep = session.run, session.clone()
            session.start({"image": x})
            """, DIGITS)


class Command(unittest.TestCase):
    def test_it_is_the_command(self):
        result = run("--version")
        self.assertEqual((result.returncode, result.stdout), (0, f"fornax {fornax.__version__}\n"))
        self.assertEqual(run("nothing").returncode, 2)
        result = run("run", DIGITS, "--dim", "N=2", "--no-cache")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("probabilities: f32[2,10]", result.stdout)

    def test_it_makes_plans_that_the_package_runs(self):
        with tempfile.TemporaryDirectory(prefix="fornax_python_") as folder:
            plan = os.path.join(folder, "digits.plan")
            self.assertEqual(run("compile", DIGITS, "-o", plan, "--dim", "N=2").returncode, 0)
            x = np.random.default_rng(1).random((2, 1, 8, 8), dtype=np.float32)
            np.testing.assert_array_equal(fornax.load(plan, cache=False)(x), fornax.load(DIGITS, cache=False)(x))

    def test_other_programs_run_on_the_device(self):
        result = run("exec", "--", sys.executable, "-c", "import fornax; print([d.name for d in fornax.devices()])")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^\['Fornax[^']*'\]$")
        self.assertEqual(run("exec", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(run("exec", "--", "no-such-program").returncode, 127)


class Driver(unittest.TestCase):
    CODE = """
        import os
        import fornax
        print([device.name for device in fornax.devices() if device.is_fornax] != [], os.environ.get("VK_ADD_DRIVER_FILES"))
        """

    def test_the_packages_own_is_found_beside_the_machines(self):
        result = python(self.CODE, VK_DRIVER_FILES="", VK_ADD_DRIVER_FILES="")
        self.assertEqual(result.stdout, f"True {_driver.MANIFEST}\n")

    def test_models_load_no_other_driver(self):
        code = """
            import numpy as np
            import os
            import sys
            import fornax
            x = np.ones((1, 1, 8, 8), np.float32)
            session = fornax.load(sys.argv[1], cache=False, device=sys.argv[2] or None)
            assert session(x).shape == (1, 10)
            with open("/proc/self/maps") as maps:
                print(len({line.split()[-1] for line in maps if "libvulkan_" in line}), session.device.startswith("Fornax"))
            """
        empty = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"), "")
        self.assertEqual(python(code, DIGITS, "", **empty).stdout, "1 True\n")
        # With a choice of devices, all drivers are there.
        self.assertGreaterEqual(int(python(code, DIGITS, "Fornax", **empty).stdout.split()[0]), 1)

    def test_a_loader_comes_along_for_machines_without_one(self):
        result = python("""
            import fornax
            from fornax import _driver
            _driver._has_loader = lambda: False
            print(any(device.is_fornax for device in fornax.devices()))
            with open("/proc/self/maps") as maps:
                print({line.split()[-1] for line in maps if "libvulkan.so" in line} == {str(_driver.LOADER)})
            assert _driver.with_loader({"LD_LIBRARY_PATH": "a"})["LD_LIBRARY_PATH"] == f"{_driver.LOADER.parent}:a"
            """)
        self.assertEqual(result.stdout, "True\nTrue\n")

    def test_what_the_user_chose_is_kept(self):
        result = python(self.CODE, VK_DRIVER_FILES=str(_driver.MANIFEST), VK_ADD_DRIVER_FILES="")
        self.assertEqual(result.stdout, "True \n")


if __name__ == "__main__":
    unittest.main()
