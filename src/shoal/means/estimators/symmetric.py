"""The mean of a symmetric distribution, exactly unbiased, without any interval."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.means.estimators.base import OUTWARD, Drawn, Estimator
from shoal.means.estimators.clipped import squares_parameters
from shoal.means.estimators.coarse import FARTHEST, FINE, Coarse, Places
from shoal.means.estimators.failure_probability import Setting
from shoal.means.estimators.middle import MOST_TICKS, Middle, ticks
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.means.estimators.normal import Squares
from shoal.means.estimators.sampled import Chance, sampled_means
from shoal.means.estimators.squares import Centred
from shoal.means.estimators.weights import Weights
from shoal.privacy.budget import Budget
from shoal.privacy.noise import Noise

_FINAL, _ORDER = 7, 9
# Farther means would be too near to where values are cut off, in bins.
_MOST_BINS = FARTHEST / 2


@dataclass(frozen=True, eq=False)
class Symmetric(Estimator):
    """A coarse guess, then a mean clipped to guess -+ c: (epsilon, delta), paper 004, Algorithm 2.

    **Unbiased** for every symmetric distribution. Mirroring all values about the centre mirrors the
    guess (`Coarse`), then every clipped and rounded value: ticks are counted from the guess, and a
    value is an even and the guess an odd multiple of 2^-61 bins, so that none is halfway between
    ticks and rounding is odd. Noise is symmetric. So the distribution of the estimate, where the
    coarse step succeeds, is symmetric about the centre; where it fails the values' distribution is,
    and the sampled mean is unbiased given the values. A middle step (`Middle`) makes the guess
    finer, from the users of the first step, and is mirrored in the same way. This needs no
    independence of the steps: with `reuse` all users are in all steps, at the price of all losses.
    Without it, the lightest users are in the first steps and the others in the last, and a user
    loses the larger of the two.

    Who is in which part is drawn anew among users of equal weight (`release`): rows in the order of
    their values would otherwise tell the parts apart, bias the estimate and cost both losses.

    "Exactly" means up to how numbers are stored: values are read as multiples of 2^-60 bins, which
    doubles above 2^-8 bins are, and those beyond 2^61 bins as 2^61 bins.

    Attributes:
        coarse: The first step, on as many of the lightest users.
        reuse: Whether all users are in the last step, or only those not in the first.
        shift: A tick is 2^-shift bins, 1 to 59.
        half: c, in ticks.
        noise: On the weighed sum of ticks.
        chance: With which values are sampled if the coarse step fails.
        coarse_delta: The delta that is charged for the coarse step, at least its own.
        farthest: The certificate holds for means up to this, in absolute value; at most 2^60 bins.
        middle: The step between, if there is one.

    Raises:
        InputError: The parts do not fit each other.
    """

    coarse: Coarse
    reuse: bool
    shift: int
    half: int
    noise: NoisySum
    chance: Chance
    coarse_delta: Fraction
    farthest: float
    middle: Middle | None = None
    name: ClassVar[str] = "symmetric_mean"

    def __post_init__(self) -> None:
        final, users = self.final, self.weights.users
        fits = self.coarse.users == users if self.reuse else 0 < self.coarse.users < users
        sound = (
            fits
            and 1 <= self.shift < FINE
            and 0 < self.half <= MOST_TICKS
            and (self.middle is None or self.middle.users == self.coarse.users)
            and self.noise.sensitivity == 2 * self.half * final.largest
            and self.noise.most == self.half * final.total
            and self.coarse.delta <= self.coarse_delta < 1
            and 0 <= self.farthest <= math.ldexp(_MOST_BINS, self.coarse.exponent)
        )
        if not sound:
            raise InputError(
                "parts of a symmetric mean that do not fit each other", "a plan's", "plan anew"
            )
        self._check_squares()

    @cached_property
    def final(self) -> Weights:
        """The weights of the last step."""
        return self.weights if self.reuse else self.weights.after(self.coarse.users)

    @cached_property
    def centred(self) -> Centred | None:
        """The last step's sum, about the guess."""
        tick = Fraction(2) ** (self.coarse.exponent - self.shift)
        return Centred(self.noise, self.final, self.half, 1, tick)

    @property
    def half_width(self) -> float:
        """c, in the value's unit."""
        return math.ldexp(self.half, self.coarse.exponent - self.shift)

    @cached_property
    def loss(self) -> Budget:
        """All steps' with `reuse`, else the larger of each part: the first steps, and the last."""
        middle = Fraction(0) if self.middle is None else self.middle.loss
        first = Budget(self.coarse.loss + middle, self.coarse_delta)
        second = Budget(self.noise.loss, self.chance.exact)
        if self.reuse:
            return first + second
        return Budget(max(first.epsilon, second.epsilon), max(first.delta, second.delta))

    @cached_property
    def parameters(self) -> Mapping[str, int | str]:
        """All steps; zeros for a middle step that there is not."""
        middle, step = self.middle, None if self.middle is None else self.middle.noise
        found: Mapping[str, int | str] = {
            "coarse_users": self.coarse.users,
            "coarse_exponent": self.coarse.exponent,
            "coarse_per_user": self.coarse.per_user,
            "coarse_bits": self.coarse.bits,
            "coarse_threshold": self.coarse.threshold,
            "coarse_windows": self.coarse.windows,
            "coarse_delta": str(self.coarse_delta),
            "middle_shift": 0 if middle is None else middle.shift,
            "middle_half": 0 if middle is None else middle.half,
            "middle_per_unit": 0 if step is None else step.per_unit,
            "middle_bits": 0 if step is None else step.bits,
            "reuse": int(self.reuse),
            "shift": self.shift,
            "half": self.half,
            "per_unit": self.noise.per_unit,
            "lattice_bits": self.noise.bits,
            "sampling_words": str(self.chance.words),
            **squares_parameters(self.squares),
        }
        return found

    @cached_property
    def noise_scale(self) -> float:
        """Of the final step, in the value's unit."""
        return self.noise.scale * self._unit

    @property
    def supposes(self) -> str:
        """A distribution that is symmetric."""
        return " if the distribution is symmetric"

    @property
    def bias_bound(self) -> float:
        """None, for symmetric distributions."""
        return 0.0

    @cached_property
    def setting(self) -> Setting:
        """What the certificate depends on, besides the final step's width and noise."""
        return Setting(
            self.coarse,
            self.moments,
            float(self.final.squares),
            self.reuse,
            float(self.chance.exact),
            self.farthest,
            self.middle,
        )

    @property
    def failure_bound(self) -> float:
        """Largest probability that the coarse step fails."""
        return self.setting.failure_bounds.fail

    @cached_property
    def variance_bound(self) -> float:
        """`Setting.variance` at c, with ticks and noise."""
        noise = self.noise.variance * self._unit**2
        tick = self.half_width / self.half
        return self.setting.variance(self.half_width, noise, tick) * OUTWARD

    @cached_property
    def _unit(self) -> float:
        """One tick of the weighed sum, as a change of the mean in the value's unit."""
        return math.ldexp(1.0, self.coarse.exponent - self.shift) / self.final.total

    def release(self, values: NDArray[np.float64], source: Noise) -> Drawn:
        """As `Estimator.release`, whatever the order of users of equal weight."""
        if not self.reuse:
            values = values[self.weights.shuffled(source, _ORDER)]
        return super().release(values, source)

    def _draw(self, values: NDArray[np.float64], source: Noise) -> list[Drawn]:
        exponent, users = self.coarse.exponent, self.coarse.users
        first = values[:, :users]
        places = Places.of(first, exponent)
        guess = self.coarse.guess(places, source)
        if self.middle is not None:
            guess = self.middle.better(places, guess, source)
        second = values if self.reuse else values[:, users:]
        found = ticks(Places.of(second, exponent), guess, self.shift, self.half)
        sums: list[int] = (found @ self.final.number).tolist()
        noisy = self.noise.add(sums, source, _FINAL)
        # Drawn whether or not there is a guess: the number of draws is the same.
        squares = self._squares(found, source)
        tick = Fraction(2) ** (exponent - self.shift)
        terms = second, np.zeros_like(second)
        fallback = sampled_means(self.final, self.chance, terms, source)
        failed: list[bool] = guess.failed.tolist()
        return [
            Drawn(fallback[run], failed=True)
            if fails
            else self._succeeded(
                guess.exactly(run, exponent), noisy[run] / self.final.total * tick, squares[run]
            )
            for run, fails in enumerate(failed)
        ]

    def _squares(self, found: NDArray[np.int64], source: Noise) -> list[Fraction | None]:
        """Sums of squares about the guess with noise, one a run, if they are released."""
        if self.squares is None or self.centred is None:
            return [None] * len(found)
        return [*self.centred.release(found, self.squares, source)]

    @staticmethod
    def _succeeded(about: Fraction, moved: Fraction, total: Fraction | None) -> Drawn:
        """The estimate about a guess, with squares if there are."""
        squares = None if total is None else Squares(about, total)
        return Drawn(about + moved, failed=False, squares=squares)
