"""Samples of torch's own operator tests through Fornax, beside torch.

    python3 opinfo.py [--every N --seed S | --part K/N] [--dtype float32 ...] [--ops REGEX] [--most N] [--gradients]
                      [--verbose]

Each sample is traced and handed to the backend, as torch.compile would; its results are compared with
torch's, and those of 16 bits that differ with torch's of f32: they may be as far from them as torch's own. With --gradients,
gradients of inputs are compared too. A sample counts as of the device if no node of its
graphs was left to torch. Samples that cannot be traced,
because what they do depends on data, and those that give other results each time are not counted. PYTHONPATH has the
package, VK_DRIVER_FILES is the driver's manifest.

A whole run can be made in parts, in several processes and at other times: `--part 0/10`, `--part 1/10`, ... `--part 9/10` with
the same other options test each sample once, and the sums of their counts are those of the whole. A sample has the same
values in each of them.
"""

import argparse
import collections
import itertools
import random
import re
import sys
import time
import warnings

import numpy
import torch
from torch._functorch.aot_autograd import aot_module_simplified
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree

import fornax
import fornax.torch
from fornax.torch import decompositions

TOLERANCES = {torch.float32: (2e-4, 2e-5), torch.float64: (1e-7, 1e-8), torch.float16: (2e-2, 2e-3),
              torch.bfloat16: (5e-2, 1e-2), torch.complex64: (2e-4, 2e-5), torch.complex128: (1e-7, 1e-8)}
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Which of several equal elements they name is not said.
AMBIGUOUS = {torch.topk, torch.kthvalue, torch.mode, torch.median, torch.sort, torch.argsort}
# Errors are in proportion to the greatest element of a matrix; torch's own tests compare with an absolute bound, too. It is
# in units of that element.
OF_MATRICES = {"matrix_exp": 1e-5}
# torch rounds each product to 16 bits before it adds them: errors are in proportion to the greatest one. Those of matrix_exp,
# a chain of products, are in proportion to the greatest element of a matrix.
STEPS_OF_SUMS = {"addbmm": 1, "nn.functional.bilinear": 1, "matrix_exp": 16}
# At poles, which whole numbers are, torch gives what rounding leaves of a division by zero.
WITH_POLES = {"polygamma", "special.polygamma"}
# Vectors have either sign, or are any of a space: torch's tests say what of them is compared.
FACTORS = {"svd", "linalg.svd", "linalg.eigh", "linalg.eig", "svd_lowrank", "pca_lowrank"}


def tensors_of(value):
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def flat_function(entry, sample):
    """A function of the sample's tensors alone, and these."""
    operator = entry.op
    process = sample.output_process_fn_grad if entry.name in FACTORS else lambda value: value
    leaves, structure = _pytree.tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors):
        given = list(leaves)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        args, kwargs = _pytree.tree_unflatten(given, structure)
        return tuple(tensors_of(process(operator(*args, **kwargs))))

    return function, [leaves[place].detach().requires_grad_(leaves[place].requires_grad) for place in places]


def with_gradients(function, tensors):
    """What a function of tensors gives, and the gradients of those that have one."""
    if not any(tensor.requires_grad for tensor in tensors):
        with torch.no_grad():
            return tuple(function(*tensors))
    results = tuple(function(*tensors))
    ends = [result for result in results if result.requires_grad]
    starts = [tensor for tensor in tensors if tensor.requires_grad]
    if not ends:
        return results
    generator = torch.Generator().manual_seed(5)
    seeds = [torch.randn(end.shape, generator=generator, dtype=end.dtype) for end in ends]
    gradients = torch.autograd.grad(ends, starts, seeds, allow_unused=True)
    return (*(result.detach() for result in results), *(value for value in gradients if value is not None))


def _wide(values):
    return [value.to(torch.complex64) if value.dtype == torch.complex32 else value for value in values]


def same(left, right):
    left, right = _wide(left), _wide(right)
    return len(left) == len(right) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(left, right))


