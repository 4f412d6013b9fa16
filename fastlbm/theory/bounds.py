"""Block lengths, confidence radii and regret bounds: own the formulas of Sections 3.1 and 3.2."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._base import validation
from .._base.types import Array
from ..kernels.fading import total_weight
from ..model.memory_matrix import check_memory_matrix
from .checks import counts, failure_probability, finite_memory, plain, reals, system

ALGORITHMS = ("O3M", "OM", "OM-Block")


def block_length(T: int, d: int, m: int, algorithm: str = "O3M") -> int:
    """The number L of actions that count in a block of m+L; Theorem 1, thm:regret_exp.

    `ceil(sqrt(m/d) T^(1/4)) - m`, and `ceil((m/d)^(2/5) T^(1/5)) - m` for OM-Block (balances Proposition 5,
    prop:adaptation_hp, with Proposition 2, prop:approx_cyclic), at least 1; m = 0 gives 1. The roots are
    exact, in integers.

    >>> block_length(T=10**6, d=3, m=2), block_length(T=10**6, d=3, m=2, algorithm="OM-Block")
    (24, 12)
    >>> block_length(T=81 * 10**16, d=9, m=1) == 10**4 - 1                # where T^(1/4) is exact
    True
    """
    T, d = validation.integer("T", T, low=1), validation.integer("d", d, low=1)
    m = finite_memory(m)
    power = 5 if validation.choice("algorithm", algorithm, ALGORITHMS) == "OM-Block" else 4
    # The smallest k with k^power d^2 >= m^2 T.
    return max(1, _ceil_root(-(-m * m * T // (d * d)), power) - m)


def confidence_radius(
    samples: ArrayLike,
    d: int,
    m: int,
    gamma: float,
    lam: float = 1.0,
    delta: float = 0.01,
    subgaussian: float = 1.0,
    log_det_ratio: ArrayLike | None = None,
    algorithm: str = "O3M",
    L: int | None = None,
    A0: ArrayLike | None = None,
) -> float | Array:
    """The radius beta, corrected: equation (18), eq:indiv_beta, and for OM-Block (17), eq:big_beta.

    `samples` counts the features in V: tau L of them for O3M and OM (the paper says tau), the tau blocks
    for OM-Block. With n = samples and `subgaussian` the factor of the noise of one reward,

        O3M, OM    subgaussian sqrt(2 ln(1/delta) + d ln(1 + n rho^2/(d lam))) + sqrt(lam)
        OM-Block   sqrt(L) subgaussian sqrt(2 ln(1/delta) + D ln(1 + n (m + L rho^2)/(D lam))) + sqrt(lam L)

    where D = d(m+L). The sqrt(L) before the noise is not in equation (17): OM-Block learns from sums of L
    rewards, and a sum of L noises is sqrt(L) sub-Gaussian; equation (17) also bounds (m + L rho^2)/(m+L) by
    rho^2. With `log_det_ratio` = ln det V/det(lam I) that takes the place of the d ln(...), which bounds
    it. `samples` and `log_det_ratio` may be arrays; OM-Block needs L.

    >>> round(confidence_radius(samples=200, d=3, m=2, gamma=-3.0), 3)
    5.675
    >>> round(confidence_radius(samples=200, d=3, m=2, gamma=-3.0, log_det_ratio=7.5), 3)
    5.088
    >>> round(confidence_radius(samples=10, d=3, m=2, gamma=-3.0, algorithm="OM-Block", L=20), 3)
    50.513
    """
    n = counts("samples", samples, low=0)
    d, m, rho = system(d, m, gamma, A0)
    lam = validation.real("lam", lam, low=0.0, open_low=True)
    delta = validation.real("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    subgaussian = validation.real("subgaussian", subgaussian, low=0.0)
    norm, size, dimension = 1.0, rho * rho, d
    if validation.choice("algorithm", algorithm, ALGORITHMS) == "OM-Block":
        if L is None:
            raise ValueError('L must be given for algorithm="OM-Block", got None')
        L = validation.integer("L", L, low=1)
        # ||theta|| of the concatenated model and the noise of a sum of L rewards grow alike.
        norm, size, dimension = math.sqrt(L), m + L * rho * rho, d * (m + L)
    if log_det_ratio is None:
        volume = dimension * np.log1p(n * size / (dimension * lam))
    else:
        volume = reals("log_det_ratio", log_det_ratio)
        if (volume < 0.0).any():
            raise ValueError(f"log_det_ratio must be >= 0, got {volume.min()}")
    return plain(norm * (subgaussian * np.sqrt(2.0 * math.log(1.0 / delta) + volume) + math.sqrt(lam)))


def reward_bound(
    m: float, gamma: float, A0: ArrayLike | None = None, theta_norm: float = 1.0, decay: float = 1.0
) -> float:
    """R, no expected reward is larger in absolute value; equation (8), eq:bound_R, for any A0.

    `(m+1)^max(gamma, 0) ||theta||` for A0 = I (the paper's), else `(lambda_max(A0)+m)^gamma ||theta||`
    for gamma >= 0 and `lambda_min(A0)^gamma ||theta||` for gamma < 0. m may be `math.inf`. Where the memory
    fades the sum of the weights takes the place of m, `(1 - decay^m)/(1 - decay)`: no eigenvalue of the sum
    of weighted a a^T is above it, and the same action again and again comes to it.

    >>> reward_bound(m=2, gamma=-3.0), reward_bound(m=2, gamma=2.0)
    (1.0, 9.0)
    >>> reward_bound(m=2, gamma=1.0, A0=[[1.0, 0.0], [0.0, 0.0]], theta_norm=0.5)
    1.5
    >>> reward_bound(m=math.inf, gamma=2.0, decay=0.5)
    9.0
    """
    m, decay = validation.memory("m", m, allow_inf=True), validation.decay(decay)
    d = max((1, *np.asarray(A0, dtype=object).shape[:1]))
    theta_norm = validation.real("theta_norm", theta_norm, low=0.0)
    _, rho = check_memory_matrix(A0, d, total_weight(m, decay), validation.real("gamma", gamma))
    return rho * theta_norm if theta_norm else 0.0


def approximation_gap(T: ArrayLike, m: int, L: ArrayLike, R: float) -> float | Array:
    """OPT less the reward of the best block of m+L played in cycles, at most.

    Proposition 2, prop:approx_cyclic: `2 m R T/(m+L)`, for T divisible by m+L; a cut last block of c actions
    adds at most 2 R c. T and L may be arrays, broadcast against each other.

    >>> approximation_gap(T=1200, m=2, L=[10, 20, 40], R=1.0).round(1)
    array([400. , 218.2, 114.3])
    """
    steps, length, m = counts("T", T, low=1), counts("L", L, low=1), finite_memory(m)
    return plain(2.0 * m * validation.real("R", R, low=0.0) * steps / (m + length))


def block_regret_bound(
    T: ArrayLike,
    d: int,
    m: int,
    gamma: float,
    L: ArrayLike,
    lam: float = 1.0,
    delta: float | None = None,
    algorithm: str = "O3M",
    subgaussian: float = 1.0,
    A0: ArrayLike | None = None,
    expected: bool = False,
) -> float | Array:
    """The regret against the best block over T/(m+L) blocks, at most, with probability 1 - delta.

    O3M and OM: the first claim of Theorem 2, thm:regret_hp; OM-Block: Proposition 5, prop:adaptation_hp;
    lam >= 1.

        O3M, OM    4 L rho sqrt(T d ln(1 + x)) (sqrt(lam) + sqrt(ln(1/delta) + d ln(1 + x/(m+L))))
        OM-Block   4 L rho sqrt(T d ln(1 + x/(m+L)))
                       (sqrt(lam L) + sqrt(ln(1/delta) + d (m+L) ln(1 + x/(m+L))))

    where x = T rho^2/(d lam), and rho is at least 1; `subgaussian` multiplies the root with delta. As
    printed, and true for the radii of `confidence_radius` (see the top of this module). delta is 1/T by
    default. `expected=True` bounds the expected regret: it adds delta times the largest regret that
    there is, 2 L rho T/(m+L). T and L may be arrays, broadcast against each other.

    >>> round(block_regret_bound(T=1200, d=3, m=2, gamma=-3.0, L=20))
    58688
    >>> round(block_regret_bound(T=1200, d=3, m=2, gamma=-3.0, L=20, algorithm="OM-Block"))
    154161
    """
    steps, length = counts("T", T, low=1), counts("L", L, low=1)
    d, m, rho = system(d, m, gamma, A0)
    rho = max(1.0, rho)
    lam = validation.real("lam", lam, low=1.0)
    failure = failure_probability(delta, steps)
    subgaussian = validation.real("subgaussian", subgaussian, low=0.0)
    block = m + length
    log_T, log_blocks = (np.log1p(n * rho * rho / (d * lam)) for n in (steps, steps / block))
    if validation.choice("algorithm", algorithm, ALGORITHMS) == "OM-Block":
        potential, prior, volume = log_blocks, np.sqrt(lam * length), d * block * log_blocks
    else:
        potential, prior, volume = log_T, np.sqrt(lam), d * log_blocks
    radius = prior + subgaussian * np.sqrt(np.log(1.0 / failure) + volume)
    bound = 4.0 * length * rho * np.sqrt(steps * d * potential) * radius
    return plain(bound + failure * 2.0 * length * rho * steps / block if expected else bound)


def regret_bound(
    T: ArrayLike,
    d: int,
    m: int,
    gamma: float,
    lam: float = 1.0,
    delta: float | None = None,
    algorithm: str = "O3M",
    subgaussian: float = 1.0,
    A0: ArrayLike | None = None,
    expected: bool = False,
) -> float | Array:
    """OPT less the reward collected with L = `block_length`, at most, with probability 1 - delta.

    O3M and OM, for T >= m^2 d^2 + 1: the second claim of Theorem 2, thm:regret_hp, with x = T rho^2/(d lam)

        4 sqrt(d (m+1)) rho T^(3/4) [1 + 2 sqrt(ln(1+x)) (sqrt(lam/d) + sqrt(ln(1/delta)/d + ln(1+x)))]

    OM-Block, for T >= m+1: Proposition 5, prop:adaptation_hp, and 4 m rho T/(m+L), as in the proof of that
    theorem. m = 0: `block_regret_bound` with L = 1 for all of them. lam, delta, rho, `subgaussian` as
    there; `expected=True` adds delta times the largest regret, 2 rho T. T may be an array and need not
    be divisible by m+L.

    >>> round(regret_bound(T=10**6, d=3, m=2, gamma=-3.0))
    13206287
    >>> round(regret_bound(T=10**6, d=3, m=0, gamma=0.0))
    202810
    """
    steps = counts("T", T, low=1)
    d, m, rho = system(d, m, gamma, A0)
    rho = max(1.0, rho)
    lam = validation.real("lam", lam, low=1.0)
    failure = failure_probability(delta, steps)
    subgaussian = validation.real("subgaussian", subgaussian, low=0.0)
    by_blocks = validation.choice("algorithm", algorithm, ALGORITHMS) == "OM-Block"
    least = m + 1 if by_blocks else m * m * d * d + 1
    if (steps < least).any():
        condition = "m + 1" if by_blocks else "m^2 d^2 + 1"
        raise ValueError(f"T must be at least {condition} = {least} for {algorithm}, got {steps.min():.0f}")
    if m == 0 or by_blocks:
        L = np.array([block_length(int(t), d, m, algorithm) for t in steps.flat]).reshape(steps.shape)
        bound = block_regret_bound(steps, d, m, gamma, L, lam, delta, algorithm, subgaussian, A0)
        bound = bound + 4.0 * m * rho * steps / (m + L)
    else:
        log_T = np.log1p(steps * rho * rho / (d * lam))
        radius = math.sqrt(lam / d) + subgaussian * np.sqrt(np.log(1.0 / failure) / d + log_T)
        bound = 4.0 * math.sqrt(d * (m + 1)) * rho * steps**0.75 * (1.0 + 2.0 * np.sqrt(log_T) * radius)
    return plain(bound + failure * 2.0 * rho * steps if expected else bound)


def _ceil_root(q: int, power: int) -> int:
    """The smallest integer k >= 0 with k^power >= q, by bisection in exact integers."""
    low, high = 0, 1 << (q.bit_length() // power + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**power >= q else (middle + 1, high)
    return low
