"""What the suites share: a benchmark that is warmed up and says how much work was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def timed(benchmark: Any) -> Callable[..., Any]:
    """Times a call; `work` counts what it does, as in `window=20`, so that extra_info has the cost of one.

    The first call, which may compile, is not timed.
    """

    def run(call: Callable[..., Any], *arguments: Any, **work: float) -> Any:
        call(*arguments)
        found = benchmark(call, *arguments)
        for name, count in work.items():
            benchmark.extra_info[f"{name}s"] = count
            if benchmark.stats is not None:
                best = benchmark.stats.stats.min
                benchmark.extra_info[f"ns per {name}"] = 1e9 * best / count
                benchmark.extra_info[f"{name}s per second"] = count / best
        return found

    return run