def compare(got, wanted, of_matrix=0):
    """What differs, or None. `of_matrix` is the error allowed in the first result, in units of a matrix's greatest element."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for place, (a, b) in enumerate(zip(got, wanted)):
        rtol, atol = TOLERANCES.get(b.dtype, (0, 0))
        if of_matrix and place == 0 and b.dtype == torch.float32 and a.shape == b.shape and b.numel() > 0:
            a, b = (value / b.abs().amax((-2, -1), keepdim=True) for value in (a, b))
            atol = of_matrix
        try:
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())
    return None


def without_poles(values):
    """What is too large to be a value of a function at a whole number, as an infinity of its sign."""
    return [torch.where(value.abs() > 1e12, torch.copysign(torch.full_like(value, torch.inf), value), value)
            if value.is_floating_point() else value for value in values]


def no_further(function, tensors, got, wanted, steps=0):
    """Whether results of 16 bits are nowhere further from those of f32 than torch's furthest element is, or than so many steps
    of the type at the greatest element."""
    narrow = (torch.float16, torch.bfloat16)
    if len(got) != len(wanted) or not any(value.dtype in narrow for value in wanted):
        return False
    try:
        exact = with_gradients(function, [
            tensor.detach().float().requires_grad_(tensor.requires_grad) if tensor.dtype in narrow else tensor
            for tensor in tensors])
    except Exception:  # pylint: disable=broad-except
        return False
    for ours, theirs, reference in zip(got, wanted, exact):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape or reference.shape != theirs.shape:
            return False
        if theirs.dtype not in narrow:
            if compare([ours], [theirs]) is not None:
                return False
        elif theirs.isnan().any() and not reference.isnan().any():
            # torch's has no distance: matrix_exp of 16 bits of several matrices is not a number.
            greatest = reference.abs().amax(tuple(range(reference.dim()))[-2:], keepdim=True)
            if not (ours.isclose(reference.to(ours.dtype)) |
                    ((ours - reference).abs() <= steps * torch.finfo(ours.dtype).eps * greatest)).all():
                return False
        elif theirs.numel() > 0:
            of_type = steps * torch.finfo(theirs.dtype).eps * reference.abs().max()
            if not (ours - reference).abs().max() <= torch.maximum((theirs - reference).abs().max(), of_type):
                return False
    return True


def in_torch(traced, tensors):
    """What the graph that Fornax gets gives in torch."""
    def compiler(module, _):
        def run(arguments):
            return module(*arguments)

        run._boxed_call = True
        return run

    training = any(tensor.requires_grad for tensor in tensors)
    with torch.set_grad_enabled(training):
        run = aot_module_simplified(traced, tensors, fw_compiler=compiler, bw_compiler=compiler,
                                    decompositions=decompositions.table(own=False))
    return with_gradients(run, tensors)


def run_sample(entry, sample):
    """("device" | "mixed" | "wrong" | "decomposed" | "skipped", why)."""
    operator = entry.op
    if entry.name in UNINITIALISED:
        return "skipped", "its result is what was in memory"
    function, tensors = flat_function(entry, sample)
    if not tensors or any(tensor.layout != torch.strided or tensor.is_quantized for tensor in tensors):
        return "skipped", "no strided tensors"
    training = any(tensor.requires_grad for tensor in tensors)
    copies = lambda: [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in tensors]  # noqa: E731
    torch.manual_seed(1)
    try:
        wanted = with_gradients(function, copies())
        again = with_gradients(function, copies())
    except Exception as error:  # pylint: disable=broad-except
        return "skipped", f"torch: {error}"
    if any(tensor.layout != torch.strided for tensor in wanted):
        return "skipped", "no strided tensors"
    if not same(wanted, again):
        return "skipped", "it is random"
    try:
        with torch.no_grad():
            traced = make_fx(function, tracing_mode="fake")(*copies())
    except Exception as error:  # pylint: disable=broad-except
        return "skipped", f"not traced: {type(error).__name__}"
    if any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in traced.graph.nodes):
        return "skipped", "it is random"
    if operator in AMBIGUOUS and tensors[0].dtype not in (torch.float32, torch.float64):
        return "skipped", "it chooses among equal elements"
    backend = fornax.torch.Backend(options={"cache": False}, dynamic=False)
    with torch.set_grad_enabled(training):
        run = backend(traced, copies())
    got = with_gradients(run, copies())
    if entry.name in WITH_POLES and not tensors[0].is_floating_point():
        got, wanted = without_poles(got), without_poles(wanted)
    difference = compare(got, wanted, OF_MATRICES.get(entry.name, 0))
    if difference is not None and not no_further(
            function, copies(), got, wanted, STEPS_OF_SUMS.get(entry.name, 0)):
        of_graph = in_torch(traced, copies())
        if same(of_graph, got):
            return "decomposed", "torch's own decomposition gives the same other numbers"
        if len(of_graph) != len(wanted) and compare(got, of_graph) is None:
            return "skipped", "traced without gradients it is another function, which has none"
        return "wrong", difference
    if backend.fallbacks:
        return "mixed", "; ".join(sorted({f"{target}: {reason}" for target, reason in backend.fallbacks}))
    return "device", ""


def part_of(text):
    """(K, N) of "K/N"."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not int(match[1]) < int(match[2]):
        raise argparse.ArgumentTypeError(
            f"a part is K/N, two whole numbers with K less than N, as 0/10 is the first of ten; it is {text!r}.")
    return int(match[1]), int(match[2])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, help="one of so many samples by chance; by default all")
    parser.add_argument("--seed", type=int, help="of --every")
    parser.add_argument("--part", type=part_of, metavar="K/N",
                        help="the samples whose running number, over all operators and types of the run, is K modulo N")
    parser.add_argument("--dtype", nargs="*", default=["float32"])
    parser.add_argument("--ops", default="", help="operators whose names match")
    parser.add_argument("--most", type=int, default=1 << 30, help="samples of an operator")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--gradients", action="store_true", help="with those of operators that have any")
    parser.add_argument("--least-device", type=float, default=0, help="the share of samples that must be of the device")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.part is not None and not (options.every is options.seed is None):
        parser.error("--part takes samples in their order, --every and --seed by chance: give one of them.")
    options.every = 1 if options.every is None else options.every
    if options.every < 1:
        parser.error(f"--every is at least 1; it is {options.every}.")
    return options


