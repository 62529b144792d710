"""What the package takes apart itself: linear algebra, complex numbers, special functions, gradients; beside torch.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import pathlib
import tempfile
import unittest

import torch
from torch import nn

import fornax
import fornax.torch


def symmetric(*shape):
    x = torch.randn(*shape)
    return x @ x.mT + torch.eye(shape[-1])


class TakenApart(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(3)

    def check(self, function, *inputs, gradients=False):
        backend = fornax.torch.Backend(strict=True, options={"cache": False})
        compiled = torch.compile(function, backend=backend, fullgraph=True)

        def run(call):
            given = [value.clone().requires_grad_(gradients and value.is_floating_point()) for value in inputs]
            with torch.set_grad_enabled(gradients):
                results = call(*given)
            if gradients:
                results.sum().backward()
                return [value.grad for value in given if value.grad is not None]
            return results

        torch.testing.assert_close(run(compiled), run(function), rtol=5e-4, atol=5e-5, equal_nan=True)
        self.assertGreater(backend.segments, 0)

    def test_bools_that_are_reduced(self):
        x, index = torch.rand(6, 5) < 0.5, torch.randint(0, 6, (9, 5))
        updates = torch.rand(9, 5) < 0.5
        functions = [lambda x, index, updates, how=how, own=own: x.scatter_reduce(0, index, updates, how, include_self=own)
                     for how in ("sum", "prod", "amin", "amax") for own in (True, False)]
        for function in (*functions, lambda *given: torch.scatter_add(given[0], 0, *given[1:]),
                         lambda *given: torch.scatter(given[0], 0, *given[1:], reduce="multiply")):
            torch._dynamo.reset()
            self.check(function, x, index, updates)

    def test_parts_and_angles(self):
        self.check(lambda x: (torch.narrow_copy(x, 1, -3, 2), torch.angle(x), torch.angle(x > 0), torch.angle(x[:, :3].to(torch.int64))),
                   torch.tensor([[-1.5, 0.0, -0.0, torch.nan, torch.inf, -torch.inf, 2.0]]))

    def test_linear_systems(self):
        a, b = torch.randn(2, 5, 5), torch.randn(2, 5, 3)
        for function in (torch.linalg.solve, lambda a, b: torch.linalg.solve(a, b.mT, left=False),
                         lambda a, _: torch.linalg.inv(a), lambda a, _: torch.linalg.det(a),
                         lambda a, _: torch.linalg.slogdet(a)[1], lambda a, b: torch.linalg.lu_factor(a)[0] @ b):
            torch._dynamo.reset()
            self.check(function, a, b)
        for function in (torch.linalg.solve, lambda a, _: torch.linalg.inv(a), lambda a, _: torch.linalg.det(a),
                         lambda a, _: torch.linalg.slogdet(a)[1]):
            torch._dynamo.reset()
            self.check(function, a, b, gradients=True)
            torch._dynamo.reset()
            self.check(function, a.mT.contiguous().mT, b, gradients=True)

    def test_factorisations(self):
        for function, a in ((torch.linalg.cholesky, symmetric(2, 4, 4)), (torch.linalg.qr, torch.randn(2, 5, 3)),
                            (torch.linalg.eigvalsh, symmetric(7, 7)), (torch.linalg.svdvals, torch.randn(3, 4, 9)),
                            (torch.linalg.pinv, torch.randn(5, 3)), (torch.linalg.matrix_exp, torch.randn(4, 4))):
            torch._dynamo.reset()
            self.check(function, a)

    def test_exponentials_are_as_exact_as_torchs(self):
        # What is left of larger numbers is as exact as these, so the greatest of a matrix is the measure.
        x = torch.rand(200, 5, 5, generator=torch.Generator().manual_seed(1)) * 18 - 9
        exact = torch.linalg.matrix_exp(x.double())
        compiled = torch.compile(torch.linalg.matrix_exp, fullgraph=True,
                                 backend=fornax.torch.Backend(strict=True, options={"cache": False}))

        def errors(result):
            return ((result - exact).abs().amax((1, 2)) / exact.abs().amax((1, 2))).sort().values

        ours, theirs = errors(compiled(x)), errors(torch.linalg.matrix_exp(x))
        self.assertLess(ours[100], 1.5 * theirs[100])
        self.assertLess(ours[-1], 2 * theirs[-1])

    def test_a_singular_matrix_raises_what_torch_raises(self):
        backend = fornax.torch.Backend(strict=True, options={"cache": False})
        compiled = torch.compile(torch.linalg.inv, backend=backend, fullgraph=True)
        with torch.no_grad():
            torch.testing.assert_close(compiled(2 * torch.eye(3)), torch.eye(3) / 2)
            with self.assertRaisesRegex(torch.linalg.LinAlgError, "singular|zero"):
                compiled(torch.zeros(3, 3))

    def test_complex_numbers(self):
        x, z = torch.randn(3, 16), torch.randn(3, 15, dtype=torch.complex64)
        for function, given in ((lambda x: torch.fft.rfft(x).abs(), x), (torch.fft.fft2, x), (torch.fft.ifft, z),
                                (lambda z: torch.fft.irfft(z, norm="ortho"), z),
                                (lambda z: (z * (1 + 2j) - z.conj()) / (z + 3), z),
                                (lambda z: torch.view_as_real(torch.cat([z, z.flip(0)])), z)):
            torch._dynamo.reset()
            self.check(function, given)

    def test_views_of_complex_numbers(self):
        z = torch.randn(3, 4, dtype=torch.complex64)
        for function in (lambda z: torch.as_strided_copy(z, (2, 2), (1, 2), 1), lambda z: z[:, :1].expand(3, 5),
                         lambda z: torch.addbmm(z[:, :3], z[None], z.T[None], beta=0.6, alpha=0.2)):
            torch._dynamo.reset()
            self.check(function, z)

    def test_functions_of_complex_numbers(self):
        z = torch.randn(3, 5, dtype=torch.complex128, generator=torch.Generator().manual_seed(3))
        z[0, 0], z[0, 1], z[0, 2] = 0, -2, 3j  # at a branch point, on a cut and beside it
        mask = torch.arange(5) > 2
        functions = [torch.sqrt, lambda z: (z * 5e307).sqrt() * 1e-154, lambda z: z[1:].log2(), lambda z: (z + 4).rsqrt(), lambda z: z ** 3, lambda z: z ** (0.3 + 1j),
                     lambda z: 2.5 ** z, lambda z: z ** z.real, lambda z: z[0] ** -z.real[1].abs(), torch.sin, torch.cos, torch.sinh, torch.cosh,
                     lambda z: torch.linalg.vector_norm(z, 3, 1), lambda z: torch.dist(z, z.flip(0)), torch.prod,
                     lambda z: z.prod(1), lambda z: z[:, :0].prod(1), lambda z: z.cumprod(1), lambda z: z.var(1, correction=0),
                     lambda z: torch.std_mean(z, 0), lambda z: torch.addcmul(z, z, z[1], value=2 - 1j),
                     lambda z: torch.lerp(z, z[0], 0.25), lambda z: torch.baddbmm(z[0, 0], z[None], z.T[None], beta=1j, alpha=2),
                     lambda z: z.logical_not(), lambda z: z.all(1), lambda z: torch.logical_xor(z, z.real),
                     lambda z: z.masked_fill(mask, 1 - 3j), lambda z: torch.full_like(z, 2j), lambda z: z.masked_scatter(mask, z),
                     lambda z: torch.zeros_like(z).copy_(z.real), lambda z: nn.functional.pad(z[None], (2, 1), mode="reflect")]
        for function in functions:
            torch._dynamo.reset()
            self.check(function, z)

    def test_inverse_and_hyperbolic_functions_of_complex_numbers(self):
        z = 2 * torch.randn(4, 9, dtype=torch.complex128, generator=torch.Generator().manual_seed(3))
        z[0] = torch.tensor([0, 0.5, -0.5, 1 + 1j, 1e-9 + 1e-9j, -30 + 1j, 30 - 1j, 0.2j, 400 + 2j])
        for function in (torch.asin, torch.acos, torch.atan, torch.asinh, torch.acosh, torch.atanh, torch.tan, torch.tanh, torch.exp2,
                         torch.log1p, torch.sigmoid, nn.functional.silu, lambda z: torch.logaddexp(z, z[1])):
            torch._dynamo.reset()
            self.check(function, z)

    def test_inverse_functions_beside_their_cuts(self):
        z = torch.tensor([complex(real, imaginary) for real in (-3, 3) for imaginary in (0.0, -0.0)], dtype=torch.complex128)
        for function in (torch.sqrt, torch.asin, torch.acos, torch.acosh, torch.atanh):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=fornax.torch.Backend(strict=True, options={"cache": False}), fullgraph=True)
            got = compiled(z)
            # What is at the cut is near what is beside it, on the side that the sign of zero tells.
            beside = function(torch.complex(z.real, z.imag + torch.copysign(torch.full((4,), 1e-9).double(), z.imag)))
            torch.testing.assert_close(got, beside, rtol=1e-7, atol=1e-7)

    def test_complex_numbers_in_parts(self):
        z = torch.randn(4, 4, dtype=torch.complex64)
        for function in (lambda z: torch.linalg.slogdet(z).logabsdet, torch.logdet, torch.linalg.pinv,
                         lambda z: torch.linalg.pinv(z @ z.mH, hermitian=True), lambda z: torch.logaddexp(z, z[0]),
                         lambda z: torch.ldexp(z, z.real.round()), lambda z: z.logcumsumexp(1)):
            torch._dynamo.reset()
            compiled = torch.compile(function, backend=fornax.torch.Backend(options={"cache": False}))
            torch.testing.assert_close(compiled(z), function(z), rtol=5e-4, atol=5e-5)

    def test_special_functions(self):
        x = torch.cat([torch.linspace(-4.3, 6.1, 40), torch.tensor([0.0, 1.0, -2.0, float("inf"), float("nan")])])
        functions = [torch.lgamma, torch.digamma, lambda x: torch.polygamma(2, x), torch.special.i0e, torch.special.i1,
                     torch.special.bessel_j0, torch.special.bessel_y1, torch.special.modified_bessel_k0,
                     torch.special.erfcx, torch.special.log_ndtr, lambda x: torch.erfinv(x / 7),
                     lambda x: torch.special.ndtri(x / 7), lambda x: torch.special.chebyshev_polynomial_u(x / 3, 5)]
        for function in functions:
            torch._dynamo.reset()
            self.check(function, x)

    def test_numbers_that_are_none(self):
        x = torch.tensor([0.5, -1.0, 3.0])
        self.check(lambda x: torch.where(x > 0, x, float("nan")), x)
        self.check(lambda x: x.masked_fill(x > 2, float("nan")) + 1, x)

    def test_sums_keep_their_type(self):
        self.check(torch.addbmm, *(torch.randint(-3, 3, shape, dtype=torch.int32) for shape in ((2, 4), (3, 2, 5), (3, 5, 4))))
        torch._dynamo.reset()
        self.check(nn.functional.bilinear, *(torch.randint(-3, 3, shape, dtype=torch.int8)
                                             for shape in ((4, 3), (4, 2), (5, 3, 2))))

    def test_orders_and_histograms(self):
        x = torch.randn(4, 9)
        for function in (lambda x: x.median(1), lambda x: x.kthvalue(3, 1), lambda x: x.cummax(1),
                         lambda x: x.logcumsumexp(1), lambda x: torch.histc(x, 6, -2, 2),
                         lambda x: torch.histc(x, 5, 1, 1), lambda x: torch.histc(x * 0 + 3, 4),
                         lambda x: torch.histc(x.bfloat16() * 20, 100), lambda x: torch.histc(x[:, :0], 4, 2, 2),
                         lambda x: torch.histogram(x.flatten(), 5)[0],
                         lambda x: torch.searchsorted(x[0], x[1], sorter=x[0].argsort()),
                         lambda x: nn.functional.adaptive_max_pool2d(x[None], (3, 4))):
            torch._dynamo.reset()
            self.check(function, x)

    def test_gradients(self):
        images = torch.randn(2, 4, 6, 6)
        layer = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
        for function in (layer, lambda x: nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
                         lambda x: nn.functional.interpolate(x, size=(9, 5), mode="bicubic"),
                         lambda x: nn.functional.pad(x, (2, 1, 1, 0), mode="replicate"),
                         lambda x: nn.functional.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True),
                         lambda x: nn.functional.scaled_dot_product_attention(x, x[:, :2], x[:, 1:3], enable_gqa=True),
                         lambda x: torch.cdist(x[0, 0], x[1, 1]),
                         lambda x: nn.functional.adaptive_max_pool2d(x, (2, 4)).pow(2)):
            torch._dynamo.reset()
            self.check(function, images, gradients=True)

    def test_exported(self):
        class Spectrum(nn.Module):
            def forward(self, x):
                return torch.fft.rfft(x).abs() @ torch.linalg.inv(torch.eye(9) * 2 + 0.1)

        model = Spectrum()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "spectrum.fx"
            fornax.torch.export(model, (torch.randn(2, 16),), path)
            x = torch.randn(2, 16)
            torch.testing.assert_close(torch.from_numpy(fornax.load(path, cache=False)(x)), model(x), rtol=2e-4,
                                       atol=2e-5)


if __name__ == "__main__":
    unittest.main()
