"""Attacks on unbiased means: orders of rows, far and masked values, damaged plans, wide grids."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import shoal
from shoal import documents, unbiased
from shoal.errors import DataError, DocumentError, InputError
from shoal.means.estimators.coarse import Coarse, Places
from shoal.means.one_value_per_user import UserValues
from shoal.unbiased import Moment, UnbiasedPlan

pytestmark = pytest.mark.audit

MOMENTS = (Moment(2, 1), Moment(8, 1.8))


def split(n: int = 3000, **wanted: Any) -> UnbiasedPlan:
    """A symmetric mean whose users are in one of two parts."""
    return unbiased.plan(
        "symmetric_mean", n, moment=MOMENTS, epsilon=1, delta="1e-6", reuse=False, **wanted
    )


def test_rows_in_the_order_of_their_values_do_no_harm() -> None:
    """Users of sorted rows are in random parts; the estimate errs within its certificate.

    Unmixed, the last step would hold the largest values: off by 0.42, 14 certified errors. Chance:
    the mean of ten estimates errs by 0.3 certified errors of one; 3 of them are ten deviations.
    """
    plan = split()
    values = np.sort(np.random.default_rng(0).normal(size=plan.n))
    for rows in (values, values[::-1]):
        found = [plan.release(rows, noise=shoal.Simulated(seed)).value for seed in range(10)]
        assert abs(np.mean(found) - values.mean()) <= 3 * plan.rmse_bound
    unmixed = plan.estimator.runs(np.tile(values, (10, 1)), shoal.Simulated(1))
    assert abs(np.mean([float(x.value) for x in unmixed]) - values.mean()) > 10 * plan.rmse_bound


def test_users_of_equal_weight_are_mixed_evenly() -> None:
    """All orders of equal weights are as likely (chi-square, chance 1e-9), and weights stay put."""
    weights = unbiased.plan(
        "symmetric_mean",
        [1, 1, 1, 1, *[2] * 500],
        moment=MOMENTS,
        epsilon=9,
        delta="1e-3",
        weights="counts",
    ).estimator.weights
    runs, seen = 4800, dict.fromkeys(itertools.permutations(range(4)), 0)
    for seed in range(runs):
        order = weights.shuffled(shoal.Simulated(seed), 9)
        seen[tuple(order[:4].tolist())] += 1
    assert (weights.number[order] == weights.number).all()
    assert np.array_equal(np.sort(order), np.arange(weights.users))
    chi = sum((count - runs / 24) ** 2 / (runs / 24) for count in seen.values())
    # The quantile of 23 degrees of freedom at 1 - 1e-9; an order kept half of the time is far off.
    assert chi < 90


def test_one_users_values_move_no_other_users_mean() -> None:
    """Sums of other users are the same to the last bit, whatever is between their records."""
    rng = np.random.default_rng(2)
    who = rng.integers(0, 40, 2000)
    values = np.exp(rng.normal(0, 20, 2000))
    other = np.where(who == 7, -1e300, values)
    one, two = UserValues.of(values, who), UserValues.of(other, who)
    assert np.array_equal(one.count, two.count)
    assert int((one.value != two.value).sum()) == 1


def test_masked_values_are_missing_values() -> None:
    """What is behind a mask is not read; a mask that hides nothing is none."""
    hidden = np.ma.masked_array([1.0, 1e6], mask=[False, True])
    with pytest.raises(DataError, match="missing"):
        UserValues.of(hidden)
    assert UserValues.of(np.ma.masked_array([1.0, 2.0])).value.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("farthest", [2.0**60, 2.0**300])
def test_a_certificate_ends_before_values_are_cut_off(farthest: float) -> None:
    """Values beyond 2^61 bins are read as that: a mean there would err by all of its size."""
    with pytest.raises(InputError, match="farthest"):
        split(farthest=farthest)


def test_the_certificate_holds_at_the_farthest_mean() -> None:
    """As far as can be asked for: everybody at one point, found to within the noise."""
    far = 2.0**59
    plan = split(farthest=far)
    for sign in (-1, 1):
        found = plan.release(np.full(plan.n, sign * far), noise=shoal.Simulated(1))
        assert abs(found.value - sign * far) <= 20 * plan.rmse_bound
    stated = json.loads(documents.canonical_bytes(plan.to_document()))
    stated["request"]["farthest"] = 2.0**200
    with pytest.raises(DocumentError):
        UnbiasedPlan.from_document(stated)


@pytest.mark.parametrize(
    ("interval", "size", "bias"),
    [
        ((5.0, 5.001), 1e-90, 1e-91),
        ((95.367431640625, 95.367431640625), 2.0**-20, 2.0**-20 / 10),
        ((1e6, 1e6), 0.01, 1e-3),
        ((-1e15, 1e15), 0.1, 1e-4),
    ],
)
def test_a_bias_budget_holds_far_from_0(
    interval: tuple[float, float], size: float, bias: float
) -> None:
    """Edges that are rounded inwards would leave less than the margin, or none."""
    made = unbiased.plan(
        "clipped_mean", 100, moment=Moment(2, size), epsilon=1, interval=interval, bias=bias
    )
    assert made.bias_bound <= bias
    assert UnbiasedPlan.from_document(made.to_document()).bias_bound <= bias


@pytest.mark.parametrize("claims", [None, 1, "x", [], True])
def test_claims_that_are_no_object_are_damage(claims: object) -> None:
    """The error is the document's."""
    with pytest.raises(DocumentError):
        UnbiasedPlan.from_document({**split().to_document(), "claims": claims})


