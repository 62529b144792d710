"""Which operators are taken apart before a graph is written: torch's table of core ATen, less what Fornax has whole."""

import functools

import torch

from . import gradients, linear_algebra, own_decompositions, special_functions

assert gradients and linear_algebra and special_functions  # They register their own.

# Overloads that Fornax has as one operator each, and that are faster so.
_KEPT = [
    "_scaled_dot_product_flash_attention_for_cpu.default", "addcdiv.default", "addcmul.default", "elu.default",
    "glu.default", "hardsigmoid.default", "hardswish.default", "mish.default", "silu.default", "softplus.default",
    "upsample_bicubic2d.default", "upsample_bicubic2d.vec", "upsample_bilinear2d.default", "upsample_bilinear2d.vec",
    "upsample_linear1d.default", "upsample_linear1d.vec", "upsample_nearest1d.default", "upsample_nearest1d.vec",
    "upsample_nearest2d.default", "upsample_nearest2d.vec", "upsample_nearest3d.default", "upsample_nearest3d.vec",
    "upsample_trilinear3d.default", "upsample_trilinear3d.vec", "baddbmm.default", "lerp.Scalar", "lerp.Tensor",
    "masked_fill.Scalar", "masked_fill.Tensor", "linalg_vector_norm.default",
    "reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default",
    "replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default",
]


def _overload(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload, None)


def with_own(table):
    return {**table, **own_decompositions.TABLE}


def without_kept(table):
    """The table less the operators that stay as they are."""
    table = dict(table)
    for name in _KEPT:
        table.pop(_overload(name), None)
    return table


@functools.cache
def _table(own):
    torchs = torch._decomp.core_aten_decompositions()  # half a second: it looks at all operators that there are
    return without_kept(with_own(torchs) if own else torchs)


def table(own=True):
    """For graphs that torch.compile hands over: torch's decompositions, and those of this package."""
    return dict(_table(own))
