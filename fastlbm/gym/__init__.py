"""Gymnasium: the model as an environment of it, one or many at once, and its environments for our agents.

`gymnasium.make("fastlbm/LBM-v0", theta=..., m=..., gamma=..., horizon=...)` makes an `LBMEnv` and
`gymnasium.make_vec`, with `num_envs`, an `LBMVectorEnv`; `GymEnvironment` is the other way round.

Until 1.0, Gymnasium found its environments by entry points (pyproject.toml has one). Since then it must be
told: `import fastlbm` does so, before or after `import gymnasium`; without that import, the id
"fastlbm:fastlbm/LBM-v0" has Gymnasium do it. Nothing here loads Gymnasium before somebody else does.

PPO of stable-baselines3 2.9 learns on it, in seconds. That was tried by hand: PyTorch is too much for tests.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

#: The name of the environment in Gymnasium.
ID = "fastlbm/LBM-v0"


def register() -> None:
    """Tell Gymnasium of the environment; a second time changes nothing."""
    import gymnasium

    if ID not in gymnasium.registry:
        gymnasium.register(
            id=ID,
            entry_point="fastlbm.gym.environment:LBMEnv",
            vector_entry_point="fastlbm.gym.vector:LBMVectorEnv",
        )


class _RegistersLater:
    """Finds Gymnasium when it is imported, as Python does, and registers afterwards."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "gymnasium" else None
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def announce() -> None:
    """Register now if Gymnasium is there already, else as soon as somebody imports it."""
    if sys.modules.get("gymnasium") is not None:
        register()
    elif not any(isinstance(finder, _RegistersLater) for finder in sys.meta_path):
        sys.meta_path.insert(0, _RegistersLater())
