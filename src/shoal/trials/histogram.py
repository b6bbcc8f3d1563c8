"""Plans noisy histograms: private counts of every level in every cluster and arm."""

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
from shoal.privacy.accounting import Step
from shoal.privacy.noise import Noise
from shoal.privacy.noise_lattice import lattice_bits
from shoal.privacy.noisy import CAPACITY, MOST_BITS, NoisySum
from shoal.trials.cluster_prior import SIDES
from shoal.trials.domain import Domain
from shoal.trials.effect_estimation import Cells, effects_of, warned
from shoal.trials.plan import Plan
from shoal.trials.results import Effects

_ROUNDING = 1


class HistogramChoice(Model):
    """The noise of counts."""

    counts: NoisySum


class HistogramDrawn(Model):
    """Noisy counts in steps, of every level of every arm of every cluster in order."""

    steps: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class HistogramPlan(Plan):
    """A plan of noisy counts: see `trials.Experiment.histogram`."""

    chosen: HistogramChoice

    kind: ClassVar[str] = "histogram"
    chosen_model: ClassVar[type[Model]] = HistogramChoice
    drawn_model: ClassVar[type[Model]] = HistogramDrawn

    @property
    def own_steps(self) -> list[Step]:
        """The step of the counts: one outcome moves two of them by one each."""
        return [self.chosen.counts.step(SIDES)]

    def respond(self, outcomes: Floats, noise: Noise) -> HistogramDrawn:
        """Rounds outcomes to levels, counts them and adds noise.

        Formal guarantee: one changed outcome changes the probability of every result by a factor of
        at most exp(`exact_epsilon`). Counts are a sum over units: no order of rows matters.
        """
        design = self.design
        levels = self.domain.size
        words = noise.bits(design.n, _ROUNDING)
        codes = self.domain.encode(outcomes, words, range(levels))
        many = design.sizes.size * levels
        counts = np.bincount(design.cell_of_unit * levels + codes, minlength=many)
        steps = self.chosen.counts.add(counts.tolist(), noise)
        return HistogramDrawn(steps=tuple(steps))

    def check_drawn(self, drawn: HistogramDrawn) -> None:
        """Refuse counts that are not as many as planned."""
        self.shares(drawn)

    def shares(self, drawn: HistogramDrawn) -> Floats:
        """Returns unbiased shares, shape (clusters, arms, levels); they may lie below 0."""
        sizes = self.design.sizes
        steps = np.array(drawn.steps, dtype=np.float64).reshape(*sizes.shape, self.domain.size)
        unit = self.chosen.counts.per_unit * sizes.astype(np.float64)
        return steps / unit[:, :, None]

    @property
    def mean_variance(self) -> Floats:
        """The noise variance of each cell's mean, shape (clusters, arms), in squared units."""
        return mean_noise(self.chosen, self.domain, self.design.sizes)

    def read(self, drawn: HistogramDrawn, confidence: float, **_: Any) -> Effects:
        """Returns the effects of all arms, by means and sample variances of noisy shares."""
        confidence = check_level(confidence)
        sizes = self.design.sizes
        levels = centred(self.domain)
        share = self.shares(drawn)
        noise = self.mean_variance
        square = levels**2
        mean = share @ levels
        # True shares sum to 1: so the mean of the squares can be taken off and added without noise.
        second = square.mean() + share @ (square - square.mean())
        correction = sizes / np.maximum(sizes - 1, 1)
        s2 = np.where(sizes > 1, correction * (second - mean**2 + noise), math.nan)
        # The noise of a mean is a sum of Laplace variables with variances proportional to `square`:
        # their squared variances sum to this part of the squared variance of the mean.
        concentration = float((square**2).sum()) / float(square.sum()) ** 2
        # The noise of s2: by the squared deviations of levels, and by the square of the mean.
        deviation = (levels - mean[:, :, None]) ** 2
        deviation -= deviation.mean(axis=2, keepdims=True)
        share_variance = self.chosen.counts.variance / sizes.astype(np.float64) ** 2
        linear = share_variance * (deviation**2).sum(axis=2)
        quadratic = (2 + 3 * concentration) * noise**2
        s2_noise = (correction / sizes) ** 2 * (linear + quadratic)
        cells = Cells(sizes, mean, s2, noise, concentration * noise**2, s2_noise)
        found = effects_of(self.design, cells, confidence)
        counts = np.maximum(share, 0.0) * sizes[:, :, None]
        return Effects(tuple(warned(found, counts, np.broadcast_to(levels, counts.shape))))

    def table(self, drawn: HistogramDrawn, confidence: float) -> pa.Table:
        """Returns a row for each cluster, arm and level: units, a share, and its noise."""
        design = self.design
        share = self.shares(drawn)
        _, arms, levels = share.shape
        row = np.arange(share.size)
        error = math.sqrt(self.chosen.counts.variance)
        outcomes = pa.array(self.domain.labels or self.domain.levels)
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
        """The plan as text: its loss, and the noise of a share in each arm."""
        error = math.sqrt(self.chosen.counts.variance)
        fewest = self.design.sizes.min(axis=0)
        pairs = zip(self.design.arm_names, fewest.tolist(), strict=True)
        rows = [[name, str(units), f"{error / units:.3g}"] for name, units in pairs]
        notes = ["an outcome between two levels counts at either, at random; shares may be below 0"]
        columns = "arm", "fewest units", "largest noise of a share"
        return TextTable(self._head("histograms"), columns, rows, notes)


def fitted(units: int, epsilon: Fraction) -> HistogramChoice:
    """Returns the choice with the most steps for each unit whose loss is at most epsilon."""
    # The lattice is as fine as for an epsilon in these limits; what does not fit is refused below.
    limited = min(max(float(epsilon), 2.0 ** -(MOST_BITS + 1)), 1.0)
    bits = lattice_bits(SIDES, limited)
    # A unit moves two counts, by `per_unit` steps each.
    steps = math.floor(epsilon * 2**bits)
    if bits > MOST_BITS or steps * (units + 1) > 2**CAPACITY:
        raise InputError(
            f"the numbers for epsilon {float(epsilon):.3g} and {units} units do not fit 64 bits",
            "ask for an epsilon nearer to 1",
        )
    return HistogramChoice(counts=NoisySum.of(per_unit=steps // SIDES, bits=bits))


def centred(domain: Domain) -> Floats:
    """Returns levels less their plain mean."""
    # The lowest level is taken off first, as all may lie far from 0.
    above = domain.array - domain.levels[0]
    return np.asarray(above - above.mean())


def mean_noise(chosen: HistogramChoice, domain: Domain, sizes: Ints) -> Floats:
    """Returns the noise variance of the mean of each cell, in the outcome's squared unit."""
    square = float((centred(domain) ** 2).sum())
    return chosen.counts.variance * square / sizes.astype(np.float64) ** 2
