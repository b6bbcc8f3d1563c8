"""Unbiased means to replay: every method, with one or several records a user."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

import shoal
from shoal import unbiased
from shoal.means.guess import _NOISE
from tests.support.replay import Case, Release, Slots

WISHES: dict[str, dict[str, Any]] = {
    "clipped": {"method": "clipped_mean", "epsilon": 1, "interval": (0, 10), "bias": 0.1},
    "certified": {
        "method": "clipped_mean", "epsilon": 1, "interval": (0, 10), "bias": 0.1,
        "interval_by": "certified",
    },
    "symmetric": {"method": "symmetric_mean", "epsilon": 2, "delta": "1e-6"},
    "weighed": {
        "method": "clipped_mean", "epsilon": 1, "interval": (0, 10), "bias": 0.1,
        "weights": "counts",
    },
}  # fmt: skip
_VALUES = (0.0, 5.0, -1e300, 1e300, 4.999, 12.0, -3.0)


class Mean:
    """Values of users, and a plan of their mean."""

    rho = 0.0
    forced: ClassVar[dict[int, tuple[int, int]]] = {}

    def __init__(self, wanted: Mapping[str, Any], rng: np.random.Generator) -> None:
        users = int(rng.integers(100, 400))
        counts = rng.integers(1, 4, users)
        names = np.array([f"u{name:05}" for name in rng.permutation(10 * users)[:users]])
        order = rng.permutation(int(counts.sum()))
        self.who = np.repeat(names, counts)[order]
        self.values = rng.normal(5, 1, len(self.who))
        sizes = counts[np.argsort(names)]
        self.plan = unbiased.plan(counts=np.sort(sizes), moment=unbiased.Moment(2, 1.5), **wanted)
        self.epsilon = float(self.plan.exact_loss.epsilon)
        coarse = getattr(self.plan.choice, "coarse", None)
        self.slots = coarse and Slots(_NOISE, coarse.per_user)

    def base(self) -> Release:
        """Of the values as they are."""
        return self._release(self.values, self.who)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """All values of one user are another one; the records come in another order."""
        user = self.who[int(rng.integers(len(self.who)))]
        value = float(rng.choice([*_VALUES, rng.normal(5, 1)]))
        values = np.where(self.who == user, value, self.values)
        by_value = rng.random() < 0.5
        order = np.argsort(values, kind="stable") if by_value else rng.permutation(len(values))
        return self._release(values[order], self.who[order])

    def _release(self, values: Any, who: Any) -> Release:
        def release(book: shoal.Ledger) -> bytes:
            found = self.plan.release(
                values, who, ledger=book, values_name="height", privacy_unit="person"
            )
            return found.document

        return release


CASES: dict[str, Callable[..., Case]] = {
    f"unbiased mean, {name}": partial(Mean, wanted) for name, wanted in WISHES.items()
}
