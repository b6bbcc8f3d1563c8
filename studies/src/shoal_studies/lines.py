"""The mechanisms that studies and benchmarks compare, under the names that they print."""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.cells.comparison import Settings


@dataclass(frozen=True)
class Line:
    """One mechanism with its settings.

    Attributes:
        label: What it is called.
        method: Its name in `simulate`.
        settings: Its settings.
        stretch: The loss that is simulated over the loss that is shown: other than 1 only to show
            the noise of a form as printed in a paper, which no release uses.
    """

    label: str
    method: str
    settings: Settings = field(default_factory=dict)
    stretch: float = 1.0


BASELINE = Line("baseline", "baseline")
ARRAY_MEDIAN = Line("array averaging, median cap", "array_averaging", {"cap": "median"})
ARRAY_LEVY = Line("array averaging, Levy cap", "array_averaging", {"cap": "levy"})
ARRAY_MINIMAX = Line("array averaging, minimax cap", "opt_array_averaging")
LEVY = Line("Levy", "levy")
QUANTILE = Line("quantile, fixed", "quantile", {"quantiles": "fixed"})
OPTIMISED = Line("quantile, optimised", "quantile", {"quantiles": "optimised"})
AKMV = Line("AKMV", "akmv")
WORST_CASE = Line("worst-case optimal", "worst_case_optimal")
ADAPTIVE = Line("adaptive (ours)", "adaptive")

PAPERS = (
    BASELINE,
    ARRAY_MEDIAN,
    ARRAY_LEVY,
    ARRAY_MINIMAX,
    LEVY,
    QUANTILE,
    OPTIMISED,
    AKMV,
    WORST_CASE,
)
