"""The command line of tools/torch_bench; see docs/torch.md.

Run from the root of the source tree: python -m tools.torch_bench --fornax COMMAND --help
"""

import argparse
import importlib.util
import os
import pathlib
import sys

from tools.torch_bench import bench


def chosen(names, groups):
    """Names in the order given, each once; a group's name stands for all of its members."""
    result = []
    for name in names:
        if name not in groups:
            sys.exit(f"There is nothing called {name} to measure; names are {', '.join(groups)}.")
        result += [member for member in groups[name] if member not in result]
    return result


def parser():
    made = argparse.ArgumentParser(prog="fornax bench torch",
                                   description="Measures Fornax beside eager PyTorch and Inductor.")
    made.add_argument("name", nargs="*", help="names of networks, `calls` (a graph of one kernel), `wheel` (its size), or "
                      "`inference`, `training`, `all`; else everything")
    made.add_argument("--fornax", required=True, help=argparse.SUPPRESS)
    made.add_argument("--package", type=pathlib.Path,
                      help="a folder with the Python package; else the one that belongs to the command")
    made.add_argument("--small", action="store_true", help="small networks, to see that all works")
    made.add_argument("--list", action="store_true", help="prints what there is to measure")
    made.add_argument("--precisions", nargs="+", choices=["highest", "high", "medium"], default=["highest", "medium"],
                      help="of Fornax, beside `highest`; torch's stays `highest`")
    made.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))),
                      help="of torch, and processors of all")
    made.add_argument("--seconds", type=float, default=4, help="that each way is measured")
    made.add_argument("--warm-up", type=float, default=1.5, help="seconds before, of each way")
    made.add_argument("--rounds", type=int, default=4, help="how often the ways take turns; the medians of all calls count")
    made.add_argument("--first-calls", nargs="+", choices=bench.CACHED, default=bench.CACHED, metavar="WAY",
                      help=f"ways whose first call with full caches is measured, in a process of its own: {', '.join(bench.CACHED)} "
                      "(default: all)")
    made.add_argument("--json", help="a file for all numbers")
    return made


def main():
    options = parser().parse_args()
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            sys.exit(f"{sys.executable} has no {package}, which the networks need.")
    from tools.torch_bench.networks import NETWORKS

    groups = {name: [name] for name in [*NETWORKS, bench.CALLS, bench.WHEEL]}
    groups |= {"inference": [name for name, network in NETWORKS.items() if not network.is_training],
               "training": [name for name, network in NETWORKS.items() if network.is_training],
               "all": list(groups)}
    if options.list:
        for name, network in NETWORKS.items():
            print(f"{name:20}{network.summary}")
        return
    try:
        sys.exit(0 if bench.bench(chosen(options.name or ["all"], groups), NETWORKS, options) else 1)
    except bench.BenchError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
