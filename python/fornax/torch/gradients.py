"""Gradients that torch has no decomposition of."""

import math

import torch

from .own_decompositions import aten, own

# --- Attention ---


@own("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None):
    del logsumexp  # The softmax is computed again, from what the forward graph has anyway.
    if dropout_p != 0 or query.dim() != 4 or query.shape[1] % key.shape[1] != 0:
        return NotImplemented
    dtype = query.dtype
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    grad_out, query, key, value, out = (x.to(wide) for x in (grad_out, query, key, value, out))
    # Queries of a group share keys and values.
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ key.mT * scale
    if is_causal:
        rows = torch.arange(query.shape[-2], device=query.device).unsqueeze(-1)
        columns = torch.arange(key.shape[-2], device=query.device)
        scores = torch.where(columns <= rows, scores, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = torch.where(attn_mask, scores, -math.inf)
        else:
            scores = scores + attn_mask
    # Rows that are all masked have no chances.
    greatest = scores.amax(-1, keepdim=True)
    powers = torch.exp(scores - torch.where(greatest == -math.inf, 0.0, greatest))
    total = powers.sum(-1, keepdim=True)
    chances = powers / torch.where(total == 0, 1.0, total)
    by_score = chances * (grad_out @ value.mT - (grad_out * out).sum(-1, keepdim=True)) * scale
    by_key, by_value = (x.unflatten(1, (-1, groups)).sum(2) for x in (by_score.mT @ query, chances.mT @ grad_out))
    return (by_score @ key).to(dtype), by_key.to(dtype), by_value.to(dtype)


# --- Resizing: what is a product with a matrix along each axis has the transposed matrices as its gradient ---


def _nearest(eye, size, _, scale):
    return aten.upsample_nearest1d(eye, [size], scale)


def _nearest_exact(eye, size, _, scale):
    return aten._upsample_nearest_exact1d(eye, [size], scale)


def _linear(eye, size, align_corners, scale):
    return aten.upsample_linear1d(eye, [size], align_corners, scale)


def _cubic(eye, size, align_corners, scale):
    return aten.upsample_bicubic2d(eye.unsqueeze(-1), [size, 1], align_corners, scale, None).squeeze(-1)


def _resized(grad, output_size, input_size, form, align_corners, scales):
    compute = torch.promote_types(grad.dtype, torch.float32)
    result = grad.to(compute)
    for axis, (to, size, scale) in enumerate(zip(output_size, input_size[2:], scales)):
        eye = torch.eye(size, dtype=compute, device=grad.device).unsqueeze(0)
        matrix = form(eye, to, align_corners, scale)[0]
        result = (result.movedim(axis + 2, -1) @ matrix.mT).movedim(-1, axis + 2)
    return result.to(grad.dtype)


def _with_corners(form):
    def gradient(grad_output, output_size, input_size, align_corners, *scales):
        scales = [*scales, *[None] * (len(output_size) - len(scales))]
        return _resized(grad_output, output_size, input_size, form, align_corners, scales)

    return gradient


def _without_corners(form):
    def gradient(grad_output, output_size, input_size, *scales):
        scales = [*scales, *[None] * (len(output_size) - len(scales))]
        return _resized(grad_output, output_size, input_size, form, False, scales)

    return gradient


own("upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_trilinear3d_backward")(
    _with_corners(_linear))
own("upsample_bicubic2d_backward")(_with_corners(_cubic))
own("upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward")(
    _without_corners(_nearest))
own("_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d_backward")(
    _without_corners(_nearest_exact))


@own("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def replication_pad(grad_output, self, padding):
    result = grad_output
    for number in range(len(padding) // 2):
        axis, size = self.dim() - 1 - number, self.shape[self.dim() - 1 - number]
        places = torch.arange(result.shape[axis], device=self.device) - padding[2 * number]
        shape = list(result.shape)
        shape[axis] = size
        result = aten.index_add(result.new_zeros(shape), axis, places.clamp(0, size - 1), result)
    return result


# --- Distances ---


def _by_difference(difference, grad, distance, p):
    """The gradient of a norm of differences by these; `grad` and `distance` lack the last axis."""
    grad, distance = grad.unsqueeze(-1), distance.unsqueeze(-1)
    none = distance == 0
    safe = torch.where(none, 1.0, distance)
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return difference.sign() * grad
    if p == 2:
        return torch.where(none, 0.0, grad * difference / safe)
    if math.isinf(p):
        return torch.where(difference.abs() == distance, difference.sign() * grad, 0.0)
    size = difference.abs()
    powers = torch.where(size == 0, 0.0, torch.where(size == 0, 1.0, size).pow(p - 1))
    return torch.where(none, 0.0, difference.sign() * powers * grad / safe.pow(p - 1))


@own("_cdist_backward")
def cdist(grad, x1, x2, p, cdist):  # pylint: disable=redefined-outer-name
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return _by_difference(difference, grad, cdist, p).sum(-2)


@own("_pdist_backward")
def pdist(grad, self, p, pdist):  # pylint: disable=redefined-outer-name
    first, second = aten.triu_indices(self.shape[0], self.shape[0], 1).unbind(0)
    each = _by_difference(self[first] - self[second], grad, pdist, p)
    return aten.index_add(aten.index_add(torch.zeros_like(self), 0, first, each), 0, second, -each)


__all__ = ["attention"]
