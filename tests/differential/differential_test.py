#!/usr/bin/env python3
"""Runs random compute shaders on Fornax and on lavapipe, through the Vulkan loader, and compares the results.

usage: differential_test.py [--first SEED] [--seeds COUNT] [--optimize | --modules] [--keep DIRECTORY]
Environment: FORNAX_RUN_SHADERS (the runner), FORNAX_MANIFEST, FORNAX_GLSLANG, FORNAX_SPIRV_OPT, FORNAX_SPIRV_VAL,
FORNAX_FUZZ_MODULES (compiler/kernel/fuzz). Without --modules the shaders are random_shader.py's GLSL.
Exit status 0 if all agree, 1 if not, 77 (skipped) if lavapipe is not installed.
"""

import argparse
import concurrent.futures
import glob
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from random_shader import WORDS, random_shader  # noqa: E402

CHUNK = 40
INPUT_SEED = 5
MODULE_WORDS = 8192  # kOutputBytes of compiler/kernel/fuzz/random_module.h
VULKAN_OF_SPIRV = {3: "vulkan1.1", 4: "vulkan1.1spv1.4", 5: "vulkan1.2", 6: "vulkan1.3"}


def compile_shader(seed, directory, optimize):
    """Writes SEED.comp and SEED.spv; returns the path of the latter, or None if glslang refuses."""
    source = directory / f"{seed}.comp"
    module = directory / f"{seed}.spv"
    source.write_text(random_shader(seed))
    command = [os.environ["FORNAX_GLSLANG"], "--target-env", "vulkan1.1", "-o", str(module), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"seed {seed}: glslang refuses the shader:\n{done.stdout}{done.stderr}")
        return None
    if optimize:
        subprocess.run([os.environ["FORNAX_SPIRV_OPT"], "-O", str(module), "-o", str(module)], check=True)
    return module


def make_modules(seeds, directory):
    """Writes SEED.spv for each; returns their paths, None for one that spirv-val refuses."""
    subprocess.run([os.environ["FORNAX_FUZZ_MODULES"], "--write", str(directory), "--portable",
                    "--first", str(seeds[0]), "--count", str(len(seeds))], check=True)

    def check(seed):
        module = directory / f"{seed}.spv"
        environment = VULKAN_OF_SPIRV[module.read_bytes()[5]]
        done = subprocess.run([os.environ["FORNAX_SPIRV_VAL"], "--scalar-block-layout", "--target-env",
                               environment, str(module)], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"seed {seed}: spirv-val refuses the module:\n{done.stdout}{done.stderr}")
            return None
        return module
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(check, seeds))


def run(manifest, modules, words):
    """One result line a module; a crash ends the list early."""
    environment = dict(os.environ, VK_DRIVER_FILES=manifest, VK_ICD_FILENAMES=manifest,
                       MESA_SHADER_CACHE_DISABLE="true", FORNAX_LOG_LEVEL="error",
                       FORNAX_CACHE_DIR=str(modules[0].parent / "cache"))
    command = [os.environ["FORNAX_RUN_SHADERS"], str(words), str(INPUT_SEED), *map(str, modules)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return []
    lines = done.stdout.splitlines()
    if len(lines) < len(modules):
        print(done.stderr[-2000:])
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--optimize", action="store_true", help="run spirv-opt -O on the modules first")
    parser.add_argument("--modules", action="store_true", help="random SPIR-V instead of random GLSL")
    parser.add_argument("--keep", help="keep shaders that differ in this directory")
    options = parser.parse_args()
    lavapipe = sorted(glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json"))
    if not lavapipe:
        print("lavapipe is not installed (package mesa-vulkan-drivers): nothing to compare with.")
        return 77
    failures = 0
    with tempfile.TemporaryDirectory(prefix="fornax_differential_") as scratch:
        directory = pathlib.Path(options.keep or scratch)
        directory.mkdir(parents=True, exist_ok=True)
        for first in range(options.first, options.first + options.seeds, CHUNK):
            seeds = list(range(first, min(first + CHUNK, options.first + options.seeds)))
            if options.modules:
                modules = make_modules(seeds, directory)
            else:
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    modules = list(pool.map(lambda s: compile_shader(s, directory, options.optimize), seeds))
            failures += sum(m is None for m in modules)
            pairs = [(s, m) for s, m in zip(seeds, modules) if m]
            files = [m for _, m in pairs]
            words = MODULE_WORDS if options.modules else WORDS
            ours = run(os.environ["FORNAX_MANIFEST"], files, words)
            theirs = run(lavapipe[0], files, words)
            for i, (seed, module) in enumerate(pairs):
                mine = ours[i] if i < len(ours) else "crashed or hung"
                other = theirs[i] if i < len(theirs) else "crashed or hung"
                if i > len(ours):
                    break  # the runner died on the shader before
                if mine != other and not other.startswith(("crashed", "error")):
                    failures += 1
                    print(f"seed {seed}: Fornax {mine}, lavapipe {other}; shader:")
                    if not options.keep and not options.modules:
                        print(random_shader(seed))
                elif options.keep:
                    module.unlink()
                    (directory / f"{seed}.comp").unlink(missing_ok=True)
            print(f"seeds {seeds[0]} to {seeds[-1]}: {failures} differences so far", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
