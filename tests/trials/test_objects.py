"""Outcomes and values of Python objects: refused by their dtype, or read one by one."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from shoal import mean, unbiased
from shoal.errors import DataError
from shoal.trials.space import Space

if TYPE_CHECKING:
    from collections.abc import Callable

CONTENTS: list[list[Any]] = [
    [0.0, 1.0, 1.0],
    [0, 1, 0.5],
    [0, 1, None],
    [True, False, 1],
    [Decimal(0), Decimal(1), Decimal("1e-30")],
    [0, 1, "secret"],
]
FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "numpy": lambda values: np.array(values, dtype=object),
    "pandas": lambda values: pd.Series(values, dtype=object),
}


@pytest.mark.parametrize("form", FORMS)
def test_outcomes_that_are_objects_are_refused_by_their_dtype(form: str) -> None:
    """G-CELLWISE: one message whatever the cells hold, so that no cell decides."""
    told = set()
    for values in CONTENTS:
        with pytest.raises(DataError) as caught:
            Space.binary().numbers(FORMS[form](values))
        told.add(str(caught.value))
    (line,) = told
    assert "outcomes that are Python objects" in line
    assert "astype(float)" in line


@pytest.mark.parametrize("form", FORMS)
def test_values_that_are_objects_are_refused_by_their_dtype(form: str) -> None:
    """G-CELLWISE: means of one cell and unbiased means take no objects either."""
    users, told = np.arange(3), set()
    for values in CONTENTS:
        column = FORMS[form](values)
        for call in (
            lambda column=column: mean.auto(column, users, bounds=(0, 1), epsilon=1),
            lambda column=column: unbiased.clipped_mean(
                column, interval=(0, 1), bias=0.1, moment=unbiased.Moment(2, 1), epsilon=1
            ),
        ):
            with pytest.raises(DataError) as caught:
                call()
            told.add(str(caught.value))
    assert len(told) == 2
    assert all("astype(float)" in line for line in told)


def test_labels_that_are_objects_are_read_one_by_one() -> None:
    """G-CELLWISE: texts are labels in any frame; a number among them is none, whatever the rest."""
    space = Space.ordinal(["1", "2"])
    for form in (*FORMS.values(), list):
        assert space.numbers(form(["1", "2", None]))[:2].tolist() == [0.0, 1.0]
        for values in ([1, 2], [1, "2"], [1.0, "2"]):
            with pytest.raises(DataError, match="one of the space's labels"):
                space.numbers(form(values))


def test_lists_of_decimals_are_no_outcomes() -> None:
    """G-CELLWISE: in one column all would have the digits of the longest."""
    with pytest.raises(DataError, match="one number in every row"):
        Space.bins(0, 1, 3).numbers([Decimal("0.25"), Decimal("0.5")])