def chooser(options):
    """A function that says of one sample after the other whether the run has it."""
    if options.part is not None:
        part, parts = options.part
        numbers = itertools.count()
        return lambda: next(numbers) % parts == part
    choose = random.Random(1 if options.seed is None else options.seed)
    return lambda: choose.randrange(options.every) == 0


def main():
    options = parse()
    warnings.filterwarnings("ignore")
    is_chosen = chooser(options)
    counts = collections.Counter()
    reasons = collections.Counter()
    wrong = []
    not_traced = 0
    start = time.monotonic()
    for dtype in (getattr(torch, name) for name in options.dtype):
        for operator in op_db:
            if not re.search(options.ops, operator.name) or dtype not in operator.dtypes:
                continue
            if options.gradients and (not operator.supports_autograd or dtype not in operator.backward_dtypes):
                continue
            # Values are the same whatever was run before.
            torch.manual_seed(1)
            random.seed(1)
            numpy.random.seed(1)
            try:
                samples = list(operator.sample_inputs("cpu", dtype, requires_grad=options.gradients))
            except Exception:  # pylint: disable=broad-except
                if options.part is None or is_chosen():
                    counts["no samples"] += 1
                continue
            chosen = [(number, sample) for number, sample in enumerate(samples[:options.most]) if is_chosen()]
            for number, sample in chosen:
                if time.monotonic() - start > options.seconds:
                    break
                name = f"{operator.name}.{operator.variant_test_name} {dtype} {number}"
                try:
                    result, why = run_sample(operator, sample)
                except (DataDependentOutputException, DynamicOutputShapeException):
                    result, why = "skipped", "it depends on data"  # a graph break of torch.compile
                except Exception as error:  # pylint: disable=broad-except
                    result, why = "error", f"{type(error).__name__}: {error}"
                counts[result] += 1
                not_traced += why.startswith("not traced")
                if result in ("wrong", "error"):
                    wrong.append(name)
                    print(f"{result}: {name}: {why[:400]}", flush=True)
                elif result != "device":
                    for part in why.split("; "):
                        reasons[part[:160]] += 1
                    if options.verbose:
                        print(f"{result}: {name}: {why[:200]}", flush=True)
    counted = counts["device"] + counts["mixed"] + counts["wrong"] + counts["error"]
    for reason, count in reasons.most_common(40):
        print(f"{count:6} {reason}")
    share = counts["device"] / max(counted, 1)
    part = "" if options.part is None else f"part {options.part[0]}/{options.part[1]}: "
    print(f"{part}{dict(counts)}: {counted} counted, {counts['device']} ({100 * share:.1f} %) on the device, "
          f"{len(wrong)} wrong, {not_traced} not traced, {time.monotonic() - start:.0f} s")
    if wrong or counted == 0 or share < options.least_device:
        sys.exit(1)


if __name__ == "__main__":
    main()
