"""Agents: who decides what to play."""

from .base import O3M, OFUL, OM, Agent, Cyclic, Doubling, OMBlock, OracleGreedy
from .selection import BanditCombiner, EvidenceSelector

__all__ = [
    "O3M",
    "OFUL",
    "OM",
    "Agent",
    "BanditCombiner",
    "Cyclic",
    "Doubling",
    "EvidenceSelector",
    "OMBlock",
    "OracleGreedy",
]
