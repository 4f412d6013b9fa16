"""A step of many environments at once, and one after the other."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("gymnasium")

from .steps import LOOPS, competitors


@pytest.mark.parametrize("name", [*LOOPS, "vector"])
def test_a_step_of_all(timed: Any, name: str) -> None:
    timed(competitors(100)[name], step=100)
