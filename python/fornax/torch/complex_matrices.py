"""Factorizations of complex matrices, and what is solved with them.

Each operator of torch has one of the package's own beside it, with the same arguments, whose complex tensors have a number's
real and imaginary part as a last dimension of two: fornax.complex_linalg_svd for aten._linalg_svd. Fornax has these on the
device; where it refuses one, torch runs it.
"""

import torch

from .complex_parts import pair, rule, view_as_complex

aten = torch.ops.aten
_library = torch.library.Library("fornax", "FRAGMENT")

_OPERATORS = ("_linalg_eigh", "_linalg_svd", "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf", "linalg_cholesky_ex",
              "linalg_householder_product", "linalg_inv_ex", "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_qr",
              "linalg_solve_triangular", "lu_unpack", "orgqr", "ormqr", "triangular_solve")
# Tensors among the arguments and results of these that are not complex.
_REAL = {"pivots", "LU_pivots", "info", "S", "eigenvalues"}


def _geqrf_shapes(x):
    return torch.empty_like(x), x.new_empty((*x.shape[:-2], min(x.shape[-2:])))


# What results are like, where torch does not tell.
_SHAPES = {"geqrf": _geqrf_shapes}


def _each_tensor(schema, args, kwargs, function):
    """The arguments with a function of those that are complex tensors."""
    complex_names = {formal.name for formal in schema.arguments
                     if isinstance(formal.type, torch.TensorType) and formal.name not in _REAL}
    args = [function(value) if formal.name in complex_names else value for formal, value in zip(schema.arguments, args)]
    return args, {name: function(value) if name in complex_names else value for name, value in kwargs.items()}


def _each_result(schema, results, function):
    """The results with a function of those that are complex."""
    if len(schema.returns) == 1:
        return function(results)
    return tuple(result if formal.name in _REAL else function(result) for formal, result in zip(schema.returns, results))


def _add(name):
    operator = getattr(aten, name).default
    schema = operator._schema
    own_name = "complex_" + name.lstrip("_")
    _library.define(str(schema).replace(f"aten::{name}", own_name, 1), tags=(torch.Tag.pt2_compliant_tag,))

    def by(function):
        def call(*args, **kwargs):
            args, kwargs = _each_tensor(schema, args, kwargs, lambda value: torch.view_as_complex(value.contiguous()))
            return _each_result(schema, function(*args, **kwargs),
                                lambda value: torch.view_as_real(value.resolve_conj().contiguous()))

        return call

    _library.impl(own_name, by(operator), "CPU")
    _library.impl(own_name, by(_SHAPES.get(name, operator)), "Meta")

    @rule(f"{name}.default")
    def _in_parts(*args, **kwargs):
        def joined(value):
            value = pair(value)
            return torch.stack([value.real, value.imaginary], -1)

        args, kwargs = _each_tensor(schema, args, kwargs, joined)
        return _each_result(schema, getattr(torch.ops.fornax, own_name)(*args, **kwargs), view_as_complex)


for _name in _OPERATORS:
    _add(_name)
