"""Runs the tests that the onnx package holds through its backend interface (onnx_backend.py), and counts.

    python3 onnx_backend_test.py node|simple|real|pytorch-converted|pytorch-operator [--at-least N] [--only REGEX]

"real" are the nine networks of the light set. FORNAX_LIBRARY is the path of libfornax.so. Exits with 1 if a case is
wrong or crashes, or fewer than --at-least pass. --every N runs each Nth case only.
"""
import argparse
import collections
import functools
import multiprocessing
import os
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt, Runner

import onnx_nodes
from onnx_backend import FornaxBackend

KINDS = ("node", "simple", "real", "pytorch-converted", "pytorch-operator")
CASE_SECONDS = 120


def compare_outputs(case, model, expected, actual, atol=None):
    """A reason why they differ, or None."""
    random = case.name in onnx_nodes.RANDOM_CASES or any(
        node.op_type in onnx_nodes.RANDOM for node in model.graph.node)
    if len(expected) != len(actual):
        return f"{len(actual)} outputs instead of {len(expected)}"
    for declared, e, a in zip(model.graph.output, expected, actual):
        e, a = onnx_nodes.to_proto(e), numpy_helper.from_array(a)
        if random:
            same = e.data_type == a.data_type and list(e.dims) == list(a.dims)
            reason = None if same else "another type"
        else:
            reason = onnx_nodes.compare(e, a, case.rtol, onnx_nodes.ABSOLUTE.get(case.name, case.atol))
        if reason:
            return f"{declared.name}: {reason}"
    return None


def run_case(case, runner):
    """What the case is, of onnx_nodes.KINDS, and a reason."""
    try:
        if case.model is None:
            # The runner reads or makes inputs and outputs.
            runner.functions[case.name]()
            return "pass", ""
        rep = FornaxBackend.prepare(case.model)
        try:
            inputs, expected = case.data_sets[0]
            arrays = [numpy_helper.to_array(i) if isinstance(i, onnx.TensorProto) else i for i in inputs]
            reason = compare_outputs(case, case.model, expected, rep.run(arrays))
        finally:
            rep.close()
        return ("wrong", reason) if reason else ("pass", "")
    except BackendIsNotSupposedToImplementIt as error:
        return "unsupported", str(error)
    except AssertionError as error:
        return "wrong", str(error).strip().replace("\n", " ")[:300]
    except Exception as error:  # whatever it is, the case did not pass
        return "error", f"{type(error).__name__}: {error}"[:300]


class FunctionRunner(Runner):
    """onnx's runner, for its functions that read or make a case's inputs and compare the outputs."""

    def __init__(self, cases):
        self.backend = FornaxBackend
        self._test_kwargs = {}
        self.functions = {}
        for case in cases:
            self._add_model_test(case, "")

    def _add_test(self, category, test_name, test_func, report_item, devices=(), **kwargs):
        """The original hides what is not supported."""
        self.functions[test_name] = functools.partial(test_func, None, "CPU", **kwargs)


def load_cases(kind, only, every):
    warnings.filterwarnings("ignore")
    with np.errstate(all="ignore"):
        return [case for case in load_model_tests(kind=kind) if re.search(only, case.name)][::every]


def work(arguments, first, results):
    """Runs the cases from `first` on; a crash ends the process."""
    cases = load_cases(arguments.kind, arguments.only, arguments.every)
    runner = None if arguments.kind == "node" else FunctionRunner(cases)
    for index in range(first, len(cases)):
        results.send((index, *run_case(cases[index], runner)))
    results.close()


def run_all(arguments, cases):
    outcomes = []
    while len(outcomes) < len(cases):
        receive, send = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(arguments, len(outcomes), send))
        process.start()
        send.close()
        try:
            while receive.poll(CASE_SECONDS):
                outcomes.append(receive.recv()[1:])
            process.kill()
            outcomes.append(("crash", f"It took more than {CASE_SECONDS} s."))
        except EOFError:
            process.join()
            if len(outcomes) < len(cases):
                outcomes.append(("crash", f"The process ended with {process.exitcode}."))
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--only", default="", help="cases whose name matches this")
    parser.add_argument("--every", type=int, default=1, help="run each Nth case only")
    parser.add_argument("--at-least", type=int, default=0, help="fail if fewer cases pass")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ONNX_HOME"] = folder  # where the runner writes inputs
        cases = load_cases(arguments.kind, arguments.only, arguments.every)
        outcomes = run_all(arguments, cases)
    for case, (outcome, reason) in zip(cases, outcomes):
        if outcome != "pass":
            print(f"{outcome}\t{case.name}\t{reason}")
    totals = collections.Counter(outcome for outcome, _ in outcomes)
    print(f"{len(cases)} cases: " + ", ".join(f"{totals[outcome]} {outcome}" for outcome in onnx_nodes.KINDS))
    return 1 if totals["wrong"] or totals["crash"] or totals["pass"] < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
