"""Factorizations of complex matrices, and what is solved with them, beside torch.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import functools
import pathlib
import tempfile
import unittest

import torch
from torch import linalg

import fornax
import fornax.torch

TYPES = (torch.complex64, torch.complex128)


def numbers(dtype, *shape, seed=3):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def positive(dtype, *shape):
    x = numbers(dtype, *shape)
    return x @ x.mH + torch.eye(shape[-1])


def compiled(function, strict=True, **options):
    torch._dynamo.reset()
    backend = fornax.torch.Backend(strict=strict, options={"cache": False}, **options)
    return torch.compile(function, backend=backend, fullgraph=True), backend


def tensors_of(results):
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


class ComplexMatrices(unittest.TestCase):
    def same(self, got, wanted, scale=1):
        rtol, atol = {torch.complex64: (5e-4, 5e-5), torch.float32: (5e-4, 5e-5), torch.complex128: (1e-9, 1e-10),
                      torch.float64: (1e-9, 1e-10)}.get(wanted.dtype, (0, 0))
        torch.testing.assert_close(got, wanted, rtol=scale * rtol, atol=scale * atol)

    def check(self, function, *inputs, gradients=False, strict=True):
        call, backend = compiled(function, strict)

        def run(function):
            given = [value.clone().requires_grad_(gradients) for value in inputs]
            with torch.set_grad_enabled(gradients):
                results = function(*given)
            if not gradients:
                return tensors_of(results)
            torch.view_as_real(results + 0j).pow(2).sum().backward()
            return [results.detach(), *(value.grad for value in given)]

        got, wanted = run(call), run(function)
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.same(a, b)
        self.assertEqual(backend.segments > 0, strict)
        return backend

    def check_all(self, functions, *inputs):
        """All functions as one graph."""
        self.check(lambda *given: tuple(result for function in functions for result in tensors_of(function(*given))), *inputs)

    def test_elimination(self):
        for dtype in TYPES:
            a = numbers(dtype, 2, 5, 5)
            a[0, 0, 0] = 0  # without swaps there is no factor
            self.check_all((linalg.lu_factor, linalg.lu, linalg.inv, linalg.det, linalg.slogdet,
                            lambda a: linalg.matrix_power(a, -2), lambda a: linalg.tensorinv(a[0], ind=1)), a)
            for shape in ((4, 3), (3, 4), (2, 1, 6)):
                self.check_all((linalg.lu, lambda x: torch.lu_unpack(*linalg.lu_factor(x))), numbers(dtype, *shape))

    def test_factors_without_permutations(self):
        for dtype in (torch.float64, torch.complex128):
            self.check(lambda x: torch.lu_unpack(*linalg.lu_factor(x), unpack_pivots=False), numbers(dtype, 4, 3))

    def test_pivots_are_those_of_lapack(self):
        # |3 + 3i| < |4.5|, but 3 + 3 > 4.5.
        self.check(linalg.lu_factor, torch.tensor([[4.5, 1 + 1j], [3 + 3j, 1 + 2j]], dtype=torch.complex128))
        self.check(linalg.lu_factor, torch.tensor([[0, 1], [1e-3j, 2]], dtype=torch.complex64))

    def test_systems(self):
        for dtype in TYPES:
            a, b = numbers(dtype, 2, 4, 4), numbers(dtype, 2, 4, 3, seed=4)
            self.check_all((linalg.solve, lambda a, b: linalg.solve(a, b.mT, left=False), lambda a, b: linalg.solve(a[0], b)), a, b)
            self.check_all([functools.partial(lambda a, b, left, adjoint: linalg.lu_solve(
                *linalg.lu_factor(a), b if left else b.mT, left=left, adjoint=adjoint), left=left, adjoint=adjoint)
                for left in (True, False) for adjoint in (True, False)], a, b)

    def test_triangular_systems(self):
        for dtype in TYPES:
            a, b = numbers(dtype, 2, 4, 4), numbers(dtype, 2, 4, 3, seed=4)
            self.check_all([functools.partial(lambda a, b, left, upper, unit: linalg.solve_triangular(
                a, b if left else b.mT, upper=upper, left=left, unitriangular=unit), left=left, upper=upper, unit=unit)
                for left in (True, False) for upper in (True, False) for unit in (True, False)], a, b)
            self.check_all([functools.partial(lambda a, b, **options: torch.triangular_solve(b, a, **options),
                                              upper=upper, transpose=transpose)
                            for upper in (True, False) for transpose in (True, False)], a, b)

    def test_cholesky(self):
        for dtype in TYPES:
            a, b = positive(dtype, 2, 4, 4), numbers(dtype, 2, 4, 3, seed=4)
            a = torch.triu(a) + 5 * torch.tril(a, -1)  # another lower triangle
            for upper in (True, False):
                factor = functools.partial(linalg.cholesky, upper=upper)
                self.check_all((factor, lambda a, factor=factor: factor(a + 30 * torch.eye(4) + 2j * torch.eye(4)),
                                lambda a, factor=factor, upper=upper: torch.cholesky_inverse(factor(a + 30 * torch.eye(4)), upper=upper)),
                               a + 30 * torch.eye(4))
                self.check(lambda a, b, upper=upper: torch.cholesky_solve(b, a, upper=upper), a, b)

    def test_reflections(self):
        for dtype in TYPES:
            for shape in ((4, 4), (2, 5, 3), (3, 5), (1, 1)):
                self.check_all((torch.geqrf, linalg.qr, lambda x: linalg.qr(x, mode="complete"), lambda x: linalg.qr(x, mode="r").R),
                               numbers(dtype, *shape))
            # Columns of zeros, and of one number that is real or imaginary.
            self.check(torch.geqrf, torch.tensor([[2, 2j, 0], [0, 1, 0], [0, 3, -1j]], dtype=dtype))
            x, y = numbers(dtype, 2, 5, 3), numbers(dtype, 2, 5, 4, seed=4)
            self.check(lambda x: linalg.householder_product(*torch.geqrf(x)), x)
            self.check_all([functools.partial(lambda x, y, left, adjoint: torch.ormqr(
                *torch.geqrf(x), y if left else y.mT, left, adjoint), left=left, adjoint=adjoint)
                for left in (True, False) for adjoint in (True, False)], x, y)

    def test_eigenvalues(self):
        def again(x, triangle):
            values, vectors = linalg.eigh(x, UPLO=triangle)
            return values, vectors @ (values[..., None] * vectors.mH), vectors.mH @ vectors

        for dtype in TYPES:
            for shape in ((4, 4), (2, 5, 5), (1, 1)):
                self.check_all((linalg.eigvalsh, *(functools.partial(again, triangle=triangle) for triangle in "LU")),
                               numbers(dtype, *shape))  # only one triangle is read, and of the diagonal real parts
            self.check(functools.partial(linalg.pinv, hermitian=True), positive(dtype, 4, 4))

    def test_vectors_of_values_that_repeat(self):
        # Rounding alone says what is mixed of such vectors.
        for dtype in (torch.float32, torch.float64, *TYPES):
            tolerance = 1000 * torch.finfo(dtype).eps
            for n in (6, 7):
                q = linalg.qr(numbers(dtype, 50, n, n)).Q
                values = torch.tensor([1, -1, 1, 2, 2, -1, -1][:n]).to(q.real.dtype)
                a = q @ (values[:, None] * q.mH)
                a = (a + a.mH) / 2
                values, vectors = compiled(linalg.eigh)[0](a)
                self.assertLess((vectors @ (values[..., None] * vectors.mH) - a).abs().max(), tolerance)
                self.assertLess((vectors.mH @ vectors - torch.eye(n)).abs().max(), tolerance)
                left, values, right = compiled(linalg.svd)[0](q)
                self.assertLess((values - 1).abs().max(), tolerance)
                self.assertLess((left @ right - q).abs().max(), tolerance)
                self.assertLess((right @ right.mH - torch.eye(n)).abs().max(), tolerance)

    def test_singular_values(self):
        def again(x, full):
            left, values, right = linalg.svd(x, full_matrices=full)
            count = values.shape[-1]
            return (values, left[..., :count] @ (values[..., None] * right[..., :count, :]), left.mH @ left,
                    right @ right.mH)

        for dtype in TYPES:
            low = numbers(dtype, 5, 2) @ numbers(dtype, 2, 4)  # of rank 2
            for x in (numbers(dtype, 4, 4), numbers(dtype, 2, 5, 3), numbers(dtype, 2, 6), low * 0):
                self.check_all([linalg.svdvals, *(functools.partial(again, full=full) for full in (True, False))], x)
            self.check_all((linalg.matrix_rank, linalg.pinv), low if dtype == torch.complex128 else numbers(dtype, 5, 3))
            self.check_all((linalg.cond, lambda x: linalg.matrix_norm(x, "nuc"), lambda x: linalg.matrix_norm(x, -2)), numbers(dtype, 4, 4))

    def test_matrices_without_elements(self):
        functions = (linalg.inv, linalg.slogdet, linalg.lu_factor, linalg.cholesky, linalg.qr, linalg.eigvalsh, linalg.svdvals,
                     lambda x: linalg.solve(x, x), linalg.svd, torch.geqrf)
        for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
            with self.subTest(shape=shape):
                def everything(x):
                    return [result for function in functions for result in tensors_of(function(x + 1))]

                x = numbers(torch.complex64, *shape)
                for a, b in zip(compiled(everything)[0](x), everything(x), strict=True):
                    self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
        self.check_all((linalg.qr, linalg.svdvals), numbers(torch.complex64, 3, 0))

    def test_what_torch_raises(self):
        singular = torch.tensor([[1, 1j], [1j, -1]], dtype=torch.complex64)
        for function, good in ((linalg.inv, torch.eye(2) * 2j), (linalg.cholesky, torch.eye(2) + 0j),
                               (lambda a: linalg.solve(a, a), torch.eye(2) * 1j)):
            call = compiled(function)[0]
            with torch.no_grad():
                self.same(call(good), function(good))
                with self.assertRaises(torch.linalg.LinAlgError) as own:
                    call(singular)
                with self.assertRaises(torch.linalg.LinAlgError) as theirs:
                    function(singular)
            self.assertEqual(str(own.exception), str(theirs.exception))

    def test_large_matrices_run_in_torch(self):
        x = numbers(torch.complex64, 2, 50, 50) + 10 * torch.eye(50)
        for function, name in ((linalg.inv, "inv_ex"), (linalg.svdvals, "svd"), (lambda x: linalg.lu_factor(x + 1), "lu_factor_ex")):
            call, backend = compiled(function, strict=False)
            self.same(*(torch.view_as_real(f(x)[0].clone() + 0j) for f in (call, function)), scale=10)
            self.assertRegex(str(backend.fallbacks), f"complex_linalg_{name}.default.*at most 14336")
        # The largest that workgroups hold.
        for dtype, most in ((torch.complex64, 42), (torch.complex128, 29)):
            x = numbers(dtype, 1, most, most) + 10 * torch.eye(most)
            self.check_all((linalg.lu_factor, torch.geqrf), x)

    def test_gradients(self):
        a, b = numbers(torch.complex128, 2, 4, 4), numbers(torch.complex128, 2, 4, 3, seed=4)
        for function in (linalg.inv, linalg.det, lambda a: linalg.cholesky(a @ a.mH), lambda a: linalg.qr(a).R, linalg.svdvals,
                         lambda a: linalg.eigvalsh(a + a.mH), lambda a: linalg.pinv(a[:, :3])):
            self.check(function, a, gradients=True)
        for function in (linalg.solve, lambda a, b: linalg.solve_triangular(a, b, upper=True),
                         lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b)):
            self.check(function, a, b, gradients=True)

    def test_batches_of_open_sizes(self):
        call = compiled(lambda a, b: linalg.solve(a, b), dynamic=True)[0]
        for batch in (2, 3, 5):
            a, b = numbers(torch.complex64, batch, 3, 3), numbers(torch.complex64, batch, 3, 2, seed=4)
            torch._dynamo.mark_dynamic(a, 0)
            torch._dynamo.mark_dynamic(b, 0)
            self.same(call(a, b), linalg.solve(a, b))

    def test_conjugated_and_transposed_arguments(self):
        a, b = numbers(torch.complex64, 4, 4), numbers(torch.complex64, 4, 2, seed=4)
        self.check_all((lambda a, b: linalg.solve(a.mH, b.conj()), lambda a, b: linalg.solve_triangular(a.mH, b, upper=False).mH), a, b)
        self.check(linalg.inv, a.mH)

    def test_exported(self):
        class Inverse(torch.nn.Module):
            def forward(self, x):
                return linalg.inv(torch.complex(x, x.mT)).abs()

        x = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(3))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "inverse.fnx"
            fornax.torch.export(Inverse(), (x,), path)
            self.same(torch.from_numpy(fornax.load(path, cache=False)(x)), Inverse()(x))


if __name__ == "__main__":
    unittest.main()
