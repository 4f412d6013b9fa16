"""Names for the arrays that kernels take, for the reader and the type checker."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
#: (rows, N): one quantity a row, one column for each action or window, unit stride along a row.
Rows = NDArray[np.float64]
#: The same in single precision.
SingleRows = NDArray[np.float32]
#: (rows, TILE): what is kept of TILE windows, see `spectra`.
Tile = NDArray[np.float64]
#: (tiles, rows*TILE): many of them, flat.
Tiles = NDArray[np.float64]
#: Counters and sizes.
Integers = NDArray[np.int64]
#: (n, m, d): rows of several models.
Tensor = NDArray[np.float64]
#: Yes or no.
Flags = NDArray[np.bool_]
