"""Whether A0 is a multiple of the identity, and which form of the kernels follows from it."""

from __future__ import annotations

import numpy as np
import pytest

from fastlbm.kernels.memory import GRAM_FROM, isotropic_scale, make_memory
from fastlbm.kernels.rewards import make_model_params

pytestmark = pytest.mark.nojit


@pytest.mark.parametrize("c", [0.0, 1e-9, 0.25, 1.0, 3.0])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_multiples_of_the_identity(c: float, d: int) -> None:
    assert isotropic_scale(c * np.eye(d)) == c


@pytest.mark.parametrize(
    "A0", [np.diag([1.0, 2.0]), np.diag([1.0, 1.0 + 1e-15]), np.ones((2, 2)), np.diag([0.0, 1.0])]
)
def test_other_matrices(A0: np.ndarray) -> None:
    assert isotropic_scale(A0) is None


@pytest.mark.parametrize(("c", "gram"), [(GRAM_FROM, True), (0.99 * GRAM_FROM, False), (0.0, False)])
def test_the_gram_form_needs_a_c_that_is_not_small(c: float, gram: bool) -> None:
    A0 = c * np.eye(5)
    memory, form = make_memory(A0, 3, 1.0)
    assert (memory.gram, memory.k) == ((True, 3) if gram else (False, 5))
    assert form is A0
    assert make_memory(A0, 2, 1.0)[1] is (None if gram else A0)
    assert make_model_params(np.ones(5), A0, 3, 1.0).c == (c if gram else 0.0)
