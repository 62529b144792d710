"""The clients of tools/clients/compute_clients.py that are installed: every case is right on Fornax.

Usage: installed_test.py, with FORNAX_MANIFEST set. Exits with 77 where none is. Networks and FFmpeg, which take minutes, are left to the tool, and
so is GPT4All, which now and then ends while it loads a model.
"""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/clients"))

import compute_clients  # noqa: E402
from client_setup import folder_of  # noqa: E402

LEFT_OUT = ("ffmpeg", "gpt4all", "iree", "onnxruntime")


def installed() -> list[str]:
    clients = compute_clients.CLIENTS
    stamps = {name: folder_of(name) / "stamp" for name, client in clients.items() if name not in LEFT_OUT and client.is_possible}
    return [name for name, stamp in stamps.items() if stamp.exists() and stamp.read_text() == clients[name].stamp]


class InstalledClientsTest(unittest.TestCase):
    def test_every_case_is_right(self):
        os.environ["FORNAX_CLIENT_CASES_ONCE"] = "1"
        for name in installed():
            with self.subTest(name):
                answers = compute_clients.run(name, Path(os.environ["FORNAX_MANIFEST"]), compute_clients.CLIENTS[name].compat)
                self.assertGreater(len(answers), 1)
                for case, answer in answers.items():
                    self.assertTrue(answer["right"], (case, answer))


if __name__ == "__main__":
    if not installed():
        print("No client is installed; tools/clients/compute_clients.py does that.")
        sys.exit(77)
    unittest.main()
