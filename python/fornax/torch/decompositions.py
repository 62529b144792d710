"""Which operators are taken apart before a graph is written: torch's table of core ATen, less what Fornax has whole."""

import torch

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
# With gradients attention has a gradient of its own, which is not there yet.
_ONLY_INFERENCE = {"_scaled_dot_product_flash_attention_for_cpu.default"}


def _overload(name):
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), overload, None)


def without_kept(table, training=False):
    """The table less the operators that stay as they are."""
    table = dict(table)
    for name in _KEPT:
        if not (training and name in _ONLY_INFERENCE):
            table.pop(_overload(name), None)
    return table


def table(training=False):
    """For graphs that torch.compile hands over."""
    return without_kept(torch._decomp.core_aten_decompositions(), training)
