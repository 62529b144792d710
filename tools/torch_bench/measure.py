"""A network measured in one process, which prints a line of JSON.

Usage: python -m tools.torch_bench.measure WHAT OPTIONS

WHAT is a network, or `calls`; OPTIONS is JSON: small, threads, seconds, rounds, warm_up, precisions, only_first (a way of
which the first call alone is measured, behind that of eager torch). Ways to run take turns. What torch imports when it
first compiles anything is loaded before, and not counted. What torch.compile() takes is of the first call.
"""

import collections
import json
import os
import statistics
import sys
import time
import warnings

LEAST_CALLS = 3
# Code that Dynamo writes finds modules by names of the module that the function is of, and only these names are there where it
# is loaded.
assert collections


def busy_seconds():
    """Processor time that the whole machine has spent, and that of this process and of the children that it waited for."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def wrapped(model):
    """A function that calls the model, for torch.compile to keep apart from others."""
    def run(*args, **keywords):
        return model(*args, **keywords)

    run.__code__ = run.__code__.replace()
    return run


def norm_of_difference(actual, expected):
    """Relative to the expected values' norm."""
    actual, expected = actual.double(), expected.double()
    return ((actual - expected).norm() / expected.norm().clamp_min(1e-30)).item()


class Way:
    def __init__(self, network, compile_way):
        self.first_ms = None
        self.times = []
        self._compiling = 0.0  # seconds in torch.compile(), which loads what is kept

        def timed(model):
            begin = time.perf_counter()
            made = compile_way(model)
            self._compiling += time.perf_counter() - begin
            return made

        self.calls = network.calls(timed)

    def first(self):
        """The results of the first calls, in which everything is compiled."""
        spent, results = self._compiling, []
        for _ in range(self.calls.first_calls):
            self.calls.prepare()
            begin = time.perf_counter()
            results.append(self.calls.call())
            spent += time.perf_counter() - begin
        self.first_ms = spent * 1e3
        return [result.clone() for result in results]

    def run_for(self, seconds, is_measured):
        """Calls for a while; the first one is not measured: threads of the way before may still be awake."""
        end = time.perf_counter() + seconds
        count = -1
        while count < LEAST_CALLS or time.perf_counter() < end:
            self.calls.prepare()
            begin = time.perf_counter_ns()
            self.calls.call()
            if count >= 0 and is_measured:
                self.times.append((time.perf_counter_ns() - begin) / 1e6)
            count += 1


def ways_of(torch, fornax_torch, precisions, backends):
    """{name: what makes a callable of a model}, in the order in which they are compiled."""
    def on_fornax(name, precision):
        backends[name] = fornax_torch.Backend(precision=precision)
        return lambda model: torch.compile(wrapped(model), backend=backends[name])

    made = {"eager": lambda model: model}
    for precision in precisions:
        name = "fornax" if precision == "highest" else f"fornax_{precision}"
        made[name] = on_fornax(name, precision)
    # Last, so that it finds the parts of torch that both use loaded.
    made["inductor"] = lambda model: torch.compile(wrapped(model), backend="inductor")
    return made


def first_ways_of(torch, fornax_torch, way, backends):
    """Eager torch and another way. That is one of ways_of(), or what torch does for every backend: `dynamo` makes the graph,
    `aot` also takes it apart. `precompiled` is Fornax with what torch keeps of Dynamo's work, too."""
    parts_of_torch = {"dynamo": "eager", "aot": "aot_eager"}
    every = ways_of(torch, fornax_torch, ["highest"], backends)
    if way == "precompiled":
        backends[way] = fornax_torch.Backend()
        # torch cannot write guards on classes.
        every[way] = lambda model: torch.compile(wrapped(model), backend=backends[way], options={
            "guard_filter_fn": lambda guards: [guard.guard_type != "CLASS_MATCH" for guard in guards]})
    every |= {part: lambda model, name=name: torch.compile(wrapped(model), backend=name)
              for part, name in parts_of_torch.items()}
    return {"eager": every["eager"], way: every[way]}


