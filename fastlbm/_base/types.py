"""Types: owns the names of what passes between all layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: A C-contiguous array of float64, where nothing else is said.
Array = NDArray[np.float64]
#: Steps, counts and numbers of seeds.
Integers = NDArray[np.int64]
#: What a random generator can be made from.
Seed = int | np.random.SeedSequence | np.random.Generator | None
