"""Linear algebra in terms of factorisations that Fornax has, and losses of products."""

import torch

from .own_decompositions import TABLE, aten, own


def _factor(A):
    # For determinants torch factors what lies in memory column by column; gradients rely on which of both it was.
    transposed = A.is_contiguous() and not A.is_complex()
    return aten.linalg_lu_factor_ex(A.mT if transposed else A)[:2]


def _swaps_sign(lu, pivots):
    rows = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return 1 - 2 * ((pivots != rows).sum(-1) % 2).to(lu.dtype)


@own("_linalg_det")
def linalg_det(A):
    lu, pivots = _factor(A)
    return lu.diagonal(dim1=-2, dim2=-1).prod(-1) * _swaps_sign(lu, pivots), lu, pivots


@own("_linalg_slogdet")
def linalg_slogdet(A):
    lu, pivots = _factor(A)
    diagonal = lu.diagonal(dim1=-2, dim2=-1)
    signs = diagonal.sgn() if A.is_complex() else diagonal.sign()
    return signs.prod(-1) * _swaps_sign(lu, pivots), diagonal.abs().log().sum(-1), lu, pivots


@own("_linalg_solve_ex")
def linalg_solve_ex(A, B, *, left=True, check_errors=False):
    del check_errors
    lu, pivots, info = aten.linalg_lu_factor_ex(A)
    is_vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    result = aten.linalg_lu_solve(lu, pivots, B.unsqueeze(-1) if is_vector else B, left=left)
    return result.squeeze(-1) if is_vector else result, lu, pivots, info


def _pinv(A, atol, rtol, hermitian):
    if hermitian:
        values, vectors = torch.linalg.eigh(A)
        size = values.abs()
        left, right = vectors, vectors.mH
    else:
        left, values, right = torch.linalg.svd(A, full_matrices=False)
        size = values
    greatest = size.amax(-1, keepdim=True)
    bound = torch.maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * greatest)
    inverse = torch.where(size > bound, values.reciprocal(), 0)
    return (right.mH * inverse.unsqueeze(-2)) @ left.mH


def _tolerances(A, atol, rtol):
    if atol is None:
        atol = A.new_zeros((), dtype=A.dtype.to_real())
    if rtol is None:
        default = torch.finfo(A.dtype).eps * max(A.shape[-1], A.shape[-2])
        # An absolute bound that is given replaces the relative one.
        rtol = torch.where(atol > 0, 0.0, default)
    dtype = A.dtype.to_real()
    return atol.to(dtype), rtol.to(dtype)


@own("linalg_pinv.atol_rtol_tensor")
def linalg_pinv(A, *, atol=None, rtol=None, hermitian=False):
    if A.numel() == 0:
        return A.new_zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    return _pinv(A, *_tolerances(A, atol, rtol), hermitian)


@own("linalg_matrix_exp")
def linalg_matrix_exp(A):
    # A Taylor polynomial of A / 2^s, where s keeps the norm below 2, and s squarings, each of which doubles the
    # error: a longer polynomial is more exact than more squarings.
    most = 12
    norm = A.abs().sum(-2).amax(-1)[..., None, None] if A.numel() else A.new_zeros(())
    count = (torch.ceil(torch.log2(torch.clamp(norm, min=2**-20))) - 1).clamp(0, most)
    x = A * torch.exp2(-count)
    identity = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    result = identity
    for i in range(27 if A.dtype in (torch.float64, torch.complex128) else 16, 0, -1):
        result = identity + (x @ result) / i
    for i in range(most):
        result = torch.where(count > i, result @ result, result)
    return result


@own("_trilinear")
def trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=1):
    del unroll_dim
    operands = []
    for operand, expand in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for axis in expand:
            operand = operand.unsqueeze(axis)
        operands.append(operand)
    product = operands[0] * operands[1] * operands[2]
    return product.sum(sumdim, dtype=product.dtype) if sumdim else product


@own("dist")
def dist(self, other, p=2):
    return torch.linalg.vector_norm(self - other, p)


@own("addbmm")
def addbmm(self, batch1, batch2, *, beta=1, alpha=1):
    product = torch.bmm(batch1, batch2)
    product = product.sum(0, dtype=product.dtype)
    if not (self.dtype.is_floating_point or self.is_complex()) and isinstance(alpha, float):
        alpha, beta = int(alpha), int(beta)
    return product * alpha if beta == 0 else self * beta + product * alpha


# --- Losses that torch computes in parts ---


def _weighted(logits, target, weight, reduction, ignore_index):
    """Of each row its class and what its loss counts."""
    ignored = target == ignore_index
    classes = torch.where(ignored, 0, target)
    counts = (~ignored).to(logits.dtype)
    if weight is not None:
        counts = counts * weight.to(logits.dtype)[classes]
    if reduction == "mean":
        counts = counts / counts.sum()
    return classes, counts


def _row_losses(input, linear_weight, linear_bias, target, weight, reduction, ignore_index):  # pylint: disable=redefined-builtin
    logits = torch.nn.functional.linear(input, linear_weight.to(input.dtype),
                                        None if linear_bias is None else linear_bias.to(input.dtype))
    classes, counts = _weighted(logits, target, weight, reduction, ignore_index)
    chances = logits.log_softmax(-1)
    return -chances.gather(-1, classes.unsqueeze(-1)).squeeze(-1) * counts, chances, classes, counts


def linear_cross_entropy(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing,  # pylint: disable=redefined-builtin
                         batch_chunk_size, acc_policy, acc_dtype, allow_retain_graph, compute_input_grad,
                         compute_linear_weight_grad, compute_linear_bias_grad):
    del batch_chunk_size, acc_policy, acc_dtype, allow_retain_graph
    if label_smoothing or input.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    losses, chances, classes, counts = _row_losses(input, linear_weight, linear_bias, target, weight, reduction,
                                                   ignore_index)
    number = torch.arange(chances.shape[-1], device=input.device)
    gradient = (chances.exp() - (number == classes.unsqueeze(-1)).to(chances.dtype)) * counts.unsqueeze(-1)
    return (losses.sum(), gradient @ linear_weight.to(input.dtype) if compute_input_grad else input.new_empty((0, 0)),
            gradient.mT @ input if compute_linear_weight_grad else input.new_empty((0, 0)),
            gradient.sum(0) if compute_linear_bias_grad else input.new_empty((0,)))


def linear_cross_entropy_rows(input, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size,  # pylint: disable=redefined-builtin
                              acc_policy, acc_dtype):
    del batch_chunk_size, acc_policy, acc_dtype
    if input.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    return _row_losses(input, linear_weight, linear_bias, target, weight, "none", ignore_index)[0]


try:
    import torch.nn.modules.linear_cross_entropy  # noqa: F401  pylint: disable=unused-import

    TABLE[torch.ops.torch_nn._linear_cross_entropy_batch_chunked.default] = linear_cross_entropy
    TABLE[torch.ops.torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default] = linear_cross_entropy_rows
except (ImportError, AttributeError):  # versions of torch without these
    pass

__all__ = ["linear_cross_entropy"]
