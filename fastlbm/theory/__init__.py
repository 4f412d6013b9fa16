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

All of it is about the paper's memory, a window and the power. Where a memory fades, `decay` < 1, R holds with
the sum of the weights in the place of m (`reward_bound`). Confidence sets ask only that features are known
before their rewards are, as they are with any `decay` and any `response`. With a finite m every block has
windows of its own as in the paper; its bounds on regret have not been gone through for other weights or other
responses, and `fastlbm` prints none there. With an infinite m no block has: Proposition 2 and all that stands
on it do not apply.

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

Use it to know what the paper promises: how long blocks should be, how wide confidence sets, how large regret.

>>> from fastlbm import theory
>>> theory.block_length(10_000, d=2, m=8)
12
"""

from .bounds import (
    approximation_gap,
    block_length,
    block_regret_bound,
    confidence_radius,
    regret_bound,
    reward_bound,
)
from .combiner import CombinerBound, CombinerConstants, combiner_constants, combiner_regret_bound

__all__ = [
    "CombinerBound",
    "CombinerConstants",
    "approximation_gap",
    "block_length",
    "block_regret_bound",
    "combiner_constants",
    "combiner_regret_bound",
    "confidence_radius",
    "regret_bound",
    "reward_bound",
]
