"""Which overloads of core ATen Fornax has: docs/torch.md names all others."""

import pathlib
import unittest

import torch

from fornax.torch import graph_file, library

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/torch.md"


def core_overloads():
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if namespace == "aten":
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
            if operator is not None and torch.Tag.core in operator.tags:
                yield f"{packet}.{overload or 'default'}"


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
        self.assertLessEqual(len(missing), 13)
        if torch.__version__.startswith("2.13."):
            here = [name for name in names if name not in missing and not name.startswith("sym_")]
            self.assertIn(f"{len(here)} of the {len(names)} overloads", text)


if __name__ == "__main__":
    unittest.main()
