"""Citations of the paper: every label exists, and a number beside it is the label's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    path
    for folder in ("fastlbm", "reproduce")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".md", ".toml")
]
#: The labels of the equations, in the order of their numbers.
EQUATIONS = """
reward A-def opt_sequence rwd_lower_bound best_block approx_cyclic approx_cyclic_other bound_R oful_block
est_theta_block est_theta oful_indiv optim_oo apply_bound_rwd determinant max_ucb big_beta indiv_beta new_cs
bound_delayed_V intermediate_regret bnd_rwd_1 use_regret bnd_rwd_2 use_approx reg-bc-extended
regret_wrong_horizon O_tilde C_j regret_cutko
"""
#: The labels of the paper's source and what they are called in print.
LABELS = {
    **{f"eq:{name}": f"({number})" for number, name in enumerate(EQUATIONS.split(), start=1)},
    "prop:greedy_bad": "Proposition 1",
    "prop:approx_cyclic": "Proposition 2",
    "prop:cyclic_tight": "Proposition 3",
    "prop:adaptation_exp": "Proposition 4",
    "prop:adaptation_hp": "Proposition 5",
    "thm:regret_exp": "Theorem 1",
    "thm:regret_hp": "Theorem 2",
    "lem:average": "Lemma 1",
    "cor:model_selection": "Corollary 1",
    "ex:rested": "Example 2",
    "rmk:context": "Remark 1",
    "rmk:over_opt": "Remark 3",
    "alg:OFUL-memory-algo": "Algorithm 1",
    "alg:bc": "Algorithm 2",
    "fig:exp": "Figure 1",
    "fig:regret": "Figure 2",
    "sec:intro": "Section 1",
    "sec:model": "Section 2",
    "sec:regret": "Section 3",
    "sec:approx": "Section 3.1",
    "sec:estimation": "Section 3.2",
    "sec:model_selection": "Section 3.3",
    "sec:algo": "Section 4",
    "sec:experiments": "Section 5",
    "apx:proof": "Section A",
    "apx:proof_adaptation": "Section A.3",
    "apx:proof_regret": "Section A.4",
    "apx:corollary": "Section A.5",
    "apx:bc": "Section B",
    "sec:more-exp": "Section C",
}
LABEL = r"\b(?:eq|prop|thm|lem|cor|ex|rmk|alg|fig|sec|apx):[A-Za-z][\w-]*"
KINDS = r"(?:Proposition|Theorem|Lemma|Corollary|Example|Remark|Algorithm|Section|Figure) [\d.A-C]*[\dA-C]"

pytestmark = pytest.mark.nojit


def wrong(text: str) -> list[str]:
    """Labels that are none, and numbers before a label that are another's."""
    flat = re.sub(r"\s+", " ", text)
    unknown = [label for label in re.findall(LABEL, flat) if label not in LABELS]
    before = re.findall(rf"(?:equation (\(\d+\))|({KINDS}))(?:, | \(| of the paper, )({LABEL})", flat)
    pairs = [(equation or other, label) for equation, other, label in before]
    pairs += [(number, label) for label, number in re.findall(rf"({LABEL}) (\(\d+\))", flat)]
    return unknown + [f"{number}, {label}" for number, label in pairs if LABELS.get(label, number) != number]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_citations_are_right(path: Path) -> None:
    assert wrong(path.read_text(encoding="utf-8")) == []


def test_wrong_citations_are_found() -> None:
    assert wrong("the best block, equation (6), eq:best_block") == ["(6), eq:best_block"]
    assert wrong("Remark 2 of the paper, rmk:over_opt") == ["Remark 2, rmk:over_opt"]
    assert wrong("the estimator, eq:est_theta (10), and eq:nothing") == ["eq:nothing", "(10), eq:est_theta"]
    assert wrong("Section 3.2, sec:estimation; equation (8), eq:bound_R") == []
