"""One cell, one call: private means of values in memory, by every mechanism of the library.

`auto` chooses; `baseline`, `array_averaging`, `opt_array_averaging`, `worst_case_optimal`, `levy`,
`quantile`, `akmv`, `adaptive` and `user_clipped` are what it chooses from; `vector` is for vectors.
See `docs/how-to/mechanisms.md`.
"""

from shoal.cells.one_cell import (
    array_averaging,
    baseline,
    opt_array_averaging,
    worst_case_optimal,
)
from shoal.cells.one_cell_ranges import (
    adaptive,
    akmv,
    auto,
    levy,
    quantile,
    user_clipped,
)
from shoal.cells.one_cell_result import Estimate
from shoal.cells.one_cell_vectors import VectorEstimate, vector

__all__ = [
    "Estimate",
    "VectorEstimate",
    "adaptive",
    "akmv",
    "array_averaging",
    "auto",
    "baseline",
    "levy",
    "opt_array_averaging",
    "quantile",
    "user_clipped",
    "vector",
    "worst_case_optimal",
]
