"""Plans as events of Google's dp-accounting, for those who keep their books with it."""

from __future__ import annotations

import math
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

from shoal.errors import MissingPartError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent


def event_of(epsilon: float, rho: float | None) -> DpEvent:
    """An event that no release of this loss is worse than, for replacing all values of a user.

    Pure loss epsilon: randomised response between two answers, which dominates every mechanism
    that is epsilon-DP (Kairouz, Oh and Viswanath, ICML 2015, Theorem 3.3). Gaussian noise:
    zero-concentrated loss rho, which holds on the lattice too.

    It is for accountants of neighbours that replace one record, whose records are users; rho is
    None with Laplace noise. MissingPartError if dp-accounting is not installed.
    """
    if find_spec("dp_accounting") is None:
        raise MissingPartError(
            "dp-accounting is not installed",
            'run pip install "shoal[accounting]"',
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dp_accounting import dp_event
    if rho is not None:
        return dp_event.ZCDpEvent(rho)
    # Answers differ by a factor of (1 - p/2)/(p/2) = e^epsilon; a smaller p protects less.
    flip = 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon)) * (1 - 2.0**-50)
    return dp_event.RandomizedResponseDpEvent(noise_parameter=flip, num_buckets=2)
