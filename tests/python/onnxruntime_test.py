"""fornax.onnxruntime.register() is all that a program of onnxruntime needs."""

import unittest

from support import add, python

RUN = """
    import sys
    import numpy as np
    import fornax.onnxruntime
    import onnxruntime
    devices = fornax.onnxruntime.register()
    assert len(devices) == len(fornax.onnxruntime.register()) > 0
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices(devices, {"cache": "none", "strict": "1"})
    x = np.ones((3, 4), np.float32)
    model = bytes.fromhex(sys.argv[1])
    for made in (onnxruntime.InferenceSession(model, options, enable_fallback=0),
                 onnxruntime.InferenceSession(model, providers=[fornax.onnxruntime.PROVIDER, "CPUExecutionProvider"])):
        assert made.get_providers()[0] == fornax.onnxruntime.PROVIDER, made.get_providers()
        np.testing.assert_array_equal(made.run(None, {"a": x, "b": x})[0], x + x)
    # The package itself works beside it.
    np.testing.assert_array_equal(fornax.load(model, cache=False)(x, x), x + x)
    print("done")
"""
NO_DEVICE = """
    import fornax.onnxruntime
    for _ in range(2):
        try:
            fornax.onnxruntime.register()
        except fornax.Error as error:
            print(error.status.name, error)
"""
OLD = """
    import onnxruntime
    del onnxruntime.register_execution_provider_library
    onnxruntime.__version__ = "1.22.0"
    import fornax.onnxruntime
    try:
        fornax.onnxruntime.register()
    except fornax.Error as error:
        print(error.status.name, error)
"""


class Onnxruntime(unittest.TestCase):
    def test_one_call_registers_it(self):
        # The driver is the package's: nothing in the environment names it.
        self.assertEqual(python(RUN, add().hex(), VK_DRIVER_FILES="", VK_ICD_FILENAMES="").stdout, "done\n")

    def test_without_a_device(self):
        told = "NOT_FOUND onnxruntime finds no device of Fornax: the Vulkan loader or the driver is missing.\n"
        self.assertEqual(python(NO_DEVICE, VK_DRIVER_FILES="/nowhere.json").stdout, told * 2)

    def test_an_older_onnxruntime(self):
        self.assertEqual(python(OLD).stdout,
                         "UNSUPPORTED onnxruntime 1.22.0 does not load providers of others; 1.23 does.\n")


if __name__ == "__main__":
    unittest.main()
