"""A sweep on a cluster of Dask: each task is a part of the space, which the command replays on a worker.

Usage: python3 -m tools.replay.cluster ADDRESS COMMAND FOLDER COUNT
FOLDER has space.toml and programs 0.jsonl, 1.jsonl, ...; rows are appended to its file `rows` as parts are done. Dask gives the
parts of a worker that is lost to another. Workers need the command at the same path, or in FORNAX_COMMAND, and nothing
else of this project: this file's function comes with its tasks.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from distributed import Client, as_completed

PARTS_OF_A_THREAD = 8
MOST_OF_A_PART = 2000


def replay(command, files, first, last):
    """The rows of a part, as lines. The files are texts by name."""
    with tempfile.TemporaryDirectory(prefix="fornax_sweep_") as name:
        folder = pathlib.Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        programs = [folder / file for file in files if file != "space.toml"]
        ran = subprocess.run([os.environ.get("FORNAX_COMMAND", command), "sweep", folder / "space.toml", *programs,
                              "--skip-contradictions", "--threads", "1", "--rows", f"{first}:{last}"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr.strip() or f"{command} ended with {ran.returncode}.")
    return ran.stdout


def main():
    address, command, name, count = *sys.argv[1:4], int(sys.argv[4])
    folder = pathlib.Path(name)
    programs = sorted(folder.glob("*.jsonl"), key=lambda path: int(path.stem))
    files = {path.name: path.read_text(encoding="utf-8") for path in (folder / "space.toml", *programs)}
    with Client(address, timeout="20s") as client, (folder / "rows").open("w", encoding="utf-8") as rows:
        threads = sum(client.nthreads().values())
        if threads == 0:
            sys.exit(f"{address} has no workers.")
        part = min(MOST_OF_A_PART, -(-count // (PARTS_OF_A_THREAD * threads)))
        tasks = [client.submit(replay, command, files, first, min(first + part, count), pure=False)
                 for first in range(0, count, part)]
        for task in as_completed(tasks):
            rows.write(task.result())
            rows.flush()


if __name__ == "__main__":
    main()
