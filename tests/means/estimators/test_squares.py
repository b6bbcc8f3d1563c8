"""Squares beside a sum: they cost nothing, are exact and even, and make honest intervals."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal import unbiased
from shoal.errors import InputError
from shoal.means.estimators.base import Drawn
from shoal.means.estimators.coarse import Coarse
from shoal.means.estimators.middle import Middle
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.means.estimators.normal import Squares
from shoal.means.estimators.sampled import Chance
from shoal.means.estimators.squares import Centred, NoisySquares
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.estimators.weights import Weights
from shoal.privacy.noise import Noise, Simulated
from shoal.theory.clipping import Moment

pytestmark = pytest.mark.oracle

MOMENTS = (Moment(2, 1), Moment(8, 1.8))
REACH = 128


def centred(parts: int) -> Centred:
    """Two users, one twice as heavy, and noise in which steps are hardly finer than ticks."""
    weights = Weights(np.array([1, 2]))
    # A tick has so many parts: values move by 2R/c ticks.
    ticks = 2 * REACH // parts
    noise = NoisySum(2 * ticks, 3 * ticks, per_unit=64, bits=12)
    return Centred(noise, weights, REACH, parts, Fraction(1))


def losses(part: Centred, squares: NoisySquares) -> tuple[Fraction, Fraction]:
    """The most that a user loses by sum and squares, and the most where no value goes through."""
    values = np.arange(-REACH, REACH + 1, part.parts)
    both = np.stack(np.meshgrid(values, values, indexing="ij"), axis=-1)
    number = np.array(part.in_steps(both.reshape(-1, 2), squares)).reshape(both.shape[:2])
    unit = 1 << squares.bits
    most = inside = 0
    for user, weight in enumerate(part.weights.number.tolist()):
        along = np.moveaxis(number, user, 0)
        for by in range(1, len(values)):
            # Steps of the sum and of the squares, over c 2^i 2^j.
            moved = by * part.parts * weight * part.noise.per_unit * unit
            found = int(np.abs(along[by:] - along[:-by]).max())
            loss = moved + (found * part.parts << part.noise.bits)
            most = max(most, loss)
            inside = max(inside, loss) if by < len(values) - 1 else inside
    whole = part.parts * unit << part.noise.bits
    return Fraction(most, whole), Fraction(inside, whole)


@pytest.mark.parametrize("parts", [1, 2])
def test_squares_beside_the_sum_cost_nothing(parts: int) -> None:
    """Every pair of neighbours: never more than the sum's own loss, which is attained.

    Nor are the squares noisier than they need to be: moves inside the range lose 99% of it, too.
    """
    part = centred(parts)
    most, inside = losses(part, part.fit())
    assert most == part.noise.loss
    assert Fraction(99, 100) * most <= inside <= most


@pytest.mark.parametrize("parts", [1, 2])
def test_a_fifth_less_noise_on_the_squares_costs_something(parts: int) -> None:
    """The enumeration sees it, and so does whoever makes an estimator of it."""
    part = centred(parts)
    found = part.fit()
    less = NoisySquares(found.step * 4 // 5, found.bits)
    assert losses(part, less)[0] > part.noise.loss
    assert part.is_free(found)
    assert not part.is_free(less)


@pytest.mark.parametrize("method", ["clipped_mean", "symmetric_mean"])
def test_planned_squares_are_free_and_nearly_the_least(method: str) -> None:
    """The loss is that without them, to the last digit; a part in 400 less costs."""
    for users in (60, 400, 3000):
        wanted = planned(method, users)
        part = wanted.estimator.centred
        assert part is not None
        assert wanted.estimator.squares == part.fit()
        without = planned(method, users, interval_by="certified")
        assert wanted.estimator.loss == without.estimator.loss
        found = part.fit()
        assert not part.is_free(NoisySquares(found.step * 399 // 400, found.bits))
        with pytest.raises(InputError, match="cost something"):
            replace(wanted.estimator, squares=NoisySquares(found.step * 4 // 5, found.bits))


def planned(method: str, users: int, **more: Any) -> unbiased.UnbiasedPlan:
    """A plan of a method."""
    wanted: dict[str, dict[str, Any]] = {
        "clipped_mean": {"interval": (-1, 1), "bias": 0.01, "epsilon": 1},
        "sampled_mean": {"interval": (-1, 1), "delta": "1/4", "publish_values": True},
        "clipped_plus_residual": {
            "interval": (-1, 1), "epsilon": 1, "delta": "1/100", "publish_values": True,
        },
        "symmetric_mean": {"epsilon": 1, "delta": "1e-6"},
    }  # fmt: skip
    return unbiased.plan(method, users, moment=MOMENTS, **wanted[method], **more)


def test_sums_of_squares_are_exact() -> None:
    """The heaviest weights and the largest values, against Python's whole numbers."""
    rng = np.random.default_rng(3)
    for number in ([1, 5, 2**28], [2**14 + 1] * 7, [1] * 50, [1, 2**15 - 1, 2**15, 2**29 + 3]):
        weights = Weights(np.array(number))
        noise = NoisySum(2 * weights.largest, weights.total, 2**6, 20)
        part = Centred(noise, weights, 2**22 + 2, 1, Fraction(1))
        whole = rng.integers(-(2**22), 2**22, (5, len(number)))
        whole[0], whole[1] = 2**22 + 2, -(2**22) - 2
        for step in (1, 1000):
            truth = [
                -(-sum(w * w * y * y for w, y in zip(number, row, strict=True)) // step)
                for row in whole.tolist()
            ]
            assert part.in_steps(whole, NoisySquares(step, 20)) == truth


@dataclass
class Mirror:
    """Noise that is given, and mirrored where data are; it notes what is drawn."""

    seed: int
    sign: int = 1
    simulated: bool = True
    asked: list[tuple[int, int, int]] = field(default_factory=list)

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """Offset and coin are mirrored; sampling is the same."""
        self.asked.append((draw, size, 64))
        words = np.random.default_rng([self.seed, draw]).integers(0, 2**64, size, np.uint64)
        return ~words if self.sign < 0 and draw in (4, 6) else words

    def add_laplace(self, steps: list[int], bits: int, draw: int = 0) -> list[int]:
        """Noise of sums is mirrored, that of squares and counts is not."""
        self.asked.append((draw, len(steps), bits))
        sign = self.sign if draw in (7, 8) else 1
        rng = np.random.default_rng([self.seed, draw])
        # The same for every bin, whose order mirroring turns round.
        noise = round(float(rng.laplace()) * 2**bits)
        return [x + sign * noise for x in steps]


def symmetric(weights: Weights, *, more: bool) -> Symmetric:
    """A last step that clips, with squares; with `more` windows and a middle step, too."""
    users, half = weights.users, 3 * 2**18
    noise = NoisySum.fit(2 * half * weights.largest, half * weights.total, Fraction(4))
    return Symmetric(
        weights,
        MOMENTS,
        coarse=Coarse.fit(users, 1, Fraction(3, 2), Fraction(1, 20), 2 if more else 1),
        reuse=True,
        shift=20,
        half=half,
        noise=noise,
        chance=Chance(2**62),
        coarse_delta=Fraction(1, 20),
        farthest=1.0,
        middle=Middle.fit(users, 1, 1.5, Fraction(3)) if more else None,
    ).with_squares()


def drawn(part: Symmetric, values: NDArray[np.float64], source: Mirror) -> Drawn:
    """One release."""
    given: Any = source
    randomness: Noise = given
    return part.release(values, randomness)


@pytest.mark.parametrize("more", [False, True])
def test_mirrored_data_give_mirrored_estimates_and_intervals(*, more: bool) -> None:
    """Mirrored noise too: exactly minus the estimate, the same squares and widths."""
    part = symmetric(Weights(np.array([1] * 8 + [2] * 4)), more=more)
    failed = 0
    for seed in range(60):
        values = np.random.default_rng(seed).normal(seed % 3, 0.7, 12)
        one, other = (drawn(part, sign * values, Mirror(seed, sign)) for sign in (1, -1))
        assert one.failed == other.failed
        assert one.value == -other.value
        failed += one.squares is None
        if one.squares is not None and other.squares is not None:
            low, high = part.stated_interval(one, 0.95)
            assert part.stated_interval(other, 0.95) == (-high, -low)
            assert one.squares.total == other.squares.total
            assert one.squares.about == -other.squares.about
    assert failed < 50


def test_neighbours_take_the_same_draws() -> None:
    """As many numbers of the same scales, whether or not the coarse step fails."""
    part = symmetric(Weights.equal(12), more=True)
    near, far = np.zeros(12), np.array([1e300, -1e300, *range(0, 1000, 100)])
    ended = set()
    for seed in range(12):
        asked = []
        for values in (near, far):
            source = Mirror(seed)
            found = drawn(part, values.astype(float), source)
            assert (found.squares is None) == found.failed
            ended.add(found.failed)
            asked.append(source.asked)
        assert asked[0] == asked[1]
        assert 10 in {draw for draw, _, _ in asked[0]}
    assert ended == {True, False}


def test_variances_are_those_of_the_sample() -> None:
    """Without noise: the unbiased sample variance of the mean, plus what noise is taken off."""
    rng = np.random.default_rng(2)
    for number in ([1] * 9, [1, 1, 2, 3, 3]):
        weights, about = Weights(np.array(number)), 7
        noise = NoisySum(2 * REACH * weights.largest, REACH * weights.total, 2**10, 12)
        part = Centred(noise, weights, REACH, 1, Fraction(1))
        y = rng.integers(-REACH, REACH, len(number)).tolist()
        mean = Fraction(sum(w * x for w, x in zip(number, y, strict=True)), weights.total)
        total = Fraction(sum(w * w * x * x for w, x in zip(number, y, strict=True)))
        estimator = symmetric(weights, more=False)
        object.__setattr__(estimator, "centred", part)
        object.__setattr__(estimator, "squares", part.fit())
        spread = estimator.spread(
            Drawn(mean + about, failed=False, squares=Squares(Fraction(about), total))
        )
        assert spread is not None
        share = weights.squares
        own = total / weights.total**2 - share * mean**2
        truth = (own + 2 * share * part.scale**2) / (1 - share)
        assert spread.variance * float(part.scale) ** 2 == pytest.approx(float(truth), rel=1e-12)
        if weights.largest == 1:
            plain = np.var(y, ddof=1) / len(y)
            added = float(2 * share * part.scale**2 / (1 - share))
            assert float(truth) - added == pytest.approx(float(plain), rel=1e-9)
        assert spread.degrees == pytest.approx(float(1 / share - 1))


@pytest.mark.parametrize("method", ["sampled_mean", "clipped_plus_residual"])
def test_what_is_sampled_has_certified_intervals(method: str) -> None:
    """By default, and another wish is refused with what to do."""
    made = planned(method, 400)
    assert made.interval_by == "certified"
    assert "normal" not in made.release(np.zeros(400)).manifest["results"]
    with pytest.raises(InputError, match='interval_by="certified"'):
        planned(method, 400, interval_by="normal")
    with pytest.raises(InputError, match="would cost something"):
        replace(made.estimator, squares=NoisySquares(10, 10))


def test_unusable_wishes_are_refused() -> None:
    """Names, steps, few users and confidences, before anything is drawn."""
    for wrong in ("Normal", "chebyshev", 1, True, ["normal"]):
        with pytest.raises(InputError, match="interval_by is"):
            planned("clipped_mean", 400, interval_by=wrong)
    for step, bits in ((0, 3), (-1, 3), (1, -1), (1, 55), (True, 3), (1.0, 3)):
        with pytest.raises(InputError, match="cost something"):
            NoisySquares(step, bits)
    assert planned("clipped_mean", 1).interval_by == "certified"
    with pytest.raises(InputError, match="fewer than two"):
        planned("clipped_mean", 1, interval_by="normal")
    normal = planned("clipped_mean", 400)
    certified = planned("clipped_mean", 400, interval_by="certified")
    for confidence in (0.5, 0.999):
        with pytest.raises(InputError, match=r"from 0\.8 to 0\.995"):
            normal.release(np.zeros(400), confidence=confidence)
        with pytest.raises(InputError, match=r"from 0\.8 to 0\.995"):
            normal.expected_half_width(confidence)
        assert certified.release(np.zeros(400), confidence=confidence).interval_by == "certified"


@pytest.mark.parametrize("method", ["clipped_mean", "symmetric_mean"])
def test_certified_intervals_are_those_without_squares(method: str) -> None:
    """They stay to be had beside normal ones, and alone, with the documents of old."""
    values = np.random.default_rng(1).normal(0.3, 1, 2000)
    normal, certified = (
        planned(method, 2000, interval_by=by).release(values, noise=Simulated(4))
        for by in ("normal", "certified")
    )
    assert normal.value == certified.value
    assert normal.certified_interval == certified.certified_interval == certified.interval
    assert "interval_by" not in certified.manifest["plan"]["request"]
    assert certified.manifest["results"].keys() == {"exact", "value", "interval", "coarse_failed"}
    width, wide = (found.interval[1] - found.interval[0] for found in (normal, certified))
    assert 2 < wide / width < 2.6
    assert "(95%, normal)" in str(normal)
    assert "(95%, certified)" in str(certified)
    assert "normal 95% interval" in str(planned(method, 2000))
    assert math.isclose(normal.plan.estimator.expected_half_interval(0.95), width / 2, rel_tol=0.2)
