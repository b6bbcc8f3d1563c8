"""Outcome domains: levels, rounding without bias, labels, and what is refused."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shoal.errors import DataError, InputError
from shoal.trials import Experiment
from shoal.trials.domain import Domain, domain_of
from shoal.trials.plan import Request, read_model
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

LEVELS = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=9, unique=True).map(
    lambda found: tuple(sorted(found))
)


@given(LEVELS, st.data())
def test_an_outcome_on_a_level_stays_there(levels: tuple[float, ...], data: st.DataObject) -> None:
    """With either rounding and any fair bits."""
    at = data.draw(st.integers(0, len(levels) - 1))
    word = data.draw(st.integers(0, 2**64 - 1))
    for rounding in ("random", "nearest"):
        domain = Domain(levels, rounding)
        found = domain.encode(
            np.array([levels[at]]), np.array([word], np.uint64), range(len(levels))
        )
        assert found.tolist() == [at]


@given(LEVELS, st.floats(-60, 60), st.integers(2, 9))
def test_random_rounding_keeps_the_mean(
    levels: tuple[float, ...], outcome: float, number: int
) -> None:
    """Over all fair words the mean of the level is the clipped outcome, to 2^-12.

    Words are enumerated on a grid of 2^12: exactly as many of them go up as the share says.
    """
    domain = Domain(levels)
    kept = domain.coarse(min(number, len(levels)))
    words = (np.arange(2**12, dtype=np.uint64) << np.uint64(52)) + np.uint64(1 << 51)
    found = domain.encode(np.full(2**12, outcome), words, kept)
    mean = domain.array[list(kept)][found].mean()
    gap = max(b - a for a, b in pairwise(domain.array[list(kept)]))
    assert abs(mean - np.clip(outcome, levels[0], levels[-1])) <= gap * 2.0**-12


@given(LEVELS, st.floats(-60, 60))
def test_nearest_rounding_is_within_half_a_gap(levels: tuple[float, ...], outcome: float) -> None:
    """The stated bias bound holds, and is attained in the middle of the widest gap."""
    domain = Domain(levels, "nearest")
    found = domain.encode(np.array([outcome]), np.array([0], np.uint64), range(len(levels)))
    clipped = np.clip(outcome, levels[0], levels[-1])
    widest = max(pairwise(levels), key=lambda pair: pair[1] - pair[0])
    most = (widest[1] - widest[0]) / 2
    assert abs(levels[found[0]] - clipped) <= most
    middle = np.array([(widest[0] + widest[1]) / 2])
    at = domain.encode(middle, np.array([0], np.uint64), range(len(levels)))
    assert abs(levels[at[0]] - middle[0]) == pytest.approx(most)


def test_kinds_of_outcomes() -> None:
    """Booleans, whole numbers, floating-point numbers, labels; null is NaN, to be refused later."""
    assert Domain.binary().numbers([True, False, None]).tolist()[:2] == [1.0, 0.0]
    assert np.isnan(Domain.binary().numbers([True, False, None])[2])
    assert Domain.counts(0, 5).numbers(pa.array([1, 2])).tolist() == [1.0, 2.0]
    ordinal = Domain.ordinal(["no", "yes"], [0, 10])
    assert ordinal.numbers(["yes", "no"]).tolist() == [10.0, 0.0]
    assert np.isnan(ordinal.numbers(["yes", None])[1])
    chunks = pa.chunked_array([["no"], ["yes"]]).dictionary_encode()
    assert ordinal.numbers(chunks).tolist() == [0.0, 10.0]


def test_labels_that_are_numbers_are_compared_as_numbers() -> None:
    """Texts, floats beside a gap, decimals; what is no label or no number is the first level."""
    domain, same = Domain.ordinal(["10", "2.50", "-1"], [0, 1, 2]), [1.0, 0.0, 2.0, 0.0, 0.0]
    for column in (
        ["2.5", "1e1", " -1.0", "1e999", "many"],
        pd.Series([2.5, 10, -1, 3, np.inf]),
        pa.array([*map(Decimal, ("2.50", "10", "-1", "7", "8"))]),
    ):
        assert domain.numbers(column).tolist() == same
    for gap in (["2.5", None], pd.Series([2.5, np.nan]), pa.array(["2.5", None])):
        assert np.isnan(domain.numbers(gap)).tolist() == [False, True]
    with pytest.raises(DataError, match="a number if all labels are"):
        Domain.ordinal(["1", "more"]).numbers([1.0, 2.0])
    with pytest.raises(DataError, match="a number if all labels are"):
        domain.numbers([True, False])
    for labels in (["1", "1.0"], ["0", "3", "-0"]):
        with pytest.raises(InputError, match="two labels are equal as numbers"):
            Domain.ordinal(labels)


@pytest.mark.parametrize("domain", [(1, 2), 2, None, Domain])
def test_every_call_says_what_a_space_is(domain: Any) -> None:
    """One message for all; a text is a domain in all."""
    study = Experiment([0, 1] * 200)
    for call in (study.table, study.histogram, study.forecast, study.ask().effect().plan):
        with pytest.raises(InputError, match=r"domain is .*; give binary, .* or a trials.Domain"):
            call(domain, 1)
        call("binary", 1)


@pytest.mark.parametrize("outcomes", [["secret"], [[1, 2]], [{"a": 1}], ["1", 2]])
def test_other_kinds_are_refused_without_showing_them(outcomes: list[object]) -> None:
    """The message says what is allowed and nothing of what was there."""
    with pytest.raises(DataError) as caught:
        Domain.binary().numbers(outcomes)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@loop_over(
    "make",
    [
        lambda: Domain((1.0,)),
        lambda: Domain((1.0, 1.0)),
        lambda: Domain((2.0, 1.0)),
        lambda: Domain((0.0, float("nan"))),
        lambda: Domain((0.0, float("inf"))),
        lambda: Domain((-1e308, 1e308)),
        lambda: Domain((0.0, 1.0), "upwards"),
        lambda: Domain((0.0, 1.0), labels=("one",)),
        lambda: Domain((0.0, 1.0), labels=("one", "one")),
        lambda: Domain.counts(3, 3),
        lambda: Domain.bins(0, 1, 1),
        lambda: Domain.bins(0, 1, 257),
        lambda: Domain.bins(1, 0),
        lambda: Domain(("a", "b")),
        lambda: Domain.binary().coarse(3),
    ],
)
def test_unusable_spaces_are_refused(make: object) -> None:
    """Each message says what to give."""
    with pytest.raises(InputError, match=r"; (allowed: .*; )?give "):
        make()


def test_spaces_from_texts() -> None:
    """All kinds, and what is none."""
    assert domain_of("binary") == Domain.binary()
    assert domain_of("bins:0:100").size == 16
    assert domain_of("bins:0:1:3") == Domain.bins(0, 1, 3)
    assert domain_of("counts:0:2") == Domain.counts(0, 2)
    assert domain_of("levels:1,2,5", "nearest") == Domain((1.0, 2.0, 5.0), "nearest")
    assert domain_of("ordinal:low, high").labels == ("low", "high")
    for text in ("", "binary:1", "counts:1", "counts:a:b", "bins:0", "levels:", "levels:1", "x:1"):
        with pytest.raises(InputError, match=r"; (allowed: .*; )?give "):
            domain_of(text)


@given(LEVELS)
def test_a_space_survives_its_document(levels: tuple[float, ...]) -> None:
    """To JSON and back."""
    domain = Domain(levels, "nearest", tuple(f"label {at}" for at in range(len(levels))))
    assert read_model(Request, Request(domain=domain, epsilon="1").to_document()).domain == domain
    assert Fraction(domain.width) == Fraction(levels[-1]) - Fraction(levels[0])


@pytest.mark.parametrize("levels", [(0, 1, 1 + 2.0**-52, 2), (2000 - 1e-10, 2000, 8000, 1e5, 1e6)])
def test_levels_that_rounding_makes_one_are_refused(levels: tuple[float, ...]) -> None:
    """Differences of neighbours keep digits, or shares of them would be no shares."""
    with pytest.raises(InputError, match="two neighbours"):
        Domain(levels)


@pytest.mark.parametrize("document", [{}, {"a": 1}, "levels", {"levels": [0]}, None])
def test_what_is_no_space_is_refused_in_words(document: Any) -> None:
    """A part too few or too many, or no object at all."""
    with pytest.raises(ValidationError, match="domain"):
        read_model(Request, {"domain": document, "epsilon": "1"})
