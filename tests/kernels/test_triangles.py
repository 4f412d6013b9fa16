"""Groups of symmetric matrices against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fastlbm.kernels._jit import kernel
from fastlbm.kernels.triangles import add_pairs, triangle
from fastlbm.kernels.vectors import WIDTH


@kernel
def add(t, s, y, n, d):  # type: ignore[no-untyped-def]
    """For Python."""
    add_pairs(t, 0, s, y, n, 0, d)


@pytest.mark.nojit
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("d", [*range(1, 10), 17])
def test_sums_of_products(d: int, n: int) -> None:
    rng, y, upper = np.random.default_rng(d), triangle(d), np.triu_indices(d)
    t, s = rng.standard_normal((n * d, WIDTH)), np.full((y + n * d, WIDTH), np.nan)
    s[y:] = rng.standard_normal((n * d, WIDTH))
    u, v = t.reshape(n, d, WIDTH), s[y:].reshape(n, d, WIDTH).copy()
    add(t.reshape(-1), s.reshape(-1), y, n, d)
    products = np.einsum("piw,pjw->ijw", u, v)
    wanted = products + products.transpose(1, 0, 2)
    np.testing.assert_allclose(s[:y], wanted[upper], rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(s[y:].reshape(n, d, WIDTH), v)
