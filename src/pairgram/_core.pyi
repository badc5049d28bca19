from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__version__: str

def evaluate_metrics(
    labels: NDArray[np.float64],
    scores: NDArray[np.float64],
    offsets: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    specs: Sequence[tuple[int, int, int, int, int, float, float, float, bool]],
    n_threads: int,
) -> NDArray[np.float64]: ...
