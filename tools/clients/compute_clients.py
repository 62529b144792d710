#!/usr/bin/env python3
"""Runs programs that use Vulkan or WebGPU to compute, as their makers ship them, on Fornax and on lavapipe, and prints one table.

Usage: compute_clients.py [--peer MANIFEST] [--json FILE] [--list] [CLIENT...]

Each client is installed from its registry into a folder of its own below .clients/ (FORNAX_CLIENTS names another place). CLIENTS
below is the one place to add one: what it installs, what FORNAX_COMPAT it needs, and its program in compute/, which prints a line of
JSON for each case (compute/case_runner.py). Exits with 1 if a case is wrong on Fornax.
"""

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from programs import ROOT, default_folder, table

PROGRAMS = Path(__file__).resolve().parent / "compute"
TIMEOUT_SECONDS = 500


@dataclasses.dataclass(frozen=True)
class Client:
    title: str
    program: str  # in compute/
    python_packages: tuple[str, ...] = ()
    node_packages: tuple[str, ...] = ()
    compat: str = ""  # FORNAX_COMPAT
    environment: tuple[tuple[str, str], ...] = ()
    # More arguments of the program, from a folder for files that it needs.
    arguments: Callable[[Path], list[str]] = lambda folder: []


def webgpu_files(folder: Path) -> list[str]:
    """What dawn_cases.mjs reads, and where its packages are."""
    subprocess.run([python_of("wgpu"), PROGRAMS / "webgpu_cases.py", folder], check=True)
    return [str(folder), str(folder_of("dawn"))]


def models(_: Path) -> list[str]:
    return [str(path) for path in sorted((ROOT / "models").glob("*.onnx"))]


CLIENTS = {
    "taichi": Client("Taichi 1.7.4", "taichi_cases.py", ("taichi==1.7.4", "numpy<2.4"), compat="graphics"),
    "wgpu": Client("wgpu-py 0.32 (wgpu-native)", "wgpu_cases.py", ("wgpu==0.32.0", "numpy"), compat="graphics,conformance",
                   environment=(("WGPU_BACKEND_TYPE", "Vulkan"),)),
    "dawn": Client("Dawn, npm webgpu 0.6.2", "dawn_cases.mjs", node_packages=("webgpu@0.6.2",), compat="graphics", arguments=webgpu_files),
    "onnxruntime": Client("onnxruntime-webgpu 1.27", "onnxruntime_cases.py", ("onnxruntime-webgpu==1.27.0", "numpy"),
                          compat="graphics", arguments=models),
    "iree": Client("IREE 3.13", "iree_cases.py",
                   ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", "numpy")),
    "slangpy": Client("SlangPy 0.43.1", "slangpy_cases.py", ("slangpy==0.43.1", "numpy"), compat="graphics"),
}


def folder_of(name: str) -> Path:
    return default_folder() / "compute" / name


def python_of(name: str) -> Path:
    return folder_of(name) / "bin/python3"


def node_tool(name: str) -> str:
    """node or npm: that of the set-up, else the system's."""
    own = ROOT / ".node/bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if not found:
        raise RuntimeError(f"There is no {name}; tools/setup/node.sh installs it.")
    return found


def install(name: str):
    """Fills the client's folder unless it is complete."""
    client, folder = CLIENTS[name], folder_of(name)
    stamp, wanted = folder / "stamp", " ".join([*client.python_packages, *client.node_packages])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"{name}: installing {wanted}", file=sys.stderr)
    if client.python_packages:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python_of(name), "-m", "pip", "install", "--quiet", *client.python_packages], check=True)
    if client.node_packages:
        (folder / "package.json").write_text("{}")
        node_folder = Path(node_tool("node")).parent
        subprocess.run([node_tool("npm"), "install", "--silent", "--no-fund", "--no-audit", *client.node_packages], cwd=folder,
                       check=True, env={**os.environ, "PATH": f"{node_folder}:{os.environ['PATH']}"})
    stamp.write_text(wanted)


