"""What the suites share: a benchmark that is warmed up and says how much work was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def timed(benchmark: Any) -> Callable[..., Any]:
    """Times a call; `work` counts what it does, so that extra_info has the cost of one of each.

    The first call, which may compile, is not timed.
    """

    def run(call: Callable[..., Any], *arguments: Any, **work: float) -> Any:
        call(*arguments)
        found = benchmark(call, *arguments)
        benchmark.extra_info.update(work)
        if benchmark.stats is not None:
            best = benchmark.stats.stats.min
            for name, count in work.items():
                benchmark.extra_info[f"ns for each of {name}"] = 1e9 * best / count
                benchmark.extra_info[f"{name} a second"] = count / best
        return found

    return run
