"""Which overloads of core ATen Fornax has: docs/torch.md names all others."""

import pathlib
import unittest

import torch

from fornax.torch import graph_file, library

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/torch.md"


def core_overloads():
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            if torch.Tag.core in getattr(packet, overload).tags:
                yield f"{name}.{overload}"


class Coverage(unittest.TestCase):
    def test_core_aten(self):
        names = sorted(core_overloads())
        program = graph_file.Program("coverage")
        for name in names:
            program.node("aten." + name, name, "", [], [])
        missing = [names[number] for number, reason in library.check(program.to_bytes())
                   if reason == "Fornax does not have this operator"]
        # Sizes are expressions of the file, not nodes.
        missing = [name for name in missing if not name.startswith("sym_")]
        text = DOCUMENT.read_text(encoding="utf-8")
        for name in missing:
            self.assertIn("`" + name.removesuffix(".default") + "`", text)
        self.assertLessEqual(len(missing), 12)
        if torch.__version__.startswith("2.13."):
            self.assertIn(f"{len([name for name in names if name not in missing]) - 5} of the {len(names)} overloads", text)


if __name__ == "__main__":
    unittest.main()
