"""The search for parameters: candidates at equal loss, compared by the variance they predict."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.trials.parameters import Parameters, calibrate
from shoal.trials.predicted import Scene

Floats = NDArray[np.float64]
# Another prior or fewer levels must not be worse than a uniform prior by more than this.
TOLERANCE = 0.02
# Floors as parts of 1/K, and shares of epsilon for the histogram.
_FLOORS = (0.01, 0.03, 0.1, 0.25, 0.5, 0.75)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35)
_HISTOGRAM_SIDES = 2
# Histograms of more levels are looked at only if their floor or noise is given.
_MOST_BARS = 32


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        parameters: The mechanism's whole numbers.
        variance: Predicted, one under each expectation.
        uniform: The same for a uniform prior on all levels, infinite where it keeps no outcome.
        given: Whether a floor or noise was given.
    """

    parameters: Parameters
    variance: Floats
    uniform: Floats
    given: bool


def is_uniform(sigma: float | None) -> bool:
    """Whether a noise asks for a uniform prior.

    Example:
        >>> is_uniform(math.inf), is_uniform(3.0), is_uniform(None)
        (True, False, False)
    """
    return isinstance(sigma, float) and math.isinf(sigma)


@dataclass(frozen=True, eq=False)
class Search:
    """Candidates for one question.

    Attributes:
        scene: What may be expected.
        options: Positions of the levels in use, one candidate each.
        epsilon: The loss of one outcome.
        delta: The delta of (epsilon, delta)-DP.
    """

    scene: Scene
    options: list[tuple[int, ...]]
    epsilon: Fraction
    delta: Fraction

    def found(self, floor: float | None, sigma: float | None) -> Found:
        """The best parameters; those with histograms only where `choose` says.

        Args:
            floor: gamma, or None to have it chosen.
            sigma: Noise of a count, infinite for a uniform prior, or None to have it chosen.

        Raises:
            InputError: No outcome would be kept, or what is given costs more than epsilon.
        """
        reference = self._uniform(tuple(range(self.scene.space.size)))
        none = np.full(len(self.scene.sampling), np.inf)
        full = none if reference is None else self.scene.variance(reference)
        plain = [found for kept in self.options if (found := self._uniform(kept)) is not None]
        if not plain:
            raise InputError(
                f"epsilon {float(self.epsilon):.3g}",
                "one at which some outcomes are kept",
                "raise epsilon, or use fewer levels",
            )
        table = np.array([self.scene.variance(parameters) for parameters in plain])
        chosen = _nearest(table, full)
        best, variance = plain[chosen], table[chosen]
        given = floor is not None or (sigma is not None and not is_uniform(sigma))
        # At delta = 0 nothing can pass: see `choose`.
        if given or (sigma is None and self.delta > 0):
            bar = np.full_like(table, np.inf) if given else np.minimum(table, variance)
            other = self._histograms(
                floor, sigma, dict(zip((p.kept for p in plain), bar, strict=True))
            )
            best, variance = other or (best, variance)
        return Found(best, variance, full, given=given)

    def _uniform(self, kept: tuple[int, ...]) -> Parameters | None:
        try:
            return calibrate(kept, epsilon=self.epsilon, delta=self.delta)
        except InputError:
            return None

    def _histograms(
        self, floor: float | None, sigma: float | None, bars: dict[tuple[int, ...], Floats]
    ) -> tuple[Parameters, Floats] | None:
        """The best prior from histograms that is 2 % below its bar everywhere, if there is one."""
        best: tuple[float, Parameters, Floats] | None = None
        for kept, bar in bars.items():
            if len(kept) > _MOST_BARS and floor is None and sigma is None:
                continue
            limit = bar if np.isinf(bar).any() else bar * (1 - TOLERANCE)
            for parameters in self._candidates(kept, floor, sigma):
                variance = self.scene.below(parameters, limit)
                if variance is None:
                    continue
                score = float(np.log(variance).mean())
                if best is None or score < best[0]:
                    best = score, parameters, variance
        return None if best is None else best[1:]

    def _candidates(
        self, kept: tuple[int, ...], floor: float | None, sigma: float | None
    ) -> Iterator[Parameters]:
        floors = [part / len(kept) for part in _FLOORS] if floor is None else [floor]
        shares = [_HISTOGRAM_SIDES / (share * float(self.epsilon)) for share in _SHARES]
        noises = shares if sigma is None else [sigma]
        pairs = list(itertools.product(floors, noises))
        found = None
        for at, (least, noise) in enumerate(pairs):
            last = found is None and at == len(pairs) - 1
            try:
                found = calibrate(
                    kept, epsilon=self.epsilon, delta=self.delta, floor=least, sigma=noise
                )
            except InputError:
                # Some pairs cost all of epsilon; what was given has to be explained.
                if last and (floor is not None or sigma is not None):
                    raise
                continue
            if found.weight:
                yield found


def _nearest(table: Floats, full: Floats) -> int:
    """Row with the least largest ratio to the best, among those hardly worse than all levels."""
    allowed = (table <= full * (1 + TOLERANCE)).all(axis=1)
    allowed |= ~allowed.any()
    worst = (table / table.min(axis=0)).max(axis=1)
    return int(np.where(allowed, worst, np.inf).argmin())
