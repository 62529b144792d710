#!/usr/bin/env python3
"""Runs programs that use Vulkan or WebGPU to compute, as their makers ship them, on Fornax and on lavapipe, and prints one table.

Usage: compute_clients.py [--warm-up] [--peer MANIFEST] [--json FILE] [--list] [CLIENT...]

Each client is installed from its registry into a folder of its own below .clients/ (FORNAX_CLIENTS names another place) by
client_setup.py. CLIENTS below is the one place to add one: what it installs, what FORNAX_COMPAT it needs, and its program in compute/,
which prints a line of JSON for each case (compute/case_runner.py). Exits with 1 if a case is wrong on Fornax.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from client_setup import (Client, build_clvk, build_kompute, command_of, environment_of, folder_of, install, python_of, suite_lavapipe,
                          suite_of)
from programs import ROOT, default_folder, table

PROGRAMS = Path(__file__).resolve().parent / "compute"
TIMEOUT_SECONDS = 900
# Of tools/models, for onnxruntime-webgpu.
NETWORKS = ("mobilenet_v2", "resnet50", "efficientnet_b0", "yolov8n", "unet", "minilm", "bert_base", "vit_b16", "whisper_tiny_encoder",
            "whisper_tiny_decoder", "llama_small", "llama_small_q4", "mobilenet_v2_qdq")
# Functions of OpenCL that clvk leaves to lavapipe, with fma, which it leaves to most processors of graphics. A device that it does not know gets
# libraries for all of them, in which an fma takes some two hundred instructions.
NATIVE_IN_CLVK = ",".join((
    "ceil", "copysign", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "isequal", "isfinite", "isgreater", "isgreaterequal", "isinf", "isless",
    "islessequal", "islessgreater", "isnan", "isnormal", "isnotequal", "isordered", "isunordered", "mad", "rint", "round", "rsqrt", "signbit",
    "sqrt", "trunc", "half_cos", "half_exp", "half_exp2", "half_exp10", "half_rsqrt", "half_sin", "half_sqrt", "half_tan"))


def webgpu_files(folder: Path) -> list[str]:
    """What dawn_cases.mjs reads, and where its packages are."""
    subprocess.run([python_of("wgpu"), PROGRAMS / "webgpu_cases.py", folder], check=True)
    return [str(folder), str(folder_of("dawn"))]


def ffmpeg_files(folder: Path) -> list[str]:
    return [str(folder), str(suite_of("ffmpeg")), str(suite_lavapipe("ffmpeg"))]


def gguf_models(folder: Path) -> list[str]:
    """Models of one type each, and beside them their weights in f16."""
    for name, options in (("f16", ()), ("f16.exact", ()), ("q4_0", ("--type", "q4_0")), ("q4_0.exact", ("--rounded-to", "q4_0"))):
        subprocess.run([python_of("gpt4all"), PROGRAMS.parent / "write_llama.py", folder / f"{name}.gguf", *options], check=True)
    return [str(folder)]


def write_networks(folder: Path, names: tuple[str, ...]) -> list[str]:
    subprocess.run([ROOT / ".venv/bin/python3", PROGRAMS.parent / "write_networks.py", folder, *names], check=True)
    return [str(folder / f"{name}.onnx") for name in names]


def onnx_models(folder: Path) -> list[str]:
    return [*(str(path) for path in sorted((ROOT / "models").glob("*.onnx"))), *write_networks(folder, NETWORKS)]


def iree_files(folder: Path) -> list[str]:
    """The networks, and what IREE compiles of them, which takes minutes and is kept in the client's folder."""
    write_networks(folder, ("minilm", "vit_b16", "bert_base"))
    files = [str(folder), str(folder_of("iree") / "modules")]
    subprocess.run([python_of("iree"), PROGRAMS / "iree_cases.py", *files, "--compile"], check=True)
    return files


