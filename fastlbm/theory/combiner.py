"""The Bandit Combiner: owns its constants and its bound; Section 3.3, sec:model_selection, and apx:bc."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._base import validation
from .._base.types import Array
from .bounds import block_length
from .checks import counts, failure_probability, system

#: The exponent of a candidate's regret in the Combiner's rounds: T^(1/2) is of the order of T_bc^(2/3).
ALPHA = 2.0 / 3.0


class CombinerConstants(NamedTuple):
    """What the Bandit Combiner needs to know of its N candidates, see `combiner_constants`."""

    C: Array  #: (N,) a candidate's regret over n rounds is taken to be at most C n^alpha
    R: Array  #: (N,) target regrets over T_bc rounds
    L: NDArray[np.int64]  #: (N,) block lengths without the first m actions
    T_bc: int  #: the largest possible number of rounds
    alpha: float  #: 2/3
    eta: float  #: T_bc^(-2/3)
    reward_range: Array  #: (N,) the cap of the index, rho_j^2 as printed; not scaled
    width: Array  #: (N,) the index adds 4 width / sqrt(n), the discard test 12 width sqrt(n)


def combiner_constants(
    T: int,
    d: int,
    candidates: Iterable[tuple[int, float]],
    L: int | Sequence[int] | None = None,
    lam: float = 1.0,
    delta: float | None = None,
    scale: float = 1.0,
    subgaussian: float = 1.0,
    A0: ArrayLike | None = None,
) -> CombinerConstants:
    """The constants of the Bandit Combiner, Algorithm 2, alg:bc, over N candidates (m_j, gamma_j).

    Equation (29), eq:C_j, and equation (30), eq:regret_cutko. L is the block length of all candidates, a
    sequence with one each, or from `block_length`. T_bc is `ceil(T / shortest block)`, the largest number of
    rounds there can be, so that the confidence levels hold whichever candidates are played; a block has
    m_j + L_j steps, L_j if gamma_j = 0, so that it is the paper's T/(m+L) where all blocks are alike. With
    rho_j at least 1, log = ln(T_bc^3 N/delta), eta = T_bc^(-2/3) and delta = 1/T by default

        C_j = 4 (4 m_j/d)^(1/3) rho_j sqrt(d ln(1 + T_bc (m_j + L_j) rho_j^2/(d lam)))
                  (sqrt(lam) + subgaussian sqrt(ln(1/delta) + d ln(1 + T_bc rho_j^2/(d lam))))
        R_j = (C_j + 5 sqrt(30)/18 C_j^(3/2)) T_bc^(2/3) + 1152 rho_j^2 log T_bc^(1/3) + (N-1) T_bc^(2/3)

    For m_j = 0, where C_j would be 0, sqrt(L_j) takes the place of (4 m_j/d)^(1/3): the first claim of
    Theorem 2, thm:regret_hp, for L_j = 1 the bound of OFUL. `scale` multiplies C_j and the concentration
    width rho_j^2 sqrt(2 log), and R_j is what follows from these: its third term, a squared width, is
    multiplied by scale^2, its last not at all. 1 is the paper. The theorem asks for lam >= 1.

    For m_j >= 1 the paper derives C_j n^(2/3) only for n = T/(m_j + L_j) rounds with the L of Theorem 1;
    for fewer rounds or longer blocks it is the formula, not a bound.

    >>> constants = combiner_constants(T=1200, d=3, candidates=[(0, 0.0), (2, -3.0), (3, -3.0)], L=20)
    >>> constants.T_bc, constants.L, constants.C.round()
    (60, array([20, 20, 20]), array([381., 119., 137.]))
    """
    T, d = validation.integer("T", T, low=1), validation.integer("d", d, low=1)
    m, gamma, rho = _candidates(candidates, d, A0)
    N = len(m)
    lengths = _lengths(L, [block_length(T, d, int(k)) for k in m])
    lam = validation.real("lam", lam, low=0.0, open_low=True)
    failure = float(failure_probability(delta, np.asarray(float(T))))
    scale = validation.real("scale", scale, low=0.0, open_low=True)
    subgaussian = validation.real("subgaussian", subgaussian, low=0.0)

    T_bc = -(-T // int((np.where(gamma == 0.0, 0.0, m) + lengths).min()))
    eta = T_bc**-ALPHA
    growth = np.where(m == 0, np.sqrt(lengths), np.cbrt(4.0 * m / d))
    potential = np.sqrt(d * np.log1p(T_bc * (m + lengths) * rho**2 / (d * lam)))
    noise = np.sqrt(math.log(1.0 / failure) + d * np.log1p(T_bc * rho**2 / (d * lam)))
    C = scale * 4.0 * growth * rho * potential * (math.sqrt(lam) + subgaussian * noise)
    unit = scale * math.sqrt(2.0 * math.log(T_bc**3 * N / failure))
    R = _target_regret(C, rho * unit, N, T_bc, ALPHA, eta)
    return CombinerConstants(
        C=C,
        R=R,
        L=lengths,
        T_bc=T_bc,
        alpha=ALPHA,
        eta=eta,
        reward_range=rho**2,
        width=rho**2 * unit,
    )


def _target_regret(C: Array, width: Array, N: int, T_bc: int, alpha: float, eta: float) -> Array:
    """R_j of equation (30), eq:regret_cutko, for any alpha and one eta; 1152 ln(.) rho^2 is 576 width^2."""
    ratio = (1.0 - alpha) / alpha
    power = ratio**ratio * (1.0 + alpha) ** (1.0 / alpha) * C ** (1.0 / alpha) * T_bc * eta**ratio
    result: Array = C * T_bc**alpha + power + 576.0 * width**2 * T_bc * eta + (N - 1) / eta
    return result


def _candidates(candidates: Iterable[tuple[int, float]], d: int, A0: ArrayLike | None) -> Array:
    """The memory sizes, the exponents and max(1, rho) of distinct candidates, (3, N)."""
    try:
        pairs = [(m, gamma) for m, gamma in candidates]
    except (TypeError, ValueError):
        raise ValueError(f"candidates must be pairs (m, gamma), got {candidates!r}") from None
    systems = [system(d, m, gamma, A0) for m, gamma in pairs]
    if not pairs or len(set(pairs)) < len(pairs):
        raise ValueError(f"candidates must be distinct pairs (m, gamma), at least one, got {pairs!r}")
    rows = zip(systems, pairs, strict=True)
    return np.array([(m, gamma, max(1.0, rho)) for (_, m, rho), (_, gamma) in rows], dtype=np.float64).T


def _lengths(L: int | Sequence[int] | None, default: list[int]) -> NDArray[np.int64]:
    """The block lengths (N,), from theory, one for all, or one each."""
    if L is None:
        return np.array(default, dtype=np.int64)
    lengths = counts("L", L, low=1)
    if lengths.shape not in ((), (len(default),)):
        raise ValueError(f"L must be one integer or one for each of the {len(default)} candidates, got {L!r}")
    return np.broadcast_to(lengths, len(default)).astype(np.int64)


class CombinerBound(NamedTuple):
    """`share * OPT` less the Combiner's expected reward is at most `regret`, see `combiner_regret_bound`."""

    share: float
    regret: float


