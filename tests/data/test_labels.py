"""Outcomes that are labels: one of them that is unknown shows nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.errors import DataError
from shoal.trials import Space

pytestmark = pytest.mark.unit

SPACE = Space.ordinal(["low", "mid", "high"])


@pytest.mark.parametrize("odd", ["Low", "", " mid", "9"])
@pytest.mark.parametrize(
    "form", [list, pa.array, pd.Series, pd.Categorical, lambda x: np.array(x, dtype=object)]
)
def test_a_text_that_is_no_label_is_not_told_of(odd: str, form: Any) -> None:  # noqa: ANN401
    """G-CANARY: no error depends on one outcome; an unknown text counts as the first level."""
    assert SPACE.numbers(form(["mid", odd, "high"])).tolist() == [1, 0, 2]
    assert SPACE.numbers(form(["mid", "low", "high"])).tolist() == [1, 0, 2]


@pytest.mark.parametrize("odd", [3, 0.5, True, b"low", ("low",)])
def test_an_object_that_is_no_text_is_not_told_of(odd: object) -> None:
    """G-CELLWISE: next to any other cell it counts as the first level."""
    for cells in (["high", odd], np.array(["high", odd], dtype=object)):
        if isinstance(cells, np.ndarray) and cells.ndim != 1:
            continue
        assert SPACE.numbers(cells).tolist() == [2, 0]


@pytest.mark.parametrize("absent", [None, float("nan"), pd.NA, pd.NaT])
def test_what_is_missing_is_missing(absent: object) -> None:
    """Missing outcomes are told from texts that are no labels."""
    assert np.isnan(SPACE.numbers(["low", absent])).tolist() == [False, True]


def test_the_type_of_a_column_decides() -> None:
    """Whole numbers are labels where all labels are; no other type is read as texts."""
    whole = Space.ordinal(["1", "2", "3"])
    assert whole.numbers(np.array([3, 1, 9])).tolist() == [2, 0, 0]
    for space, column in ((SPACE, np.array([1, 2])), (whole, np.array([1.0, 2.0]))):
        with pytest.raises(DataError, match="outcomes of another kind"):
            space.numbers(column)
