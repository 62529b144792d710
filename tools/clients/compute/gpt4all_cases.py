"""GPT4All: small models of seeded weights on its Kompute backend, compared with its CPU backend and timed on both.

Usage: gpt4all_cases.py FOLDER, with TYPE.gguf of each model, and TYPE.exact.gguf, the same weights in a type whose activations the
CPU backend does not round
"""

import contextlib
import sys
from pathlib import Path

import case_runner
from gpt4all import GPT4All

PROMPT = "The furnace is a constellation of the southern sky, and this is the beginning of a text about it."
TOKENS = 24


@contextlib.contextmanager
def writer(path: Path, device: str):
    """A function that generates the text of a model's most probable tokens, a piece for each, and the device's name. The model is
    closed behind it: GPT4All's library aborts where a process loads a second model on Kompute while it has one."""
    model = GPT4All(path.name, model_path=path.parent, allow_download=False, device=device, n_ctx=512, n_threads=2, verbose=False)

    def run():
        return list(model.generate(PROMPT, max_tokens=TOKENS, temp=0, top_k=1, repeat_penalty=1, streaming=True))

    try:
        yield run, model.device
    finally:
        model.close()


def main():
    for path in sorted(path for path in Path(sys.argv[1]).glob("*.gguf") if not path.stem.endswith(".exact")):
        case = f"{path.stem}, {TOKENS} tokens"
        try:
            with writer(path.with_suffix(".exact.gguf"), "cpu") as (on_cpu, _):
                expected = on_cpu()
            with writer(path, "cpu") as (on_cpu, _):
                cpu_seconds = case_runner.measure(on_cpu)
            with writer(path, "kompute") as (on_device, name):
                if not name:
                    raise RuntimeError("GPT4All computes on the CPU.")
                print(name, file=sys.stderr)
                right = len(expected) > 1 and on_device() == expected
                case_runner.report(case, right=right, **case_runner.measured(on_device), cpu_seconds=cpu_seconds)
        except Exception as error:  # whatever a client raises is its answer
            case_runner.report_error(case, error)


if __name__ == "__main__":
    main()
