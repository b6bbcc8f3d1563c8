"""Arguments in one form or refused in one line; private columns by their type."""

from contextlib import nullcontext
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import checks, mean, trials, unbiased
from shoal.data.columns_in_memory import is_object_column, paired, private_numbers, roles
from shoal.data.counts import Counts
from shoal.errors import DataError, InputError

N = 40


@pytest.mark.parametrize(
    "check",
    [
        lambda value: checks.number(value, "x"),
        lambda value: checks.whole(value, "x", most=9),
        lambda value: checks.text(value, "x"),
        lambda value: checks.choice(value, ("a", "b"), "x"),
        lambda value: checks.items(value, "x"),
        lambda value: checks.mapping(value, "x"),
        lambda value: checks.path(value, "x"),
        lambda value: checks.amount(value, "x"),
        lambda value: checks.check_confidence(value),
    ],
)
def test_what_is_of_no_use_is_refused_in_one_line(check: Any) -> None:
    """Whatever it is; nothing is shown of an array but its type."""
    for value in (None, True, float("nan"), "a\0b", np.array([[431.5]]), object(), {1: 2}):
        with pytest.raises(InputError) as refused:
            check(value)
        assert "431.5" not in str(refused.value)
        assert "\n" not in str(refused.value)


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=5), st.data())
def test_a_decimal_is_read_alike_with_any_number_of_digits(
    whole: list[int], data: st.DataObject
) -> None:
    """The digits of the longest cell of a column change no other cell."""
    numbers = [Decimal(each).scaleb(-data.draw(st.integers(0, 15))) for each in whole]
    expected = np.array([float(each) for each in numbers])
    for scale in range(15, 60, 11):
        column = pa.array(numbers, pa.decimal256(76, scale))
        np.testing.assert_array_equal(private_numbers(column), expected)


def test_private_numbers_are_read_by_type_or_refused() -> None:
    """Each cell of a list by itself; a text is no number, whatever it spells."""
    for values, expected in (
        ([1, None, 2**70, np.float16(0.5)], [1.0, np.nan, 2.0**70, 0.5]),
        ([[1, None], (2.5, True)], [[1.0, np.nan], [2.5, 1.0]]),
        (pa.array([1, None], pa.uint64()), [1.0, np.nan]),
        (pa.chunked_array([[True], [False]]), [1.0, 0.0]),
        (np.arange(2, dtype="u1"), [0.0, 1.0]),
        ([], []),
    ):
        np.testing.assert_array_equal(private_numbers(values), expected)
    for refused in (
        ["1"], [1, "2"], [10**400], [[1], [2, 3]], [np.timedelta64(1)], pa.array(["1"]), "12", {1},
        np.array([1, None]), np.ma.array([1, 2], mask=[0, 1]), np.array(["1"]), None,
    ):  # fmt: skip
        assert private_numbers(refused) is None


def test_amounts_are_exact() -> None:
    """A float counts as its shortest decimal, in the precision that it has."""
    assert checks.amount(0.1, "x") == checks.amount(np.float32(0.1), "x") == Fraction(1, 10)
    assert checks.amount("1/3", "x") == checks.amount(Fraction(1, 3), "x") == Fraction(1, 3)
    for bad in (-1, "1e9999999", "1_0", "\u0661", float("inf"), np.True_, 10**400, 1j):
        with pytest.raises(InputError):
            checks.amount(bad, "x")


