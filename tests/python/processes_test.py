"""The package and processes: fork, Ctrl-C, the end of Python, the command, and other programs on the device."""

import os
import signal
import subprocess
import sys
import time
import unittest

import numpy as np

import fornax
from fornax import _driver
from support import DIGITS, add, chain, python

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
    def test_ctrl_c_while_a_model_is_compiled(self):
        # New sizes compile at the first run; a model whose sizes are known does in load().
        for options in ("dims={'n': 3}", ""):
            with self.subTest(options):
                result = python(f"""
                    import os, signal, sys, threading, time
                    import numpy as np
                    import fornax
                    sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
                    from support import chain, add
                    source = chain()
                    fornax.load(add(), cache=False)
                    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                    begin = time.monotonic()
                    session = None
                    try:
                        session = fornax.load(source, cache=False, {options})
                        session(np.ones((3, 16), np.float32))
                        print("not interrupted")
                    except KeyboardInterrupt:
                        print("interrupted", time.monotonic() - begin < 1)
                    # The device and the session are as good as before.
                    a = np.ones((2, 4), np.float32)
                    assert np.array_equal(fornax.load(add(), cache=False)(a, a), a + a)
                    if session is not None:
                        assert session(np.ones((3, 16), np.float32)).shape == (3, 76)
                    print("goes on")
                    """)
                self.assertEqual(result.stdout, "interrupted True\ngoes on\n")
                self.assertEqual(result.stderr, "")

    def test_python_ends_after_it(self):
        code = f"""
            import sys
            import fornax
            sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
            from support import chain
            source = chain()
            print("begins", flush=True)
            fornax.load(source, cache=False, dims={{"n": 3}})
            """
        import textwrap
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "begins\n")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertIn(process.returncode, (-signal.SIGINT, 1, 130), errors)


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
        import tempfile
        with tempfile.TemporaryDirectory(prefix="fornax_python_") as folder:
            plan = os.path.join(folder, "digits.plan")
            self.assertEqual(run("compile", DIGITS, "-o", plan, "--dim", "N=2").returncode, 0)
            x = np.random.default_rng(1).random((2, 1, 8, 8), dtype=np.float32)
            np.testing.assert_array_equal(fornax.load(plan, cache=False)(x), fornax.load(DIGITS, cache=False)(x))

    def test_other_programs_run_on_the_device(self):
        result = run("exec", "--", sys.executable, "-c", "import fornax; print([d.name for d in fornax.devices()])")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^\['Fornax[^,]*'\]$")
        self.assertEqual(run("exec", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(run("exec", "--", "no-such-program").returncode, 127)


class Driver(unittest.TestCase):
    CODE = """
        import os
        import fornax
        print([device.name for device in fornax.devices() if device.is_fornax] != [], os.environ.get("VK_ADD_DRIVER_FILES"))
        """

    def test_the_packages_own_is_found_beside_the_machines(self):
        result = python(self.CODE, VK_DRIVER_FILES="", VK_ICD_FILENAMES="", VK_ADD_DRIVER_FILES="")
        self.assertEqual(result.stdout, f"True {_driver.MANIFEST}\n")

    def test_what_the_user_chose_is_kept(self):
        result = python(self.CODE, VK_DRIVER_FILES=str(_driver.MANIFEST), VK_ADD_DRIVER_FILES="")
        self.assertEqual(result.stdout, "True \n")


if __name__ == "__main__":
    unittest.main()
