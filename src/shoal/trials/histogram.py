"""Noisy histogram: private counts of every level in every cluster and arm."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from shoal.arrays import Floats, Ints
from shoal.documents.model import Model
from shoal.errors import InputError
from shoal.files.text_table import TextTable
from shoal.intervals import check_level
from shoal.privacy.noise import LARGEST_STEPS, MOST_BITS, Noise
from shoal.privacy.noise_lattice import lattice_bits
from shoal.trials.effects import Effects
from shoal.trials.inference import Cells, effects_of, warned
from shoal.trials.plan import Plan
from shoal.trials.space import Space

_ROUNDING = 1
# One outcome moves two counts.
_SIDES = 2


class HistogramChoice(Model):
    """Steps a count, and noise of scale 2^bits steps."""

    weight: int
    lattice_bits: int

    @property
    def count_variance(self) -> float:
        """Of a noisy count, exact: 1/(2 sinh^2(2^-j/2)) in squared steps."""
        return 0.5 / math.sinh(2.0 ** (-self.lattice_bits - 1)) ** 2 / self.weight**2


class HistogramDrawn(Model):
    """Noisy counts in steps: every level of every arm of every cluster, in order."""

    steps: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class HistogramPlan(Plan):
    """A plan of noisy counts: see `trials.Experiment.histogram`."""

    kind: ClassVar[str] = "histogram"
    chosen_model: ClassVar[type[Model]] = HistogramChoice
    drawn_model: ClassVar[type[Model]] = HistogramDrawn

    @property
    def mechanism(self) -> str:
        """Its name."""
        return "noisy_histogram"

    @property
    def exact_epsilon(self) -> Fraction:
        """The loss of an outcome: two counts, `weight` steps each, over 2^j."""
        if not 0 < self.chosen.weight <= LARGEST_STEPS or not self.chosen.lattice_bits > 0:
            raise LookupError
        return Fraction(_SIDES * self.chosen.weight, 2**self.chosen.lattice_bits)

    def draw(self, outcomes: Floats, noise: Noise) -> HistogramDrawn:
        """Rounds outcomes to levels, counts them and adds noise.

        Formal guarantee: one changed outcome changes the probability of every result by a factor of
        at most exp(`exact_epsilon`). Counts are a sum over units: no order of rows matters.
        """
        design, levels = self.design, self.space.size
        words = noise.bits(design.n, _ROUNDING)
        codes = self.space.encode(outcomes, words, range(levels))
        many = design.sizes.size * levels
        counts = np.bincount(design.cell_of_unit * levels + codes, minlength=many)
        steps = noise.add_laplace((counts * self.chosen.weight).tolist(), self.chosen.lattice_bits)
        return HistogramDrawn(steps=tuple(steps))

    def check_drawn(self, drawn: HistogramDrawn) -> None:
        """Refuse another number of counts."""
        self.shares(drawn)

    def shares(self, drawn: HistogramDrawn) -> Floats:
        """Unbiased shares of levels, shape (clusters, arms, levels); they may lie below 0."""
        sizes = self.design.sizes
        steps = np.array(drawn.steps, dtype=np.float64).reshape(*sizes.shape, self.space.size)
        return np.asarray(steps / (self.chosen.weight * sizes[:, :, None].astype(np.float64)))

    @property
    def mean_variance(self) -> Floats:
        """Of each cell's mean, by the mechanism, shape (clusters, arms), in squared units."""
        return mean_noise(self.chosen, self.space, self.design.sizes)

    def read(self, drawn: HistogramDrawn, confidence: float, **_: Any) -> Effects:
        """Every arm against the control: means and sample variances of noisy shares."""
        confidence, sizes, away = check_level(confidence), self.design.sizes, centred(self.space)
        share, noise, square = self.shares(drawn), self.mean_variance, away**2
        mean = share @ away
        # The sum of shares is 1, so that a constant taken off the squares is added without noise.
        second = square.mean() + share @ (square - square.mean())
        bias = sizes / np.maximum(sizes - 1, 1)
        s2 = np.where(sizes > 1, bias * (second - mean**2 + noise), math.nan)
        shape = float((square**2).sum()) / float(square.sum()) ** 2
        apart = (away - mean[:, :, None]) ** 2
        apart -= apart.mean(axis=2, keepdims=True)
        scale = self.chosen.count_variance / sizes.astype(np.float64) ** 2
        loose = scale * (apart**2).sum(axis=2) + (2 + 3 * shape) * noise**2
        cells = Cells(sizes, mean, s2, noise, shape * noise**2, (bias / sizes) ** 2 * loose)
        found = effects_of(self.design, cells, confidence)
        counts = np.maximum(share, 0.0) * sizes[:, :, None]
        return Effects(tuple(warned(found, counts, np.broadcast_to(away, counts.shape))))

    def table(self, drawn: HistogramDrawn, confidence: float) -> pa.Table:
        """One row a cluster, arm and level: units, a share that may lie below 0, and its noise."""
        design, share = self.design, self.shares(drawn)
        _, arms, levels = share.shape
        row, error = np.arange(share.size), math.sqrt(self.chosen.count_variance)
        outcomes = pa.array(self.space.labels or self.space.levels)
        units = design.sizes.ravel()[row // levels]
        return pa.table(
            {
                "cluster": design.clusters.take(row // (arms * levels)),
                "arm": design.arms.take(row // levels % arms),
                "units": pa.array(units),
                "level": outcomes.take(row % levels),
                "share": pa.array(share.ravel()),
                "noise": pa.array(error / units),
            }
        )

    def _text(self) -> TextTable:
        """The plan in words: loss, and the noise of a share in each cell."""
        error, fewest = math.sqrt(self.chosen.count_variance), self.design.sizes.min(axis=0)
        pairs = zip(self.design.arm_names, fewest.tolist(), strict=True)
        rows = [[name, str(least), f"{error / least:.3g}"] for name, least in pairs]
        notes = ["an outcome between two levels counts at either, at random; shares may be below 0"]
        columns = "arm", "fewest units", "largest noise of a share"
        return TextTable(self._head("histograms"), columns, rows, notes)


def fitted(units: int, epsilon: Fraction) -> HistogramChoice:
    """The largest weight of a count whose loss is at most epsilon."""
    narrow = min(max(float(epsilon), 2.0**-MOST_BITS), 1.0)
    bits = lattice_bits(_SIDES, narrow)
    steps = math.floor(epsilon * 2**bits)
    if bits >= MOST_BITS - 1 or 2 * steps * (units + 1) > LARGEST_STEPS:
        raise InputError(
            f"the numbers for epsilon {float(epsilon):.3g} and {units} units do not fit 64 bits",
            "ask for an epsilon nearer to 1",
        )
    return HistogramChoice(weight=steps // _SIDES, lattice_bits=bits)


def centred(space: Space) -> Floats:
    """Levels from their plain mean: taken from the lowest first, as all may lie far from 0."""
    above = space.array - space.levels[0]
    return np.asarray(above - above.mean())


def mean_noise(chosen: HistogramChoice, space: Space, sizes: Ints) -> Floats:
    """Noise variance of the mean of each cell, in the outcome's squared unit."""
    square = float((centred(space) ** 2).sum())
    return np.asarray(chosen.count_variance * square / sizes.astype(np.float64) ** 2)
