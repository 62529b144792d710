"""Runs ONNX's own node tests through onnxruntime with Fornax as a provider, and counts.

    python3 node_cases.py [--constants] [--every N] [--only REGEX] [--at-least N] [--list]

A case is "pass" if Fornax took all of its nodes, "shared" if onnxruntime's provider ran a part, "refused" if it ran all;
all three compare with the expected outputs. What onnxruntime does not run without Fornax either is "not there", and a
case that its own provider gets wrong in the same way is "same": neither is about Fornax. Exits with 1 if a case is
wrong, fails or crashes, or fewer than --at-least pass. The environment is that of provider.py.

--constants makes small inputs of integers constants where others stay: axes, shapes and the like. Networks have them
so, and what decides shapes at run time is left to onnxruntime.
"""

import argparse
import collections
import multiprocessing
import os
import re
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import provider
import onnx_nodes  # noqa: E402  (of tests/graph)

KINDS = ("pass", "shared", "refused", "not there", "same", "wrong", "error", "crash")
CASE_SECONDS = 120
MOST_IR_VERSION = 13  # that onnxruntime takes; later ones say nothing that these cases need
MOST_CONSTANT = 16  # elements
FACTORS = ("scales", "roi")  # inputs of other numbers that decide shapes


def to_value(value, kind):
    """What sessions take for an input of this TypeProto; only tensors need the type."""
    if isinstance(value, list):
        return [numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else item for item in value]
    array = np.asarray(numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value)
    if array.dtype.kind == "V":
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind.tensor_type.elem_type)
    return array


def prepared(case, constants):
    """The model that is run."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = min(model.ir_version, MOST_IR_VERSION)
    chosen = {}
    for declared, value in zip(case.model.graph.input, case.data_sets[0][0]):
        array = np.asarray(value) if isinstance(value, np.ndarray | np.generic) else None
        if array is not None and array.size <= MOST_CONSTANT and (
                array.dtype in (np.int32, np.int64, np.bool_) or declared.name in FACTORS):
            chosen[declared.name] = array
    if constants and len(chosen) < len(model.graph.input):
        for declared in list(model.graph.input):
            if declared.name in chosen:
                model.graph.initializer.append(numpy_helper.from_array(chosen[declared.name], declared.name))
                model.graph.input.remove(declared)
    return model


def run(made, case):
    inputs, _ = case.data_sets[0]
    wanted = {declared.name for declared in made.get_inputs()}
    feeds = {declared.name: to_value(value, declared.type) for declared, value in zip(case.model.graph.input, inputs)
             if value is not None and declared.name in wanted}
    if any(isinstance(value, onnxruntime.OrtValue) for value in feeds.values()):
        feeds = {name: value if isinstance(value, onnxruntime.OrtValue) else onnxruntime.OrtValue.ortvalue_from_numpy(value)
                 for name, value in feeds.items()}
        return [value.numpy() for value in made.run_with_ort_values(None, feeds)]
    return made.run(None, feeds)


def difference(case, actual):
    """A reason why the outputs are not the expected ones, or None."""
    _, expected = case.data_sets[0]
    random = case.name in onnx_nodes.RANDOM_CASES or any(
        node.op_type in onnx_nodes.RANDOM for node in case.model.graph.node)
    for declared, e, a in zip(case.model.graph.output, expected, actual):
        pairs = list(zip(e, a)) if isinstance(e, list) else [(e, a)]
        if isinstance(e, list) and len(e) != len(a):
            return f"{declared.name}: {len(a)} items instead of {len(e)}"
        for one, other in pairs:
            if one is None or isinstance(other, dict):
                continue
            one, other = onnx_nodes.to_proto(one), numpy_helper.from_array(np.asarray(other))
            if random:
                reason = None if list(one.dims) == list(other.dims) else "another shape"
            else:
                reason = onnx_nodes.compare(one, other, case.rtol, onnx_nodes.ABSOLUTE.get(case.name, case.atol))
            if reason:
                return f"{declared.name}: {reason}"
    return None


def alone(data, case):
    """What onnxruntime makes of it without Fornax: a kind, and a reason."""
    try:
        reason = difference(case, run(provider.reference(data), case))
    except Exception as error:  # whatever it is, there is nothing to compare with
        return "not there", str(error)
    return ("same", reason) if reason else (None, "")


def run_case(case, constants):
    data = prepared(case, constants).SerializeToString()
    try:
        made = provider.session(data)
        reason = difference(case, run(made, case))
    except Exception as error:
        kind, without = alone(data, case)
        return (kind, without) if kind == "not there" else ("error", str(error)[:300])
    if reason:
        kind, without = alone(data, case)
        return (kind, without) if kind == "same" else ("wrong", reason)
    taken, left = provider.partitions(made), provider.others(made)
    return ("shared" if left else "pass", "") if taken else ("refused", "")


def load_cases(arguments):
    warnings.filterwarnings("ignore")
    with np.errstate(all="ignore"):
        cases = load_model_tests(kind="node")
    return [case for case in cases if re.search(arguments.only, case.name)][::arguments.every]


def work(arguments, first, results):
    cases = load_cases(arguments)
    for case in cases[first:]:
        results.send(run_case(case, arguments.constants))
    results.close()


def run_all(arguments, count):
    """Each case's outcome; one that ends the process is a crash."""
    outcomes = []
    context = multiprocessing.get_context("spawn")
    while len(outcomes) < count:
        receive, send = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(arguments, len(outcomes), send))
        process.start()
        send.close()
        try:
            while receive.poll(CASE_SECONDS):
                outcomes.append(receive.recv())
            process.kill()
            outcomes.append(("crash", f"It took more than {CASE_SECONDS} s."))
        except EOFError:
            process.join()
            if len(outcomes) < count:
                outcomes.append(("crash", f"The process ended with {process.exitcode}."))
    return outcomes


def main():
    os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # cases of the newest versions too
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name matches this")
    parser.add_argument("--constants", action="store_true", help="small inputs of integers are constants")
    parser.add_argument("--every", type=int, default=1, help="run each Nth case only")
    parser.add_argument("--at-least", type=int, default=0, help="fail if fewer cases pass")
    parser.add_argument("--list", action="store_true", help="name the cases that do not pass")
    arguments = parser.parse_args()
    cases = load_cases(arguments)
    outcomes = run_all(arguments, len(cases))
    for case, (outcome, reason) in zip(cases, outcomes):
        if outcome in ("wrong", "error", "crash") or (arguments.list and outcome != "pass"):
            print(f"{outcome}\t{case.name}\t{reason}")
    totals = collections.Counter(outcome for outcome, _ in outcomes)
    print("| " + " | ".join(KINDS) + " |\n|" + "---|" * len(KINDS))
    print("| " + " | ".join(str(totals[kind]) for kind in KINDS) + " |")
    failed = totals["wrong"] + totals["error"] + totals["crash"]
    return 1 if failed or totals["pass"] < arguments.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