def test_a_plan_is_what_was_wished_for() -> None:
    """A split that says all users are in both parts is damage."""
    stated = split().to_document()
    stated["request"]["reuse"] = True
    with pytest.raises(DocumentError):
        UnbiasedPlan.from_document(stated)


def test_the_same_question_has_the_same_bytes() -> None:
    """Whole numbers or floats: a ledger knows the release again and charges nothing."""
    one, other = (
        unbiased.plan("clipped_mean", 9, moment=Moment(2, 1), epsilon=1, interval=ends, bias=bias)
        for ends, bias in (((0, 1), 1), ((0.0, 1.0), 1.0))
    )
    assert documents.canonical_bytes(one.to_document()) == documents.canonical_bytes(
        other.to_document()
    )


@pytest.mark.parametrize("windows", [1, 2])
def test_a_slip_is_never_rounded_to_0(windows: int) -> None:
    """A threshold far above leaves a chance that no float holds: it is given upwards."""
    coarse = Coarse(10, 0, 1, 0, 900, windows)
    assert 1e-300 > coarse.delta > 0
    assert coarse.loss >= Fraction(2) + (windows - 1) * Fraction(coarse.delta)


def test_places_are_not_shown() -> None:
    """Private values have no representation."""
    assert "12345" not in repr(Places.of(np.array([[12345.0]]), 0))


class Fixed:
    """Offset, coin and noise that are given."""

    simulated = True

    def __init__(self, offset: int, coin: int, noise: list[int]) -> None:
        self.words = {4: offset << 4, 6: coin << 63}
        self.noise = noise

    def bits(self, size: int, draw: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """The same word for all."""
        return np.full(size, self.words[draw], dtype=np.uint64)

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The noise in the order of the slots."""
        assert (lattice_bits, draw) == (0, 5)
        return [x + z for x, z in zip(steps, self.noise, strict=True)]

    def add_gaussian(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """Not used."""
        raise NotImplementedError

    def select(self, scores: Any, scale: float, draw: int) -> int:
        """Not used."""
        raise NotImplementedError


def exact(value: float, exponent: int) -> Fraction:
    """The multiple of 2^-60 bins, within 2^61 bins, that a value is read as."""
    bins = Fraction(value) / Fraction(2) ** exponent
    return Fraction(round(min(max(bins, Fraction(-(2**61))), Fraction(2**61)) * 2**60), 2**60)


def guessed(places: list[Fraction], source: Fixed, windows: int) -> Fraction | None:
    """The guess by rational arithmetic: 2 steps a user, a threshold of 5."""
    offset = Fraction(2 * (source.words[4] >> 4) + 1, 2**61) - Fraction(1, 2)
    slots: list[int] = []
    for place in places:
        if windows == 1:
            slots.append(math.floor(place - offset + Fraction(1, 2)))
        else:
            slots += [math.floor(place - offset), math.floor(place - offset) + 1]
    slots.sort()
    score = {k: 2 * slots.count(k) + source.noise[slots.index(k)] for k in slots}
    most = max(score.values())
    tied = [k for k in score if score[k] == most]
    if most < 5:
        return None
    return (max(tied) if source.words[6] else min(tied)) + offset


@pytest.mark.parametrize("windows", [1, 2])
def test_guesses_are_those_of_rational_arithmetic(windows: int) -> None:
    """Huge, tiny, tied and extreme: the code is the mechanism whose privacy was enumerated."""
    rng = np.random.default_rng(windows)
    bases = (0.0, 0.3, 1e5, 2.0**55, 2.0**62, -(2.0**62), 1e150, 2.0**-300)
    failed = 0
    for case in range(1500):
        exponent = int(rng.choice([0, -3, 5]))
        users = int(rng.integers(1, 6))
        steps = rng.choice([0, 1, 0.5, -0.5, 0.25, float(rng.normal(0, 2))], users)
        values = bases[case % len(bases)] + steps * 2.0**exponent
        offset = (0, 2**60 - 1, int(rng.integers(2**60)))[case % 3]
        noise = rng.integers(-3, 4, users * windows).tolist()
        source = Fixed(offset, case // 3 % 2, noise)
        found = Coarse(users, exponent, 2, 0, 5, windows).guess(
            Places.of(values[None, :], exponent), source
        )
        truth = guessed([exact(x, exponent) for x in values.tolist()], source, windows)
        failed += truth is None
        assert bool(found.failed[0]) is (truth is None)
        assert truth is None or found.exactly(0, 0) == truth
    assert 100 < failed < 1400
