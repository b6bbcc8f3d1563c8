"""Threads of linear algebra: matrices here are small."""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _libraries() -> ThreadpoolController:
    """The libraries of NumPy and of SciPy, which has its own."""
    import_module("scipy.linalg")
    return ThreadpoolController()  # type: ignore[no-untyped-call]


def one_thread(work: Callable[P, T]) -> Callable[P, T]:
    """Work whose linear algebra takes one thread: several would wait for one another."""

    @wraps(work)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        with _libraries().limit(limits=1, user_api="blas"):
            return work(*args, **kwargs)

    return alone