def combiner_regret_bound(
    T: int, d: int, candidates: Iterable[tuple[int, float]], truth: tuple[int, float]
) -> CombinerBound:
    """Corollary 1 (cor:model_selection) as a number: how far the Bandit Combiner stays behind OPT/sqrt(M).

    `share` is 1/sqrt(M), M = max m_j / min m_j. The paper gives the order of the rest, M d (m+1)^(1 + 3/2
    gamma^+) T^(3/4) for the true (m, gamma); `regret` is its proof with the constants of `combiner_constants`
    at lam = 1, delta = 1/T: with B_j = m_j + L_j, q = min B/max B, and R, B, rho (A0 = I) those of the truth

        min B R + max_j m_j rho T_bc + q m rho T/B + max(0, share - q) rho T + 2 rho

    Lemma 1 on the Combiner's target; the first m_j steps of blocks; Proposition 2; L rounded up; failure.

    >>> combiner_regret_bound(T=10**6, d=3, candidates=[(1, -3.0), (2, -3.0), (4, -3.0)], truth=(2, -3.0))
    CombinerBound(share=0.5, regret=218909370.7119...)
    """
    given = list(candidates) if isinstance(candidates, Iterable) else candidates
    m, gammas, rho = _candidates(given, d, None)
    made, pairs = combiner_constants(T, d, given), [(k, gamma) for k, gamma in given]
    if truth not in pairs or m.min() < 1.0 or (gammas == 0.0).any():
        raise ValueError(
            f"candidates must hold truth = {truth!r} and have m >= 1 and gamma != 0 throughout, got {pairs!r}"
        )
    if (least := int(m.max()) ** 2 * d * d + 1) > T:
        raise ValueError(f"T must be at least max m^2 d^2 + 1 = {least}, got {T}")
    star, blocks = pairs.index(truth), m + made.L
    share, q = math.sqrt(m.min() / m.max()), blocks.min() / blocks.max()
    lost = m.max() * made.T_bc + q * m[star] * T / blocks[star] + max(0.0, share - q) * T + 2.0
    return CombinerBound(share, float(blocks.min() * made.R[star] + rho[star] * lost))
