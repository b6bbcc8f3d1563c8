"""Options that nothing has are refused by the name of the function that was called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from shoal import mean, trials, unbiased
from shoal.errors import InputError
from tests.support.loop import loop_over

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.unit, pytest.mark.full]

VALUES, USERS = np.arange(20.0), np.arange(20)
CELL: dict[str, Any] = {"bounds": (0, 20), "epsilon": 1}
MOMENT = unbiased.Moment(2, 10)


def called(name: str) -> Callable[..., Any]:
    """A function for one cell, on some records."""
    return lambda **more: getattr(mean, name)(VALUES, USERS, **CELL, **more)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        f"mean.{name}": called(name) for name in mean.__all__ if name.islower() and name != "vector"
    },
    "unbiased.clipped_mean": lambda **more: unbiased.clipped_mean(
        VALUES, interval=(0, 20), bias=1, moment=MOMENT, epsilon=1, **more
    ),
    "unbiased.sampled_mean": lambda **more: unbiased.sampled_mean(
        VALUES, interval=(0, 20), moment=MOMENT, delta=0.1, publish_values=True, **more
    ),
    "unbiased.clipped_plus_residual": lambda **more: unbiased.clipped_plus_residual(
        VALUES, interval=(0, 20), moment=MOMENT, epsilon=1, delta=0.1, publish_values=True, **more
    ),
    "unbiased.symmetric_mean": lambda **more: unbiased.symmetric_mean(
        VALUES, moment=MOMENT, epsilon=1, delta=1e-6, **more
    ),
    "privatize": lambda **more: trials.UniformPrior(1).privatize(
        VALUES > 3, USERS % 2, space=trials.Space.binary(), **more
    ),
}


@loop_over(
    "name",
    FUNCTIONS,
)
def test_an_unknown_option_is_refused_by_the_functions_name(name: str) -> None:
    """The message says which function, and what it takes."""
    with pytest.raises(InputError, match=rf"^an option 'ledgre' of {name}; allowed: .*noise"):
        FUNCTIONS[name](ledgre="a.ledger")


def test_a_mean_of_one_cell_says_where_ledgers_are() -> None:
    """Who wants books is told which function keeps them."""
    with pytest.raises(InputError, match=r"shoal\.plan"):
        called("auto")(ledger="a.ledger")
