"""Agents: who decides what to play, one file an algorithm.

`__all__` is the one list of agents: study files may name every one of them but `Agent`, the base class.
"""

from .auto import Auto
from .bandit_combiner import BanditCombiner
from .base import Agent
from .baselines import EpsilonGreedy, LinTS, Random
from .block_learners import O3M, OM, OMBlock
from .corral import Corral
from .cyclic import Cyclic
from .doubling import Doubling
from .evidence_selector import EvidenceSelector
from .oful import OFUL
from .oracle_greedy import OracleGreedy
from .regret_balancing import RegretBalancing
from .rolling import Rolling

__all__ = [
    "O3M",
    "OFUL",
    "OM",
    "Agent",
    "Auto",
    "BanditCombiner",
    "Corral",
    "Cyclic",
    "Doubling",
    "EpsilonGreedy",
    "EvidenceSelector",
    "LinTS",
    "OMBlock",
    "OracleGreedy",
    "Random",
    "RegretBalancing",
    "Rolling",
]