def test_the_private_column_has_no_public_role() -> None:
    """By its name whatever the case of its letters, and as the object itself."""
    for public in ({"cell": ["dest", "SPEED"]}, {"user": "Speed", "cell": None}):
        with pytest.raises(InputError, match="the value column 'speed' is also given as"):
            roles({"value": "speed", "other": None}, public)
    roles({"value": "speed"}, {"user": "tail", "cell": ["dest"]})
    values = np.arange(N)
    domain, moment = trials.Domain.counts(0, N), unbiased.Moment(2, 5)
    clipped: dict[str, Any] = {"interval": (0, N), "bias": 1, "moment": moment, "epsilon": 1}
    study = trials.Experiment(values % 2, covariates={"age": values})
    named = trials.Experiment(values % 2, unit=values)
    for call in (
        lambda: named.table(domain, 2, mechanism="uniform_prior").release(values, named),
        lambda: study.ask().effect().plan(domain, 1).release(values, study),
        lambda: mean.auto(values, values, bounds=(0, N), epsilon=1),
        lambda: mean.vector(values, values, bounds=(0, 9), epsilon=1),
        lambda: unbiased.clipped_mean(values, values, **clipped),
    ):
        with pytest.raises(InputError, match="column is also given as "):
            call()
    frame = pd.DataFrame({"bought": values % 2, "arm": values % 2})
    matrix = np.arange(4.0 * N).reshape(N, 4)
    for one, other, same in (
        (frame["bought"], frame["bought"], True),
        (frame["bought"], frame["arm"], False),
        (values, values[::-1], True),
        (matrix[:, 1:], matrix[:, 2], True),
        (matrix[:, 1:], matrix[:, 0], False),
        (pa.table({"a": values})["a"], pa.table({"a": values})["a"], True),
        ([0, 1], [0, 1], False),
    ):
        with pytest.raises(InputError) if same else nullcontext():
            paired({"outcome": one}, {"cluster": other})


def test_columns_with_other_indexes_are_refused() -> None:
    """In every call of two columns; equal indexes, and columns without one, are paired by place."""
    at = np.arange(40)
    whole = pd.Series(at % 2)
    moved = pd.Series(at % 2, index=at[::-1])
    study = trials.Experiment(whole)
    plan = study.ask().effect().plan("binary", 1)
    named = trials.Experiment(at % 2, unit=at)
    released = named.table("binary", 4).release(at % 2, named)
    moment = {"moment": unbiased.Moment(2, 1), "epsilon": 1, "interval": (0, 1), "bias": 0.1}
    for call in (
        lambda column: trials.Experiment(whole, covariates={"age": column}),
        lambda column: trials.Experiment(whole, keep=column >= 0),
        lambda column: plan.release(column, study),
        lambda column: released.estimate(assigned=whole + at // 10 * 2, unit=column * 0 + at),
        lambda column: mean.auto(column, whole, bounds=(0, 1), epsilon=1),
        lambda column: mean.vector(pd.concat([column, column], axis=1), whole, bounds=(0, 2),
                                   epsilon=1),
        lambda column: unbiased.clipped_mean(column, whole, **moment),
        lambda column: Counts.from_counts(pd.Series(at), {"place": column}, np.ones(40, int)),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"has another index than the .*give .to_numpy"):
            call(moved)
        call(pd.Series(at % 2, index=list(at)))
    twice = pd.DataFrame({"one": at, "other": at}, index=at // 20)
    paired({"one": twice["one"]}, {"other": twice["other"] * 2})
    for other in (twice.iloc[::-1], pd.concat([twice.iloc[:20], twice.iloc[20:]])):
        with pytest.raises(DataError, match="are of different frames, with an index that repeats"):
            paired({"one": twice["one"]}, {"other": other["other"].set_axis(twice.index[:])})
    for pair in ((whole, [*moved]), (pa.array(whole), moved), ([0, 1], (1, 0))):
        paired({}, {"one": pair[0], "other": pair[1]})


def test_an_unknown_option_is_named() -> None:
    """Of a function that passes its options on."""
    with pytest.raises(InputError, match="has no option 'seed'"):
        mean.auto([1.0], [1], bounds=(0, 1), epsilon=1, seed=1)


def test_objects_of_frames_are_told_by_their_type() -> None:
    """Also categories of objects."""
    mixed = pd.Series([1, "a"], dtype=object)
    assert is_object_column(mixed)
    assert is_object_column(mixed.astype("category"))
    assert not is_object_column(shoal.unbiased.Moment(2, 1))
