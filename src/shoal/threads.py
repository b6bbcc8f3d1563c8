"""Limits linear algebra to one thread, because matrices here are small."""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _libraries() -> ThreadpoolController:
    """Returns the libraries of linear algebra of NumPy and of SciPy, which has its own."""
    import_module("scipy.linalg")
    return ThreadpoolController()  # type: ignore[no-untyped-call]


def one_thread(work: Callable[P, T]) -> Callable[P, T]:
    """Returns work whose linear algebra takes one thread, as several would wait for each other."""

    @wraps(work)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        with _libraries().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return alone
