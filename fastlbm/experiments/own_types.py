"""Types of your own in a study: own how `type = "module:Class"` becomes an agent or an environment.

`module` is a file MODULE.py beside the study file or, if there is none, a module that can be imported. The
text of a file goes with the study: to its workers, wherever they are, so that they need not find it, and to
the folder with the results. It is also in the key of what it computes: a changed file, be it by a comment, is
computed anew. Of a module that is imported, the key holds the name alone.

What is described here is not made, and no text of a folder is run, before somebody plays.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .._base.files import digest
from .._base.types import Array
from ..model.actions import ActionSet
from ..model.lbm import LBM
from ..running.own import AgentAtWork, EnvironmentLike, as_agent_like, as_environment, called
from ..running.stepwise import SteppedModel

#: How a type of one's own is written.
_FORM = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)

_LOADING = threading.RLock()


class OwnType(NamedTuple):
    """A class of one's own: its name as in the file, and the text of its module if that was found there."""

    name: str
    text: str | None = None
    folder: str | None = None

    @property
    def module(self) -> str:
        """The module, as it is written."""
        return self.name.partition(":")[0]

    def load(self) -> Any:
        """The class, or whatever makes an agent or environment when it is called."""
        attribute = self.name.partition(":")[2]
        try:
            module = importlib.import_module(self.module) if self.text is None else self._run_text(self.text)
        except Exception as error:
            raise ValueError(
                f"type must be a class that can be loaded, got {self.name}: {type(error).__name__}: {error}"
            ) from error
        found = getattr(module, attribute, None)
        if not callable(found):
            raise ValueError(f"type must name a class, got {self.name}: {self.module} has no {attribute}")
        return found

    def _run_text(self, text: str) -> ModuleType:
        """The module with this text, which is run once in a process."""
        name = f"{self.module}_{digest(text.encode())[:12]}"  # two studies may have files of one name
        with _LOADING:  # threads of a worker begin at once
            return sys.modules.get(name) or self._run_anew(name, text)

    def _run_anew(self, name: str, text: str) -> ModuleType:
        if self.folder is not None and self.folder not in sys.path:
            sys.path.append(self.folder)  # for what the file imports from beside it
        module = ModuleType(name)
        module.__file__ = None if self.folder is None else str(Path(self.folder, f"{self.module}.py"))
        sys.modules[name] = module
        try:
            code = compile(text, module.__file__ or f"<{self.module}>", "exec", dont_inherit=True)
            exec(code, module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise
        return module


class Code(NamedTuple):
    """Where the types of one's own of a study come from.

    `texts` are modules by name, as results keep them, and whatever is read from `folder`, that of the study
    file, each once. Unless it is `trusted`, nothing of it is run: then nothing is checked, either, which is
    as well for a study that was checked when it began.
    """

    texts: dict[str, str]
    folder: Path | None = None
    trusted: bool = True

    def find(self, name: Any) -> OwnType:
        """The type that is written "module:Class"."""
        if not isinstance(name, str) or not (form := _FORM.fullmatch(name)):
            raise ValueError(f'type must be "module:Class", got {name!r}')
        module = form[1]
        folder = None if self.folder is None else str(self.folder.resolve())
        file = None if self.folder is None else self.folder / f"{module}.py"
        if module not in self.texts and file is not None and file.is_file():
            self.texts[module] = file.read_text(encoding="utf-8")
        return OwnType(name, self.texts[module], folder) if module in self.texts else OwnType(name)


class Described:
    """Something of one's own that is made from its arguments when it is needed, here or on a worker."""

    def __init__(self, kind: OwnType, arguments: Mapping[str, Any]) -> None:
        self.kind, self.arguments = kind, dict(arguments)

    @property
    def own_name(self) -> str:
        """How errors call it."""
        return self.kind.name

    def make(self) -> Any:
        """A new one; the arguments are checked by its class."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return called(f"{self.own_name}({given})", self.kind.load(), **self.arguments)

    def parameters(self) -> tuple[list[str], bool]:
        """The names of its arguments, and whether it takes others as well."""
        found = inspect.signature(self.kind.load()).parameters
        return list(found), any(p.kind is inspect.Parameter.VAR_KEYWORD for p in found.values())

    def _key(self) -> tuple[Any, ...]:
        code = None if self.kind.text is None else digest(self.kind.text.encode())
        return (self.kind.name, code, json.dumps(self.arguments, sort_keys=True, default=np.ndarray.tolist))


class DescribedAgent(Described):
    """An agent of one's own in a study; it is told the horizon T if it takes one and the file has none."""

    def __init__(self, kind: OwnType, arguments: Mapping[str, Any], T: int) -> None:
        super().__init__(kind, arguments)
        self.T = T

    def start(self, actions: ActionSet, seed: Any) -> AgentAtWork:
        """A new one at work."""
        told = {"horizon": self.T} if "horizon" in self.parameters()[0] else {}
        agent = DescribedAgent(self.kind, told | self.arguments, self.T).make()
        return as_agent_like(self.own_name, agent).start(actions, seed)


class DescribedEnvironment(Described):
    """An environment of one's own in a study; a copy of it is made anew, as on a worker."""

    _made: EnvironmentLike | None = None

    def _own(self) -> EnvironmentLike:
        if self._made is None:
            made: Any = as_environment(self.own_name, self.make())
            self._made = SteppedModel(made) if isinstance(made, LBM) else made
        return self._made

    @property
    def actions(self) -> ActionSet:
        """What can be played."""
        return self._own().actions

    def reset(self, seed: Any) -> object:
        """Begin anew."""
        return self._own().reset(seed)

    def step(self, action: Array) -> tuple[float, float | None]:
        """The observed reward, and the expected one if it is known."""
        return self._own().step(action)

    def __getstate__(self) -> dict[str, Any]:
        return {"kind": self.kind, "arguments": self.arguments}
