"""Responses: exact probabilities, priors that keep their promises, debiasing without bias."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.trials.parameters import ONE, Parameters, calibrate
from shoal.trials.response import debiased, prior_of, respond, tabulate

pytestmark = pytest.mark.statistics

SIGMAS = 6.11


@st.composite
def histograms(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Parameters]:
    """Noisy steps of a few groups, however wild, and parameters."""
    levels = draw(st.integers(2, 9))
    share = draw(st.floats(1e-8, 1.0))
    sigma = draw(st.sampled_from([0.5, 3.0, 1e4]))
    parameters = calibrate(
        range(levels), epsilon=Fraction(9), delta=Fraction(0), floor=share / levels, sigma=sigma
    )
    rows = st.lists(st.integers(-(2**40), 2**40), min_size=levels, max_size=levels)
    noisy = np.array(draw(st.lists(rows, min_size=1, max_size=4)), dtype=np.int64)
    sizes = draw(st.lists(st.integers(1, 10**6), min_size=len(noisy), max_size=len(noisy)))
    return noisy, np.array(sizes), parameters


@given(histograms())
def test_priors_sum_to_one_and_keep_the_floor(
    found: tuple[np.ndarray, np.ndarray, Parameters],
) -> None:
    """In whole numbers, for any noisy histogram: the response's loss rests on this."""
    noisy, sizes, parameters = found
    prior = prior_of(noisy, sizes, parameters)
    assert (prior.sum(axis=1) == ONE).all()
    assert (prior >= parameters.floor).all()


@given(histograms())
def test_priors_follow_the_paper(found: tuple[np.ndarray, np.ndarray, Parameters]) -> None:
    """Step 2 of docs/theory/trials.md#the-mechanism, in floating point, to 1e-6."""
    noisy, sizes, parameters = found
    share = np.clip(noisy / (parameters.weight * sizes[:, None]), parameters.gamma, 1.0)
    for row, given_prior in zip(share, prior_of(noisy, sizes, parameters) / ONE, strict=True):
        total = row.sum()
        capacity = row - parameters.gamma if total > 1 else 1 - row
        expected = row + (capacity / capacity.sum() * (1 - total) if capacity.sum() > 0 else 0)
        assert np.allclose(given_prior, expected, atol=1e-6)


@given(st.integers(2, 40))
def test_a_uniform_prior_is_as_even_as_whole_numbers_allow(levels: int) -> None:
    """All levels within K of each other, all at least the floor."""
    parameters = calibrate(range(levels), epsilon=Fraction(1), delta=Fraction(0))
    prior = prior_of(np.zeros((1, levels), np.int64), np.array([7]), parameters)
    assert prior.sum() == ONE
    assert prior.min() >= parameters.floor
    assert prior.max() - prior.min() <= levels


def test_a_word_decides_exactly() -> None:
    """The high half keeps or replaces, the low half draws; every boundary is in place."""
    parameters = Parameters((0, 1, 2), floor=ONE // 8, replaced=ONE // 4, weight=1)
    prior = np.array([[ONE // 2, ONE // 4, ONE // 4], [ONE // 4, ONE // 4, ONE // 2]])
    low = np.array([0, ONE // 2 - 1, ONE // 2, 3 * ONE // 4 - 1, 3 * ONE // 4, ONE - 1])
    words = low.astype(np.uint64)
    for group, expected in ((0, [0, 0, 1, 1, 2, 2]), (1, [0, 1, 2, 2, 2, 2])):
        home = np.full(6, group)
        drawn = respond(np.full(6, 1), home, prior, parameters, words)
        assert drawn.tolist() == expected
        last = words + (np.uint64(ONE // 4 - 1) << np.uint64(32))
        assert respond(np.full(6, 1), home, prior, parameters, last).tolist() == expected
        kept = words + (np.uint64(ONE // 4) << np.uint64(32))
        assert respond(np.full(6, 1), home, prior, parameters, kept).tolist() == [1] * 6


@given(histograms())
@settings(max_examples=50)
def test_debiased_outcomes_are_unbiased(found: tuple[np.ndarray, np.ndarray, Parameters]) -> None:
    """The row of Q times omega is the level itself, by Q's definition."""
    noisy, sizes, parameters = found
    levels = np.linspace(-3.0, 11.0, parameters.levels) ** 3
    prior = prior_of(noisy, sizes, parameters)
    omega = debiased(levels, prior, parameters)
    for q, row in zip(prior / ONE, omega, strict=True):
        lam = parameters.lam
        chances = (1 - lam) * np.eye(len(levels)) + lam * np.outer(np.ones(len(levels)), q)
        scale = np.abs(levels).max() / (1 - lam)
        assert np.allclose(chances @ row, levels, atol=1e-9 * scale)
        assert np.allclose(np.linalg.solve(chances, levels), row, atol=1e-6 * scale)


@pytest.mark.parametrize("source", [OperatingSystem(), Simulated(5)], ids=["system", "simulated"])
def test_responses_have_their_probabilities(source: OperatingSystem | Simulated) -> None:
    """Accepts (1 - lambda) 1 + lambda q, rejects a lambda 3% larger; false alarms below 1e-9."""
    size = 400_000
    parameters = Parameters((0, 1, 2), floor=ONE // 8, replaced=ONE // 2, weight=1)
    prior = np.array([[ONE // 2, ONE // 4, ONE // 4]])
    group = np.zeros(size, dtype=np.int64)
    given_codes = respond(group, group, prior, parameters, source.bits(size, 0))
    share = tabulate(given_codes, group, 1, 3)[0] / size
    truth, wrong = np.array([0.75, 0.125, 0.125]), np.array([0.735, 0.1325, 0.1325])
    slack = SIGMAS * np.sqrt(truth * (1 - truth) / size)
    assert (np.abs(share - truth) <= slack).all()
    assert not (np.abs(share - wrong) <= slack).all()


def test_calibration_never_costs_more() -> None:
    """Over a grid the exact loss is at most epsilon, and within 1e-6 of it."""
    for levels in (2, 3, 12):
        for epsilon in ("0.1", "1", "4", "9"):
            for delta in ("0", "1e-6", "0.01"):
                for floor, sigma in ((None, float("inf")), (0.1 / levels, 100.0)):
                    found = calibrate(
                        range(levels),
                        epsilon=Fraction(epsilon),
                        delta=Fraction(delta),
                        floor=floor,
                        sigma=sigma,
                    )
                    spent = found.epsilon(Fraction(delta))
                    assert spent <= Fraction(epsilon)
                    assert spent >= Fraction(epsilon) * (1 - Fraction(1, 10**5)) - Fraction(
                        1, 10**5
                    )


@pytest.mark.parametrize(
    "changes",
    [
        {"floor": 0.0},
        {"floor": -1.0},
        {"floor": 1e-12},
        {"sigma": 0.1},
        {"sigma": -1.0},
        {"sigma": float("nan")},
        {"sigma": "wide"},
        {"floor": float("nan")},
    ],
)
def test_unusable_parameters_are_refused(changes: dict[str, Any]) -> None:
    """Each with a message; nothing is drawn."""
    with pytest.raises(InputError, match="allowed:"):
        calibrate(range(3), epsilon=Fraction(1), delta=Fraction(0), **changes)
