"""The model beside the estimates of Arm's Vela, for int8 networks on a machine of like size. Information: neither was measured.

Usage: python3 -m tools.replay.vela --fornax COMMAND --vela COMMAND [NAME...]

Vela (PyPI ethos-u-vela, best in a virtual environment of its own) compiles each network for Ethos-U85 with 2,048
multiply-accumulates a cycle at 1 GHz and estimates its time; `fornax profile` replays the records of the same network on a
description of that size. Vela gets a TensorFlow Lite file that tflite.py makes of the ONNX model.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx

from tools.models.catalogue import NETWORKS
from tools.replay import reality, tflite

# By name: the network and its parameters.
CASES = {
    "mobilenet_v2 0.35, 96 x 96": ("mobilenet_v2_qdq", dict(width=0.35, image=96)),
    "mobilenet_v2, 224 x 224": ("mobilenet_v2_qdq", {}),
    "resnet, 4 blocks, 112 x 112": ("resnet50_qdq", dict(blocks=(1, 1, 1, 1), image=112)),
    "resnet50, 224 x 224": ("resnet50_qdq", {}),
}
VELA = ["--accelerator-config", "ethos-u85-2048", "--config", "Arm/vela.ini", "--system-config", "Ethos_U85_SYS_DRAM_High",
        "--memory-mode", "Dedicated_Sram_512KB", "--optimise", "Performance"]
# The same multipliers, clock and memories: 64 GB/s of SRAM, 512 KiB of it, 24 GB/s of DRAM. Vela counts no launch. What its
# configuration does not say is the preset's: its vector units above all, which requantise what an Ethos-U's output stage does on
# the way. So every network is also replayed with vector units that take next to no time.
DESCRIPTION = """# A machine of the size of Ethos-U85-2048 as Vela's Ethos_U85_SYS_DRAM_High has it.
name = "like-u85-2048"
base = "edge-4"
matrix.dataflow = "best"
dma.port_gbs = 32
dma.outstanding = 64
dma.efficiency = 1
network.bandwidth_gbs = 64
network.latency_ns = 32
cache.bytes = 524288
dram.bandwidth_gbs = 24
dram.latency_ns = 500
dram.efficiency = 1
command_processor.doorbell_ns = 0
command_processor.decode_ns = 0
command_processor.allocation_ns = 0
command_processor.drain_ns = 0
command_processor.driver_us = 0
"""
WIDE = DESCRIPTION.replace("like-u85-2048", "like-u85-2048, wide vectors") + "vector.bits = 1048576\n"


def estimate(vela, path, folder):
    """Vela's summary, by the names of its columns."""
    ran = subprocess.run([vela, str(path), *VELA, "--output-dir", str(folder)], stdin=subprocess.DEVNULL, capture_output=True,
                         text=True)
    summaries = sorted(folder.glob(f"{path.stem}_summary_*.csv"))
    if ran.returncode or not summaries:
        lines = (ran.stderr.strip() or ran.stdout.strip() or "It said nothing.").splitlines()
        raise reality.RealityError(f"Vela failed: {lines[-1]}")
    if len(summaries) > 1:
        raise reality.RealityError(f"Vela wrote {len(summaries)} summaries: {', '.join(path.name for path in summaries)}.")
    with summaries[0].open(newline="") as file:
        return next(csv.DictReader(file))


def compare(name, options, folder):
    network, parameters = CASES[name]
    if options.quick:
        parameters = NETWORKS[network].small
    model = NETWORKS[network].build(**parameters)
    path = folder / f"{network}_{len(list(folder.iterdir()))}.onnx"
    onnx.save(model.proto, path)
    path.with_suffix(".tflite").write_bytes(tflite.convert(model.proto))
    theirs = estimate(options.vela, path.with_suffix(".tflite"), folder / "vela")
    records = path.with_suffix(".jsonl")
    reality.run([options.fornax, "run", path, "--dim", "batch=1", "--no-cache", "--records", records])
    profile, wide = (json.loads(reality.run([options.fornax, "profile", records, "--npu", folder / f"{machine}.toml", "--json"]))
                     for machine in ("machine", "wide"))
    bounds = {}
    for kernel in profile["kernels"]:
        bounds[kernel["bound"]] = bounds.get(kernel["bound"], 0) + kernel["time_ns"]
    vela_ns = 1e9 * float(theirs["inference_time"])
    return {"name": name, "million_macs": float(theirs["nn_macs"]) / 1e6, "vela_ns": vela_ns, "modelled_ns": profile["total_ns"],
            "wide_ns": wide["total_ns"], "ratio": profile["total_ns"] / vela_ns, "vela_dram_bytes": float(theirs["dram_total_bytes"]),
            "dram_bytes": profile["dram_read_bytes"] + profile["dram_written_bytes"], "bound": max(bounds, key=bounds.get),
            "stamp": profile["stamp"]}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools.replay.vela", description="The model beside Vela's estimates.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {'; '.join(CASES)} (default: all)")
    parser.add_argument("--fornax", required=True, help="the command fornax")
    parser.add_argument("--vela", required=True, help="the command vela")
    parser.add_argument("--quick", action="store_true", help="small variants of the networks")
    parser.add_argument("--json", type=pathlib.Path, help="write all numbers to this file")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {'; '.join(CASES)}.")
    options.names = options.names or list(CASES)
    return options


def main(arguments):
    options = parse(arguments)
    rows = []
    try:
        with tempfile.TemporaryDirectory(prefix="fornax_vela_") as name:
            folder = pathlib.Path(name)
            (folder / "machine.toml").write_text(DESCRIPTION)
            (folder / "wide.toml").write_text(WIDE)
            print("| | million MACs | Vela ms | modelled ms | bound by | with wide vectors | DRAM MB, Vela | modelled |\n"
                  "|---|---|---|---|---|---|---|---|")
            for case in options.names:
                row = compare(case, options, folder)
                rows.append(row)
                print(f"| {case} | {row['million_macs']:.0f} | {row['vela_ns'] / 1e6:.3f} | {row['modelled_ns'] / 1e6:.3f} | "
                      f"{row['bound']} | {row['wide_ns'] / 1e6:.3f} | {row['vela_dram_bytes'] / 1e6:.2f} | "
                      f"{row['dram_bytes'] / 1e6:.2f} |", flush=True)
        print("", rows[-1]["stamp"], sep="\n")
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    except (reality.RealityError, tflite.ConvertError, OSError) as error:
        sys.exit(f"tools.replay.vela: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
