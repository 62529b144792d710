"""onnxruntime with Fornax as a provider: what the tests of this folder share.

FORNAX_ORT_PROVIDER is the path of libfornax_ort_ep.so, VK_DRIVER_FILES the driver's manifest.
"""

import functools
import os
import sys
from pathlib import Path

import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "graph")]

NAME = "FornaxExecutionProvider"
LIBRARY = os.environ["FORNAX_ORT_PROVIDER"]
QUIET = 3  # errors


@functools.cache
def devices():
    """Registers the library, and gives its devices."""
    onnxruntime.register_execution_provider_library("Fornax", LIBRARY)
    found = [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
    assert found, "onnxruntime finds no device of Fornax."
    return found


def session(model, options=None, config=None, severity=QUIET, **settings):
    """A session with the provider and its options. `model` is a path or bytes, `settings` are attributes of its options."""
    chosen = onnxruntime.SessionOptions()
    chosen.log_severity_level = severity
    chosen.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in (config or {}).items():
        chosen.add_session_config_entry(key, value)
    for name, value in settings.items():
        setattr(chosen, name, value)
    chosen.add_provider_for_devices(devices(), {"cache": "none"} if options is None else options)
    # Without this, onnxruntime's Python makes a session of the CPU provider alone where another one fails.
    return onnxruntime.InferenceSession(str(model) if isinstance(model, Path) else model, chosen, enable_fallback=0)


def reference(model, **settings):
    chosen = onnxruntime.SessionOptions()
    chosen.log_severity_level = QUIET
    for name, value in settings.items():
        setattr(chosen, name, value)
    return onnxruntime.InferenceSession(str(model) if isinstance(model, Path) else model, chosen,
                                        providers=["CPUExecutionProvider"])


def partitions(made):
    """The operators of the nodes of each partition of a session that Fornax has."""
    return [[node.op_type for node in part.get_nodes()] for part in made.get_provider_graph_assignment_info()
            if part.ep_name == NAME]


def others(made):
    """The operators of the nodes that others have."""
    return [node.op_type for part in made.get_provider_graph_assignment_info() if part.ep_name != NAME
            for node in part.get_nodes()]
