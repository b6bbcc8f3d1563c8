"""Errors that shoal raises: in three parts, alone, and the same in another process."""

import copy
import pickle

import pytest

from shoal import errors


@pytest.mark.parametrize(
    "kind",
    [each for each in vars(errors).values()
     if isinstance(each, type) and issubclass(each, errors.ShoalError)],
)  # fmt: skip
def test_an_error_is_itself_when_it_comes_from_another_process(
    kind: type[errors.ShoalError],
) -> None:
    """A pool of processes hands on our line; one that cannot be read would stop it."""
    error = kind("epsilon is -1", "epsilon above 0", "give for example epsilon=1")
    for found in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(found) is kind
        assert str(found) == str(error)
        assert (found.got, found.allowed, found.todo) == (error.got, error.allowed, error.todo)
