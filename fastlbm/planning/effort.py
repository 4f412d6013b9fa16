"""Effort: owns how hard the ball and sets of arms are searched, one named preset for each purpose.

How good they are is measured in bench/README.md (blocks and cycles) and by bench/learners.py (episodes).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..kernels.arm_beams import KINDS
from ..kernels.arm_grounds import RoundEffort
from ..kernels.arm_prefixes import MOST
from ..kernels.arm_search import ArmEffort
from ..kernels.arm_spans import spans_pay
from ..kernels.lanes import LANES
from ..kernels.memory import Memory
from ..kernels.powers import GENERAL
from ..kernels.search import Effort
from ..kernels.singles import SINGLES

#: No limit on the evaluations.
UNLIMITED = 2**62

#: A block from nothing, the default of `plan_block`; `cold_block` adds its moves.
COLD_BLOCK = Effort(starts=32, cycles=4, moves=0, ticks=300, polish=1200, tolerance=1e-7, limit=UNLIMITED)
#: A block that starts from the one before, after one more block of data: `plan_block` with `previous`.
WARM_BLOCK = Effort(starts=3, cycles=0, moves=0, ticks=60, polish=240, tolerance=1e-4, limit=UNLIMITED)
#: A cycle of one period, of which `best_cycle` tries many.
CYCLE = Effort(starts=32, cycles=0, moves=40, ticks=300, polish=1200, tolerance=1e-7, limit=UNLIMITED)

#: Searches for one cold block when d <= m: more actions in a window than directions, more local maxima.
SEARCHES = 3

# Inside an episode thousands of plans are made, each soon followed by a better informed one.
#: The first plan of an episode.
FIRST = Effort(starts=7, cycles=0, moves=0, ticks=60, polish=0, tolerance=1e-4, limit=UNLIMITED)
#: A later plan, which starts from the block before.
LATER = Effort(starts=3, cycles=0, moves=0, ticks=40, polish=0, tolerance=1e-4, limit=UNLIMITED)
#: With `switch` only a few plans are made, and each is repeated many times: blocks of up to 48 actions.
RARE = Effort(starts=8, cycles=2, moves=16, ticks=150, polish=300, tolerance=1e-5, limit=UNLIMITED)
#: The same for longer blocks.
RARE_AND_LONG = Effort(
    starts=32, cycles=4, moves=100, ticks=300, polish=1200, tolerance=1e-6, limit=UNLIMITED
)


class RollingEffort(NamedTuple):
    """How hard a rolling learner searches."""

    longest: int  # period of the cycles that are tried
    patience: int  # steps for which one more period is tried
    thrifty: bool  # no period is tried beyond that
    cycle: Effort  # for each of them
    steps: Effort  # for the actions that lead into the cycle


def rolling_effort(d: int, m: int, rare: bool = False) -> RollingEffort:
    """The effort of `Rolling`, measured by bench/learners.py: long memories have long cycles, hard to find.

    Rare plans, which are kept for long, try cycles that are twice as long.

    >>> rolling_effort(3, m=2).longest
    18
    """
    hard = m >= 3 or d <= m
    cycle = Effort(
        starts=4,
        cycles=0,
        moves=16 if hard else 8,
        ticks=60 if hard else 40,
        polish=0,
        tolerance=1e-4,
        limit=UNLIMITED,
    )
    return RollingEffort(
        longest=(12 if rare else 6) * (m + 1),
        patience=4 if hard else 30,
        thrifty=False,
        cycle=cycle,
        steps=cycle._replace(starts=3, moves=0, ticks=30 if hard else 15),
    )


#: Of a step of `Auto`: what the search for cycles may take, in seconds, at d up to 3, up to 8, and beyond,
#: where what leads into the cycle takes most of the time.
AUTO_SEARCH = (30e-6, 120e-6, 25e-6)


def auto_effort(d: int, m: int) -> RollingEffort:
    """The effort of `Auto`, which keeps up with 5,000 steps a second at d=3 and 1,000 at d=16, whatever m.

    A period that is tried takes about a quarter of `most_seconds` (measured).

    >>> auto_effort(3, m=2).patience, auto_effort(16, m=5).patience > auto_effort(16, m=2).patience
    (30, True)
    """
    effort = rolling_effort(d, m)
    if d > 2 * m:
        easy = rolling_effort(d, m=1)
        effort = effort._replace(cycle=easy.cycle, steps=easy.steps._replace(starts=2))
    seconds = 0.25 * most_seconds(effort.cycle, effort.longest // 2, d, m)
    allowed = AUTO_SEARCH[(d > 3) + (d > 8)] * (3.0 if 3 < d <= m else 1.0)
    return effort._replace(patience=max(effort.patience, int(seconds / allowed)), thrifty=True)


def most_seconds(effort: Effort, n: int, d: int, m: int) -> float:
    """About how long a search for n actions may take at the most; far less is usual.

    What a window costs is measured by `python -m bench kernels`: 50 ns at d=3, m=2, a microsecond at d=50.

    >>> most_seconds(COLD_BLOCK, 22, d=3, m=2) < 0.1 < most_seconds(COLD_BLOCK, 22, d=200, m=5)
    True
    """
    ascents = effort.starts + effort.moves + LANES * effort.cycles
    window = 60e-9 * (1.0 + d * m / 6.0) + 4e-9 * min(d, m) ** 3
    return (ascents * effort.ticks + effort.polish) * n * window


def cold_block(n: int, m: int) -> Effort:
    """COLD_BLOCK for n actions: long blocks and long memories have more places to go wrong.

    >>> cold_block(22, m=2).moves
    126
    """
    return COLD_BLOCK._replace(moves=(m + 1) * (n + 20))


def spectrum_seconds(d: int) -> float:
    """About how long `numpy.linalg.eigh` takes for a matrix of size d (measured), what plans are compared to.

    >>> spectrum_seconds(5) < spectrum_seconds(32) < 1e-4
    True
    """
    return 0.7e-6 + 0.07e-6 * d * d


def arm_seconds(d: int) -> float:
    """What a cold plan on arms may take: less than ten thousand spectra, less what climbs take to their end.

    >>> 0.01 < arm_seconds(5) < arm_seconds(32) < 1.0
    True
    """
    return max(8e3 * spectrum_seconds(d) - 6e-3, 3e3 * spectrum_seconds(d))


def cold_arms(memory: Memory, K: int, *, bonus: bool) -> ArmEffort:
    """The effort of a block of K arms from nothing, the default of `plan_block`.

    >>> import numpy as np
    >>> from fastlbm.kernels.memory import make_memory
    >>> cold_arms(make_memory(np.eye(16), 4, -2.0)[0], K=200, bonus=True).visits > 1000
    True
    """
    visits = max(int(arm_seconds(memory.d) / _visit_seconds(memory, K, bonus)), 200)
    cycles = 5 if visits > 1500 else 3
    return ArmEffort(
        cycles=cycles, cycle_visits=visits // (2 * cycles), starts=4, visits=visits // 2, candidates=4
    )


def rolling_arms(memory: Memory, K: int, *, bonus: bool, warm: bool) -> ArmEffort:
    """The effort of `Rolling` on K arms for one plan, a few milliseconds; with `warm` it has a plan before.

    >>> import numpy as np
    >>> from fastlbm.kernels.memory import make_memory
    >>> rolling_arms(make_memory(np.eye(16), 4, -2.0)[0], K=200, bonus=True, warm=True).cycles
    0
    """
    visits = min(max(int(4e-3 / _visit_seconds(memory, K, bonus)), 40), 200)
    return ArmEffort(cycles=0 if warm else 3, cycle_visits=visits // 2, starts=2, visits=visits, candidates=4)


def _visit_seconds(memory: Memory, K: int, bonus: bool) -> float:
    """About how long it takes to look at a position of a block of K arms (measured).

    Windows of m actions, whose powers cost more if they are no roots, and d^2 products for each arm, twice as
    many with a `bonus`.
    """
    d, m, general = memory.d, memory.m, memory.power.kind == GENERAL
    window = 0.16 * m**3 * (4.0 if general else 1.0)
    arm = 2.5e-3 + 6e-5 * d * d * (2.0 if bonus else 1.0)
    return (1.2 + window + 0.045 * d * d + K * arm) * 1e-6


def wide_arms(memory: Memory, K: int, n: int, *, bonus: bool) -> ArmEffort:
    """The effort of a block of n arms of one large set from nothing, the default of `plan_block`.

    About ten thousand spectra of size d at the most: `python -m bench arms` measures it.

    >>> import numpy as np
    >>> from fastlbm.kernels.memory import make_memory
    >>> effort = wide_arms(make_memory(np.eye(16), 4, -2.0)[0], K=2000, n=24, bonus=True)
    >>> effort.pool, 5 <= effort.few <= 9, effort.visits > 4000
    (192, True, True)
    """
    # What is done around a search takes more than a millisecond.
    budget, pool = 8.2e3 * spectrum_seconds(memory.d) - 2e-3, 192
    visit, all_arms = _step_seconds(memory, min(K, pool), bonus), _step_seconds(memory, K, bonus)
    few = 2
    while few < min(K, 20) and _few_seconds(memory, few + 1, n, bonus) <= 0.012 * budget:
        few += 1
    program = _few_seconds(memory, few, n, bonus)
    visits = max(int(budget / visit), 400)
    return ArmEffort(
        cycles=0,
        cycle_visits=int(0.4 * visits),
        starts=8 if visits > 1000 else 4,
        visits=visits,
        candidates=4,
        pool=pool,
        few=few if program <= 0.1 * budget else 0,
        few_visits=int((program + 2 * _between_seconds(memory, n)) / visit) + n // 3,
        wide=all_arms / visit,
    )


#: States and steps of a dynamic program of few arms at the most: 32 MB.
_FEW_VALUES = 4e6
#: Prefixes of a beam at the most: more are too many for the cache, and short blocks need fewer.
_WIDEST = 1024


def round_arms(d: int, m: int, K: int, n: int, *, poles: int, bonus: bool) -> RoundEffort:
    """The effort of a block of n arms of one large set from nothing where poles serve, see `arm_rounds`.

    Less than ten thousand spectra of size d at the most: `python -m bench arms` measures it.

    >>> effort = round_arms(16, 4, K=2000, n=24, poles=2, bonus=True)
    >>> effort.budget < 1e4 * spectrum_seconds(16), 6 <= effort.few <= 16
    (True, True)
    """
    # What is done around the search takes more than a millisecond, and sorting arms one for a thousand.
    spectra = 7e3 if spans_pay(d, m) else 7.7e3
    budget = max(spectra * spectrum_seconds(d) - 1.5e-3 - 1e-6 * K, 3e3 * spectrum_seconds(d))
    few = 2
    while few < min(K, 24):
        seconds, values = program_seconds(few + 1, m, n, bonus), (few + 1.0) ** m * (n - m + 1)
        if seconds > 0.04 * budget or values > _FEW_VALUES:
            break
        few += 1
    effort = RoundEffort(
        budget=budget,
        cycles=0.35,
        mixed=0.55,
        slow=0.75,
        sweeps=6,
        stretch=6,
        hot=0.06,
        cold=0.01,
        programs=0.15,
        few=min(few, K),
        program=program_seconds(few, m, n, bonus),
    )
    if spans_pay(d, m):
        return effort
    # More actions in a window than directions: good blocks need not repeat a cycle, and arms change together.
    step, kinds = (n - m // 2) * prefix_seconds(d, m, K, poles=poles, bonus=bonus), 5e-10 * KINDS * K * d
    width = min(int(max(0.2 * budget - kinds, 0.0) / step), _WIDEST)
    effort = effort._replace(cycles=0.1, mixed=0.4, slow=0.0, programs=0.0, hot=1.5 / d, cold=0.1 / d)
    effort = effort._replace(islands=4, width=width, beam=width * step + kinds)
    return effort if few > 3 * m else effort._replace(few=0)


def program_seconds(few: int, m: int, n: int, bonus: bool) -> float:
    """About how long a dynamic program of a few arms takes, see `arm_programs` (measured).

    >>> program_seconds(8, 5, 29, False) < 5e-3 < program_seconds(12, 5, 29, False)
    True
    """
    windows = math.comb(few + m - 1, m)
    window = 0.25e-6 + 0.03e-6 * m + few * (4e-8 if bonus else 1e-8)
    step = 0.4e-9 if few**m <= 1e5 else 0.65e-9  # where the values of a step do not fit into the second cache
    return float(step * few ** (m + 1) * (n - m) + windows * window)


def round_visit(d: int, m: int, K: int, *, poles: int, bonus: bool) -> tuple[float, float]:
    """About how long `arm_rounds` takes for a look at a position of K arms, and for an exact one (measured).

    >>> round_visit(8, 4, 400, poles=2, bonus=False) < round_visit(32, 4, 4000, poles=2, bonus=True) < (1e-4,)
    True
    """
    if spans_pay(d, m):
        arm = 0.25 + 0.27 * m + 0.097 * m * m + 0.014 * d if bonus else 0.35 + 0.062 * m * m + 0.018 * d
        alone = (0.48 + 0.025 * m * m if bonus else 0.42 + 0.01 * m * m) + 0.006 * m * m * poles
        exact = 0.8 + 0.006 * m * d + 7e-4 * K
    else:
        arm = 0.19 + 0.0143 * d * (d + 3) if bonus else 0.18 + 0.0092 * d * (d + 3)
        vectors = (m * poles + 7) // 8
        alone = 0.3 + (0.003 + 0.0033 * vectors) * d * d if bonus else 0.2 + 0.0028 * vectors * d * d
        exact = (0.9 if bonus else 0.75) + 0.01 * d * d + 2e-4 * K
    visit = alone * 1e-6 + K * arm * 1e-9
    return visit, visit + exact * 1e-6


def prefix_seconds(d: int, m: int, K: int, *, poles: int, bonus: bool) -> float:
    """About how long `arm_beams` takes for a step of a prefix with K arms (measured).

    >>> fast = prefix_seconds(5, 3, 60, poles=1, bonus=False)
    >>> fast < prefix_seconds(8, 5, 2000, poles=3, bonus=True) < 1e-5
    True
    """
    arms = 0.4 * K  # those in the midst of a block, about
    screened = arms * (1.2e-3 + (3e-5 if bonus else 1.5e-5) * d * (d + 1)) if arms > MOST else 0.0
    inverses = 0.012 * d * d * math.ceil(m * poles / SINGLES)
    return 1e-6 * (0.63 + screened + inverses + 6e-4 * (m - 1) * poles * d * d + 0.02 * m * poles * d)


def _few_seconds(memory: Memory, few: int, n: int, bonus: bool) -> float:
    """About how long the dynamic program of a few arms takes (measured)."""
    d, m = memory.d, memory.m
    windows = math.comb(few + m - 1, m) * (few if bonus else 1)
    return float(1e-9 * few ** (m + 1) * (n - m) + windows * 40e-9 * (1.0 + d * m / 6.0))


def _between_seconds(memory: Memory, n: int) -> float:
    """The same with two arms at each position, or three."""
    d, m = memory.d, memory.m
    windows = (n - m) * (3 if m <= 3 else 2) ** (m + 1)
    return float(windows * 40e-9 * (1.0 + d * m / 6.0))


def _step_seconds(memory: Memory, K: int, bonus: bool) -> float:
    """As `_visit_seconds`, where climbs begin near the blocks that they come of."""
    d, m, general = memory.d, memory.m, memory.power.kind == GENERAL
    window = 0.068 * m**3.8 * (6.0 if general else 1.0) * (1.3 if m >= d else 1.0)
    arm = 2.5e-3 + 6e-5 * d * d * (2.0 if bonus else 1.0)
    return float((1.2 + window + 0.026 * d * d + K * arm) * (0.83e-6 if d >= 8 and not bonus else 1e-6))
