"""What the paper proves, as numbers: owns the block lengths, radii, bounds and constants; nothing runs here.

What of the paper the package speaks of, by its label in the paper's source and its number:

| label                | number         | what                                                              |
|----------------------|----------------|-------------------------------------------------------------------|
| sec:model            | Section 2      | rewards: eq:reward (1); memory matrix: eq:A-def (2); OPT:         |
|                      |                | eq:opt_sequence (3)                                               |
| ex:rested            | Example 2      | rotting and rising arms; Example 1 (no label) is stationary       |
| prop:greedy_bad      | Proposition 1  | oracle greedy can have linear regret                              |
| rmk:context          | Remark 1       | a set of actions for each step                                    |
| sec:approx           | Section 3.1    | the proxy reward r~: eq:rwd_lower_bound (4); the best block a~:   |
|                      |                | eq:best_block (5); the bound R of a reward: eq:bound_R (8)        |
| prop:approx_cyclic   | Proposition 2  | what a~ loses when it is played in cycles: eq:approx_cyclic (6)   |
| prop:cyclic_tight    | Proposition 3  | where it loses half of that: eq:approx_cyclic_other (7)           |
| sec:estimation       | Section 3.2    | OM-Block: eq:oful_block (9), eq:est_theta_block (10); OM:         |
|                      |                | eq:est_theta (11), eq:oful_indiv (12), eq:optim_oo (13)           |
| prop:adaptation_exp  | Proposition 4  | regret of OM-Block; prop:adaptation_hp, Proposition 5, with high  |
|                      |                | probability, and its radius eq:big_beta (17)                      |
| thm:regret_exp       | Theorem 1      | regret of OM and O3M, block length; thm:regret_hp, Theorem 2,     |
|                      |                | with high probability, and the radius eq:indiv_beta (18)          |
| rmk:over_opt         | Remark 3       | O3M                                                               |
| cor:model_selection  | Corollary 1    | regret of the Bandit Combiner, Section 3.3, sec:model_selection   |
| alg:OFUL-memory-algo | Algorithm 1    | OM and O3M; their UCBs are in Section 4, sec:algo                 |
| alg:bc               | Algorithm 2    | the Bandit Combiner, by eq:C_j (29) and eq:regret_cutko (30)      |
| sec:more-exp         | Section C      | additional experiments                                            |

Everywhere `rho` bounds the operator norm of a memory matrix over the unit ball: `(m+1)^max(gamma, 0)` for
A0 = I, else `(lambda_max(A0)+m)^gamma` for gamma >= 0 and `lambda_min(A0)^gamma` for gamma < 0;
||theta|| <= 1.

Where the paper disagrees with itself, or leaves something open, and what is used:

| place                | the paper                                       | used                              |
|----------------------|-------------------------------------------------|-----------------------------------|
| block length         | Algorithm 1: sqrt(m/4d) T^(1/4) - m, unrounded; | the theorem's, at least 1; m = 0  |
|                      | Theorem 1: ceil(sqrt(m/d) T^(1/4)) - m          | gives 1                           |
| ... of OM-Block      | no formula, only that the regret is then of     | ceil((m/d)^(2/5) T^(1/5)) - m, at |
|                      | order T^(4/5)                                   | least 1                           |
| radius, (18)         | counts tau features though V_tau holds tau L    | tau L, or ln det V/det(lam I)     |
| radius, (17)         | the noise of one reward for a sum of L rewards  | sqrt(L) times that noise          |
| radius, tau = 0      | Algorithm 1: 0; equation (18): larger           | equation (18)                     |
| noise                | 1-sub-Gaussian, in the experiments sigma = 0.1  | a factor `subgaussian`, 1         |
| OM-Block's dimension | d (m+L), d L in Section C                       | d (m+L)                           |
| OM/O3M's argmax      | a sum over i = 1..L                             | the windows m+1..m+L              |
| O3M's bonus          | the sum over j is missing                       | the sum                           |
| R, (8)               | (m+1)^max(gamma, 0), whatever A0                | rho times the norm of theta       |
| Proposition 2, proof | every step has m actions of the set before it   | m+L steps earn <= m R + r~(a~)    |
| horizon              | divisible by the length of a block              | any T, the last block is cut      |
| m = 0, L = 1         | "exactly" the bound of OFUL; it is smaller (for | the paper's                       |
|                      | lam = 1 by at most sqrt(2))                     |                                   |
| Combiner: index      | C_i / sqrt(T(i)) though alpha = 2/3             | C_i T(i)^(alpha-1)                |
| ... discard          | C_i T(i)^gamma_i                                | C_i T(i)^alpha                    |
| ... widths           | rho^2 in the algorithm; R_j holds the square of | both as printed: at least rho, as |
|                      | a width, yet also with rho^2                    | rho >= 1                          |
| ... horizon          | T and T_bc mixed; T_bc = T/(m+L) of the true m, | T_bc = ceil(T/the shortest block) |
|                      | which is unknown                                | throughout; L_j if gamma_j = 0    |
| ... first play       | 0/0 = 0, so that Delta begins with minus that  | as printed                        |
|                      | reward                                          |                                   |
| ... candidate m = 0  | C_j = 0                                         | Theorem 1 with m = 0              |
| ... mean reward      | over L in the algorithm, over m+L in the        | over L                            |
|                      | analysis                                        |                                   |

The regret bounds stay true with the corrected radii, so they are as printed. Their proofs replace
`min(2 L rho, 2 c beta x)` by `2 L rho beta min(1, x)` where `2 max(L rho, c beta) min(1, x)` would do
(c = sqrt(L) rho for OM and O3M, 1 for OM-Block). That spare factor of sqrt(L) pays for the counting of
features, since ln(1 + L y) <= L ln(1 + y), and for the noise of a block. A cut last block is covered as
well: it costs at most 2 R (m+L), and Theorem 1 pays the approximation twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._base import validation
from ._base.validation import Array
from .model.memory_matrix import check_memory_matrix

ALGORITHMS = ("O3M", "OM", "OM-Block")

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
    m = _memory(m)
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
    n = _counts("samples", samples, low=0)
    d, m, rho = _system(d, m, gamma, A0)
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
        volume = _reals("log_det_ratio", log_det_ratio)
        if (volume < 0.0).any():
            raise ValueError(f"log_det_ratio must be >= 0, got {volume.min()}")
    return _plain(norm * (subgaussian * np.sqrt(2.0 * math.log(1.0 / delta) + volume) + math.sqrt(lam)))


def reward_bound(m: float, gamma: float, A0: ArrayLike | None = None, theta_norm: float = 1.0) -> float:
    """R, no expected reward is larger in absolute value; equation (8), eq:bound_R, for any A0.

    `(m+1)^max(gamma, 0) ||theta||` for A0 = I (the paper's), else `(lambda_max(A0)+m)^gamma ||theta||`
    for gamma >= 0 and `lambda_min(A0)^gamma ||theta||` for gamma < 0. m may be `math.inf`.

    >>> reward_bound(m=2, gamma=-3.0), reward_bound(m=2, gamma=2.0)
    (1.0, 9.0)
    >>> reward_bound(m=2, gamma=1.0, A0=[[1.0, 0.0], [0.0, 0.0]], theta_norm=0.5)
    1.5
    """
    m = validation.memory("m", m, allow_inf=True)
    d = max((1, *np.asarray(A0, dtype=object).shape[:1]))
    theta_norm = validation.real("theta_norm", theta_norm, low=0.0)
    _, rho = check_memory_matrix(A0, d, m, validation.real("gamma", gamma))
    return rho * theta_norm if theta_norm else 0.0


def approximation_gap(T: ArrayLike, m: int, L: ArrayLike, R: float) -> float | Array:
    """OPT less the reward of the best block of m+L played in cycles, at most.

    Proposition 2, prop:approx_cyclic: `2 m R T/(m+L)`, for T divisible by m+L; a cut last block of c actions
    adds at most 2 R c. T and L may be arrays, broadcast against each other.

    >>> approximation_gap(T=1200, m=2, L=[10, 20, 40], R=1.0).round(1)
    array([400. , 218.2, 114.3])
    """
    steps, length, m = _counts("T", T, low=1), _counts("L", L, low=1), _memory(m)
    return _plain(2.0 * m * validation.real("R", R, low=0.0) * steps / (m + length))


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
    steps, length = _counts("T", T, low=1), _counts("L", L, low=1)
    d, m, rho = _system(d, m, gamma, A0)
    rho = max(1.0, rho)
    lam = validation.real("lam", lam, low=1.0)
    failure = _failure(delta, steps)
    subgaussian = validation.real("subgaussian", subgaussian, low=0.0)
    block = m + length
    log_T, log_blocks = (np.log1p(n * rho * rho / (d * lam)) for n in (steps, steps / block))
    if validation.choice("algorithm", algorithm, ALGORITHMS) == "OM-Block":
        potential, prior, volume = log_blocks, np.sqrt(lam * length), d * block * log_blocks
    else:
        potential, prior, volume = log_T, np.sqrt(lam), d * log_blocks
    radius = prior + subgaussian * np.sqrt(np.log(1.0 / failure) + volume)
    bound = 4.0 * length * rho * np.sqrt(steps * d * potential) * radius
    return _plain(bound + failure * 2.0 * length * rho * steps / block if expected else bound)


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
    steps = _counts("T", T, low=1)
    d, m, rho = _system(d, m, gamma, A0)
    rho = max(1.0, rho)
    lam = validation.real("lam", lam, low=1.0)
    failure = _failure(delta, steps)
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
    return _plain(bound + failure * 2.0 * rho * steps if expected else bound)


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
    failure = float(_failure(delta, np.asarray(float(T))))
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


def _ceil_root(q: int, power: int) -> int:
    """The smallest integer k >= 0 with k^power >= q, by bisection in exact integers."""
    low, high = 0, 1 << (q.bit_length() // power + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**power >= q else (middle + 1, high)
    return low


def _memory(m: int) -> int:
    """A finite memory size."""
    return int(validation.memory("m", m, allow_inf=False))


def _system(d: int, m: int, gamma: float, A0: ArrayLike | None) -> tuple[int, int, float]:
    """d and m, checked, and rho."""
    d, m = validation.integer("d", d, low=1), _memory(m)
    gamma = validation.real("gamma", gamma)
    # Without A0 the bound does not depend on d: spare the identity matrix.
    return d, m, check_memory_matrix(A0, 1 if A0 is None else d, m, gamma)[1]


def _candidates(candidates: Iterable[tuple[int, float]], d: int, A0: ArrayLike | None) -> Array:
    """The memory sizes, the exponents and max(1, rho) of distinct candidates, (3, N)."""
    try:
        pairs = [(m, gamma) for m, gamma in candidates]
    except (TypeError, ValueError):
        raise ValueError(f"candidates must be pairs (m, gamma), got {candidates!r}") from None
    systems = [_system(d, m, gamma, A0) for m, gamma in pairs]
    if not pairs or len(set(pairs)) < len(pairs):
        raise ValueError(f"candidates must be distinct pairs (m, gamma), at least one, got {pairs!r}")
    rows = zip(systems, pairs, strict=True)
    return np.array([(m, gamma, max(1.0, rho)) for (_, m, rho), (_, gamma) in rows], dtype=np.float64).T


def _lengths(L: int | Sequence[int] | None, default: list[int]) -> NDArray[np.int64]:
    """The block lengths (N,), from theory, one for all, or one each."""
    if L is None:
        return np.array(default, dtype=np.int64)
    lengths = _counts("L", L, low=1)
    if lengths.shape not in ((), (len(default),)):
        raise ValueError(f"L must be one integer or one for each of the {len(default)} candidates, got {L!r}")
    return np.broadcast_to(lengths, len(default)).astype(np.int64)


def _reals(name: str, value: ArrayLike) -> Array:
    """A finite number or array of them, as an array (of shape () for a number)."""
    # As objects first: ragged or other strange input meets the messages of `validation`.
    given = np.asarray(value, dtype=object)
    if given.ndim == 0:
        return np.asarray(validation.real(name, given.item()))
    return validation.array(name, value, (None,) * given.ndim)


def _counts(name: str, value: ArrayLike, low: int) -> Array:
    """An integer >= low or an array of them, as floats."""
    result = _reals(name, value)
    wrong = (result < low) | (result != np.floor(result))
    if wrong.any():
        raise ValueError(f"{name} must be an integer >= {low}, got {result[wrong].flat[0]:g}")
    return result


def _failure(delta: float | None, T: Array) -> Array:
    """The probability delta, 1/T by default."""
    if delta is None:
        return 1.0 / T
    return np.asarray(validation.real("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True))


def _plain(value: Array | float) -> float | Array:
    """A float instead of an array of shape ()."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)


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
    m, rho = _candidates(given, d, None)
    made, pairs = combiner_constants(T, d, given), [(k, gamma) for k, gamma in given]
    if truth not in pairs or m.min() < 1.0:
        raise ValueError(f"candidates must hold truth = {truth!r} and have m >= 1 throughout, got {pairs!r}")
    if (least := int(m.max()) ** 2 * d * d + 1) > T:
        raise ValueError(f"T must be at least max m^2 d^2 + 1 = {least}, got {T}")
    star, blocks = pairs.index(truth), m + made.L
    share, q = math.sqrt(m.min() / m.max()), blocks.min() / blocks.max()
    lost = m.max() * made.T_bc + q * m[star] * T / blocks[star] + max(0.0, share - q) * T + 2.0
    return CombinerBound(share, float(blocks.min() * made.R[star] + rho[star] * lost))
