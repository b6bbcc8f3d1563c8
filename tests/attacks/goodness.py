"""Whether many draws follow an exact distribution, and whether the test would notice if not."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Chances = Callable[[float], Floats]
"""Probability of each bin when the scale is multiplied by a factor."""

FALSE_ALARM = 1e-9
# Bins that are expected less often are merged into one.
_FEWEST = 50
_DEVIATIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
# A noncentrality that puts the statistic far beyond its threshold.
_MARGIN = 5.0


def p_value(seen: Counts, chances: Floats) -> float:
    """Likelihood-ratio (G) test of the bins, rare ones merged."""
    observed, expected = _merged(seen, chances * seen.sum())
    if (observed[expected == 0] > 0).any():
        return 0.0
    some = observed > 0
    statistic = 2 * float((observed[some] * np.log(observed[some] / expected[some])).sum())
    return float(stats.chi2.sf(max(statistic, 0.0), len(observed) - 1))


def judge(what: str, seen: Counts, chances: Chances) -> list[str]:
    """Failures if the draws do not fit, or if they could not tell a wrong scale."""
    failures = []
    if (found := p_value(seen, chances(1.0))) < FALSE_ALARM:
        failures.append(f"{what}: p = {found:.2g} against the exact distribution")
    deviation = _detectable(int(seen.sum()), chances)
    if p_value(seen, chances(1 - deviation)) >= FALSE_ALARM:
        failures.append(f"{what}: a scale {deviation:.0%} low is not told from the true one")
    return failures


def _detectable(draws: int, chances: Chances) -> float:
    """The smallest of some deviations that so many draws must reject."""
    true = chances(1.0)
    for deviation in _DEVIATIONS:
        expected, wrong = _merged(true * draws, chances(1 - deviation) * draws)
        shift = float((((expected - wrong) ** 2) / np.maximum(wrong, 1e-300)).sum())
        degrees = len(wrong) - 1
        threshold = float(stats.chi2.isf(FALSE_ALARM, degrees))
        spread = float(np.sqrt(2 * (degrees + 2 * shift)))
        if degrees + shift - _MARGIN * spread > threshold:
            return deviation
    return 0.9


def _merged(first: Floats | Counts, second: Floats) -> tuple[Floats, Floats]:
    """Both with the bins joined of which the second has too little."""
    enough = second >= _FEWEST
    if enough.all():
        return np.asarray(first, dtype=np.float64), second
    return (
        np.append(first[enough], first[~enough].sum()).astype(np.float64),
        np.append(second[enough], second[~enough].sum()),
    )