def executorch_programs(folder: Path) -> list[str]:
    """Where the client keeps its networks, which it lowers in minutes the first time."""
    programs = folder_of("executorch") / "programs"
    subprocess.run([python_of("executorch"), PROGRAMS / "executorch_cases.py", programs, "--lower"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return [str(programs)]


CLIENTS = {
    "taichi": Client("Taichi 1.7.4", "taichi_cases.py", ("taichi==1.7.4", "numpy<2.4"), compat="graphics"),
    "wgpu": Client("wgpu-py 0.32 (wgpu-native)", "wgpu_cases.py", ("wgpu==0.32.0", "numpy"), compat="graphics,conformance",
                   environment=(("WGPU_BACKEND_TYPE", "Vulkan"),)),
    "dawn": Client("Dawn, npm webgpu 0.6.2", "dawn_cases.mjs", node_packages=("webgpu@0.6.2",), compat="graphics", arguments=webgpu_files,
                   newest_peer=True),
    "onnxruntime": Client("onnxruntime-webgpu 1.27", "onnxruntime_cases.py", ("onnxruntime-webgpu==1.27.0", "numpy"),
                          compat="graphics", arguments=onnx_models, newest_peer=True),
    "iree": Client("IREE 3.13", "iree_cases.py",
                   ("iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "onnx==1.23.2", "onnxruntime==1.31.1", "numpy"),
                   arguments=iree_files),
    "slangpy": Client("SlangPy 0.43.1", "slangpy_cases.py", ("slangpy==0.43.1", "numpy"), compat="graphics", newest_peer=True),
    "halide": Client("Halide 21", "halide_cases.py", ("halide==21.0.0", "numpy")),
    "kompute": Client("Kompute 0.9", "kompute_cases.py", ("numpy<2", "pybind11==2.13.6", "setuptools<80", "wheel"),
                      debian_packages=("libvulkan-dev",), debian_suite="bookworm", build=build_kompute,
                      arguments=lambda folder: [str(ROOT / ".deps/bin/glslang")]),
    "gpt4all": Client("GPT4All 2.8.2 (Kompute)", "gpt4all_cases.py", ("gpt4all==2.8.2", "gguf==0.19.0", "numpy"),
                      arguments=gguf_models),
    "ffmpeg": Client("FFmpeg's Vulkan filters", "ffmpeg_cases.py", ("numpy",), debian_packages=("ffmpeg", "mesa-vulkan-drivers"),
                     arguments=ffmpeg_files),
    "pytorch": Client("PyTorch's Vulkan backend", "pytorch_cases.py",
                      debian_packages=("python3-torch", "python3-numpy", "mesa-vulkan-drivers"), runs_in_suite=True, compat="bounds"),
    "executorch": Client("ExecuTorch 1.5's Vulkan delegate", "executorch_cases.py", ("executorch==1.5.1", "torch==2.13.0", "numpy"),
                         newest_peer=True, arguments=executorch_programs, needs="FORNAX_EXECUTORCH_VULKAN"),
    "clvk": Client("clvk's OpenCL", "clvk_cases.py", ("pyopencl==2026.1.4", "pocl-binary-distribution==3.0", "Mako==1.4.3", "numpy", "psutil",
                                                      "setuptools<80", "wheel"), debian_packages=("clpeak", "opencl-headers"),
                   debian_suite="bookworm", build=build_clvk, newest_peer=True, arguments=lambda folder: [str(folder_of("clvk"))],
                   needs="FORNAX_CLVK", environment=(("CLVK_CLSPV_NATIVE_BUILTINS", NATIVE_IN_CLVK),)),
}

# The peer of clients that the system's is too old for.
LAVAPIPE = Client("lavapipe, the newest", "", debian_packages=("mesa-vulkan-drivers",))


def run(name: str, manifest: Path, compat: str, cache: str | None = None, suite: Path | None = None) -> dict[str, dict]:
    """The program's answers on one driver, by case. What ends the program early is the case "(end)". Kernels are kept in the folder
    `cache`, else where the driver does. `suite` has the C library that a driver of it needs."""
    client = CLIENTS[name]
    command = [*command_of(name, client, suite), PROGRAMS / client.program]
    environment = {**os.environ, "VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest), "PYTHONDONTWRITEBYTECODE": "1",
                   **environment_of(name, client)}
    environment.pop("FORNAX_COMPAT", None)
    if compat:
        environment["FORNAX_COMPAT"] = compat
    if cache:
        environment["FORNAX_CACHE_DIR"] = cache
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
        answers["(end)"] = {"right": False, "error": f"exit status {process.returncode}: {reason_in(log)[:200]}"}
    sys.stderr.write("".join(f"  {line}\n" for line in log.splitlines()[-20:]))
    return answers


def peer_of(name: str, given: Path | None) -> tuple[Path | None, Path | None]:
    """The manifest of lavapipe for a client, `given` if that is one, and the suite whose C library it needs. The packages of a suite
    run with its C library anyway, and have the newest lavapipe."""
    if given:
        return given, None
    if CLIENTS[name].newest_peer:
        install("lavapipe", LAVAPIPE)
        return suite_lavapipe("lavapipe"), suite_of("lavapipe")
    if suite_lavapipe(name).exists():
        return suite_lavapipe(name), None
    return next(iter(sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))), None), None


def reason_in(log: str) -> str:
    """The line of a program's errors that says why it ended: its first failed assertion, since a backtrace may come behind that,
    else its last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "ASSERT" in line or "Assertion" in line), lines[-1] if lines else "no word")


def warm_up_rows(name: str, fornax: dict[str, dict]) -> list[list[str]]:
    """How far the second run in a process that finds no compiled kernels is from the steady speed, and when that is nearly reached."""
    return [[name, case, milliseconds(answer, "second_run_seconds"), milliseconds(answer),
             f"{answer['seconds'] / answer['second_run_seconds']:.0%}", str(answer.get("fast_run", "-")), milliseconds(answer, "fast_after_seconds")]
            for case, answer in fornax.items() if "second_run_seconds" in answer]


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
    parser.add_argument("--peer", type=Path, help="the manifest of lavapipe, else the system's, or the newest where that is too old; an empty folder for none")
    parser.add_argument("--no-peer", action="store_true", help="Fornax alone")
    parser.add_argument("--json", type=Path, help="the answers of both drivers, for programs")
    parser.add_argument("--warm-up", action="store_true", help="with empty caches, and a table of the second runs in each process")
    parser.add_argument("--list", action="store_true", help="the clients and what FORNAX_COMPAT they run with")
    options = parser.parse_args()
    if options.list:
        print(table([["client", "what", "FORNAX_COMPAT"], *([n, c.title, c.compat or "-"] for n, c in CLIENTS.items())]))
        return 0
    unknown = [name for name in options.clients if name not in CLIENTS]
    if unknown:
        parser.error(f"there is no client {unknown[0]}; they are {', '.join(CLIENTS)}")
    head = ["client", "case", "second run, ms", "steady, ms", "of the steady speed", "80 % at run", "ms behind the first"] if options.warm_up else \
        ["client", "case", "Fornax", "ms", "lavapipe ms", "times", "own CPU ms", "remark"]
    rows, everything, failed = [head], {}, False
    for name in options.clients or (name for name, client in CLIENTS.items() if client.is_possible):
        try:
            client = CLIENTS[name]
            install(name, client)
            if name == "dawn":
                install("wgpu", CLIENTS["wgpu"])  # its Python writes the inputs
            with tempfile.TemporaryDirectory() as cache:
                fornax = run(name, options.manifest.resolve(), client.compat, cache if options.warm_up else None)
            manifest, suite = (None, None) if options.no_peer or options.warm_up else peer_of(name, options.peer)
            peer = run(name, manifest, "", suite=suite) if manifest else {}
        except (subprocess.CalledProcessError, RuntimeError) as error:
            fornax, peer = {"(set-up)": {"right": False, "error": str(error)}}, {}
        rows += warm_up_rows(name, fornax) if options.warm_up else rows_of(name, fornax, peer)
        print(f"{name}: done, {sum(bool(answer.get('right')) for answer in fornax.values())} of {len(fornax)} cases right",
              file=sys.stderr)
        everything[name] = {"fornax": fornax, "lavapipe": peer}
        failed = failed or not fornax or not all(answer.get("right") for answer in fornax.values())
        if options.json:  # now, so that an interruption loses only the client that runs
            options.json.write_text(json.dumps(everything, indent=1))
    print(table(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