def run(name: str, manifest: Path, compat: str) -> dict[str, dict]:
    """The program's answers on one driver, by case. What ends the program early is the case "(end)"."""
    client = CLIENTS[name]
    command = [python_of(name) if client.python_packages else node_tool("node"), PROGRAMS / client.program]
    environment = {**os.environ, "VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest), "PYTHONDONTWRITEBYTECODE": "1",
                   **dict(client.environment)}
    environment.pop("FORNAX_COMPAT", None)
    if compat:
        environment["FORNAX_COMPAT"] = compat
    answers: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        command += client.arguments(Path(folder))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment)
        try:
            output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            answers["(end)"] = {"right": False, "error": f"not done after {TIMEOUT_SECONDS} s"}
        errors.seek(0)
        log = errors.read().decode(errors="replace")
    for line in output.decode(errors="replace").splitlines():
        if line.startswith('{"case"'):
            answer = json.loads(line)
            answers[answer.pop("case")] = answer
    if process.returncode and "(end)" not in answers:
        last = [line for line in log.splitlines() if line.strip()][-1:] or ["no word"]
        answers["(end)"] = {"right": False, "error": f"exit status {process.returncode}: {last[0].strip()[:200]}"}
    sys.stderr.write("".join(f"  {line}\n" for line in log.splitlines()[-20:]))
    return answers


def milliseconds(answer: dict, key: str = "seconds") -> str:
    return f"{answer[key] * 1e3:.3g}" if key in answer else "-"


def rows_of(name: str, fornax: dict[str, dict], peer: dict[str, dict]) -> list[list[str]]:
    rows = []
    end = peer.get("(end)", {}).get("error", "no answer")
    for case in dict.fromkeys([*fornax, *(case for case in peer if case != "(end)")]):
        ours, theirs = fornax.get(case, {}), peer.get(case, {})
        times = f"{theirs['seconds'] / ours['seconds']:.1f}x" if "seconds" in ours and "seconds" in theirs else "-"
        verdict = {True: "right", False: "WRONG"}.get(ours.get("right"), "-")
        peer_remark = "" if theirs.get("right") or not peer else f"lavapipe: {theirs.get('error', 'wrong' if theirs else end)}"
        rows.append([name, case, verdict, milliseconds(ours), milliseconds(theirs), times, milliseconds(ours, "cpu_seconds"),
                     ours.get("error") or peer_remark])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--manifest", type=Path, default=ROOT / "build/release/icd" / f"fornax_icd.{os.uname().machine}.json")
    parser.add_argument("--peer", type=Path, help="the manifest of lavapipe, else the system's; an empty folder for none")
    parser.add_argument("--no-peer", action="store_true", help="Fornax alone")
    parser.add_argument("--json", type=Path, help="the answers of both drivers, for programs")
    parser.add_argument("--list", action="store_true", help="the clients and what FORNAX_COMPAT they run with")
    options = parser.parse_args()
    if options.list:
        print(table([["client", "what", "FORNAX_COMPAT"], *([n, c.title, c.compat or "-"] for n, c in CLIENTS.items())]))
        return 0
    unknown = [name for name in options.clients if name not in CLIENTS]
    if unknown:
        parser.error(f"there is no client {unknown[0]}; they are {', '.join(CLIENTS)}")
    peer_manifest = options.peer or next(iter(sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))), None)
    rows, everything, failed = [["client", "case", "Fornax", "ms", "lavapipe ms", "times", "own CPU ms", "remark"]], {}, False
    for name in options.clients or CLIENTS:
        try:
            install(name)
            if name == "dawn":
                install("wgpu")  # its Python writes the inputs
            fornax = run(name, options.manifest.resolve(), CLIENTS[name].compat)
            peer = run(name, peer_manifest, "") if peer_manifest and not options.no_peer else {}
        except (subprocess.CalledProcessError, RuntimeError) as error:
            fornax, peer = {"(set-up)": {"right": False, "error": str(error)}}, {}
        rows += rows_of(name, fornax, peer)
        everything[name] = {"fornax": fornax, "lavapipe": peer}
        failed = failed or not fornax or not all(answer.get("right") for answer in fornax.values())
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