def measure_network(torch, fornax_torch, name, options):
    from tools.torch_bench.networks import NETWORKS

    torch.manual_seed(11)
    network = NETWORKS[name].make(options["small"])
    backends, ways, errors, expected, differences = {}, {}, {}, None, {}
    every = (first_ways_of(torch, fornax_torch, options["only_first"], backends) if options["only_first"]
             else ways_of(torch, fornax_torch, options["precisions"], backends))
    with torch.set_grad_enabled(False):
        for way, compile_way in every.items():
            try:
                made = Way(network, compile_way)
                results = made.first()
            except Exception as error:  # a way that fails is a hole in the table
                errors[way] = f"{type(error).__name__}: {error}".strip().splitlines()[0]
                continue
            ways[way] = made
            if way == "eager":
                expected = results
            else:
                differences[way] = max(map(norm_of_difference, results, expected))
        if not options["only_first"]:
            for made in ways.values():
                made.run_for(options["warm_up"], is_measured=False)
            (machine, own), begin = busy_seconds(), time.perf_counter()
            for number in range(options["rounds"]):
                order = list(ways.values())
                for made in order if number % 2 == 0 else order[::-1]:
                    made.run_for(options["seconds"] / options["rounds"], is_measured=True)
            machine_after, own_after = busy_seconds()
            # Cores that other processes kept busy meanwhile. Threads that wait for each other suffer most from it.
            others = max(0.0, (machine_after - machine) - (own_after - own)) / (time.perf_counter() - begin)
    return {
        "others_cores": None if options["only_first"] else others,
        "first_ms": {way: made.first_ms for way, made in ways.items()},
        "median_ms": {way: statistics.median(made.times) for way, made in ways.items() if made.times},
        "calls": {way: len(made.times) for way, made in ways.items()},
        "difference": differences, "errors": errors,
        "graphs": {way: backend.segments for way, backend in backends.items()},
        "in_torch": {way: sorted({target for target, _ in backend.fallbacks}) for way, backend in backends.items()},
    }


def measure_calls(torch, fornax_torch, options):
    """What a call of a graph of one kernel takes, in us: a ReLU of 64 elements."""
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(64)

    def relu(x):
        return torch.relu(x)

    with torch.no_grad():
        graph = fornax_torch.Backend(strict=True).compile_graph(make_fx(relu)(x))
        ways = {"eager": relu, "aot_eager": torch.compile(wrapped(relu), backend="aot_eager"),
                "inductor": torch.compile(wrapped(relu), backend="inductor"),
                "fornax": torch.compile(wrapped(relu), backend=fornax_torch.Backend(strict=True)),
                "fornax_graph": lambda x: graph.call([x])}
        times = {}
        for number in range(max(options["rounds"], 2)):
            for way, call in ways.items():
                end = time.perf_counter() + options["warm_up"] / 4
                while time.perf_counter() < end:
                    call(x)
                end = time.perf_counter() + options["seconds"] / options["rounds"]
                while time.perf_counter() < end:
                    begin = time.perf_counter_ns()
                    call(x)
                    times.setdefault(way, []).append((time.perf_counter_ns() - begin) / 1e3)
    return {"median_us": {way: statistics.median(values) for way, values in times.items()}}


def main(what, text):
    options = json.loads(text)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options["threads"]])
    warnings.filterwarnings("ignore")
    import torch
    import torch._inductor.compile_fx

    import fornax.torch as fornax_torch

    torch.set_num_threads(options["threads"])
    torch._dynamo.config.allow_rnn = True
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
    if options["only_first"] == "precompiled":
        torch._dynamo.config.caching_precompile = True
    result = (measure_calls(torch, fornax_torch, options) if what == "calls"
              else measure_network(torch, fornax_torch, what, options))
    if options["only_first"] == "precompiled":
        torch.compiler.save_cache_artifacts()
        result["found"] = torch._dynamo.utils.counters["dynamo_cache"]["dynamo_cache_hit"]
    print(json.dumps({"what": what, "torch": torch.__version__, **result}))


if __name__ == "__main__":
    main(*sys.argv[1:])
