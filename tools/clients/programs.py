"""Where the client programs are and how they run; what the tools of this folder share."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def default_folder() -> Path:
    return Path(os.environ.get("FORNAX_CLIENTS", ROOT / ".clients"))


class Programs:
    """The programs of the clients' folder, run with its own loader and libraries."""

    def __init__(self, folder: Path):
        self.folder = folder
        loaders = sorted(folder.glob("usr/lib/*/ld-linux*.so.*"))
        if not loaders:
            sys.exit(f"{folder} has no programs; run tools/clients/setup.sh first.")
        self.libraries = loaders[0].parent
        self.backends = next(iter(sorted(self.libraries.glob("ggml/backends*"))), None)
        self.operators = next(iter(sorted(folder.glob("usr/libexec/*/ggml/test-backend-ops"))), None)
        if not self.backends or not self.operators:
            sys.exit(f"{folder} lacks ggml's backends or test-backend-ops; remove it and run "
                     "tools/clients/setup.sh again.")

    def manifest(self, driver: str) -> Path:
        """A driver's manifest: "fornax", "lavapipe" or a path."""
        if driver == "fornax":
            return ROOT / "build/release/icd" / f"fornax_icd.{os.uname().machine}.json"
        if driver == "lavapipe":
            return self.folder / "usr/share/vulkan/icd.d/lvp_icd.json"
        return Path(driver).resolve()

    def environment(self, driver: str, own_backend: bool = False) -> dict[str, str]:
        """What makes ggml use the first device of a driver, whatever its type: through ggml's Vulkan backend,
        or through libggml-fornax.so alone."""
        manifest = str(self.manifest(driver))
        environment = {"VK_DRIVER_FILES": manifest, "VK_ICD_FILENAMES": manifest, "GGML_VK_VISIBLE_DEVICES": "0"}
        if own_backend:
            environment["GGML_VK_VISIBLE_DEVICES"] = ""
            environment["GGML_BACKEND_PATH"] = str(ROOT / "build/release/plugins/ggml/libggml-fornax.so")
        return environment

    def run(self, program: Path, arguments: list[str], environment: dict[str, str], timeout: float,
            folder: Path | None = None):
        """Exit code, or None when the time was up; standard output with errors. The folder holds ggml's
        backends in place of the packaged ones."""
        libraries = [self.libraries, self.libraries / "ggml", self.libraries / "llama"]
        command = [self.libraries / "ld-linux-x86-64.so.2", "--library-path", ":".join(map(str, libraries)),
                   program, *arguments]
        # ggml looks for its backends in the current folder.
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, cwd=folder or self.backends, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT,
                                       env={**os.environ, **environment})
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = None
            output.seek(0)
            return code, output.read().decode(errors="replace")


def table(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i in (0, len(row) - 1) else cell.rjust(w)
                       for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
