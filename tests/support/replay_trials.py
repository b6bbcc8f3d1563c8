"""Trials to replay: every mechanism on several kinds of outcomes, with and without names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import shoal
from shoal.trials import (
    BestTable,
    ClusterDP,
    ClusterFree,
    Expected,
    NoisyHistogram,
    NoisyHorvitzThompson,
    Space,
    UniformPrior,
)
from shoal.trials.unit_release import _RESPONDING
from tests.support.replay import Case, Release

MECHANISMS: dict[str, Any] = {
    "cluster_dp": ClusterDP(epsilon=3, floor=0.02, histogram_scale=4.0),
    "cluster_dp chosen": ClusterDP(epsilon=2, delta="1e-5"),
    "cluster_free": ClusterFree(epsilon=2, floor=0.01, histogram_scale=20.0, levels=3),
    "uniform_prior": UniformPrior(epsilon=1),
    "best_table": BestTable(epsilon=2),
    "best_table of few levels": BestTable(epsilon=1, levels=3, expected=Expected(1, 1)),
    "noisy_horvitz_thompson": NoisyHorvitzThompson(epsilon=1),
    "noisy_horvitz_thompson without spread": NoisyHorvitzThompson(epsilon=1, spread_share=0),
    "noisy_histogram": NoisyHistogram(epsilon="3/2"),
}
SPACES = {
    "counts": Space.counts(0, 10),
    "bins": Space.bins(-3, 5, 33),
    "nearest": Space.bins(-3, 5, 9, "nearest"),
}


@dataclass(frozen=True)
class _Data:
    """Columns of an experiment."""

    outcome: NDArray[np.float64]
    arm: NDArray[np.int64]
    cluster: NDArray[np.int64]
    unit: NDArray[np.str_]

    def taken(self, order: NDArray[np.int64]) -> _Data:
        """The rows in another order."""
        return _Data(self.outcome[order], self.arm[order], self.cluster[order], self.unit[order])


class Trial:
    """An experiment and a mechanism for it."""

    rho = 0.0
    slots = None
    # The high half of a word replaces: every outcome is, and what is drawn tells nothing of it.
    _REPLACED: ClassVar[dict[int, tuple[int, int]]] = {_RESPONDING: (2**32 - 1, 0)}
    # The upper 62 bits draw from a table, of which every level has the first response.
    _FIRST: ClassVar[dict[int, tuple[int, int]]] = {_RESPONDING: (3, 0)}

    def __init__(
        self, mechanism: Any, space: Space, rng: np.random.Generator, *, named: bool
    ) -> None:
        size, clusters = int(rng.integers(30, 120)), int(rng.integers(1, 4))
        at = np.arange(size)
        low, high = space.levels[0], space.levels[-1]
        self.mechanism, self.space, self.named = mechanism, space, named
        self.forced = self._FIRST if isinstance(mechanism, BestTable) else self._REPLACED
        data = _Data(
            rng.uniform(low, high, size),
            at % 2,
            at // 2 % clusters,
            np.array([f"u{name:04}" for name in rng.permutation(10 * size)[:size]]),
        )
        self.data = data.taken(rng.permutation(size))
        self.epsilon = float(_epsilon(mechanism))

    def base(self) -> Release:
        """Of the columns as they are."""
        return self._release(self.data)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """One outcome is another; rows with names come in another order."""
        data, at = self.data, int(rng.integers(len(self.data.outcome)))
        low, high = self.space.levels[0], self.space.levels[-1]
        outcome = data.outcome.copy()
        outcome[at] = rng.choice([low, high, -1e9, 1e9, low + 0.4999, rng.uniform(low, high)])
        changed = _Data(outcome, data.arm, data.cluster, data.unit)
        if self.named:
            by_value = rng.random() < 0.5
            order = (
                np.argsort(outcome, kind="stable") if by_value else rng.permutation(len(outcome))
            )
            changed = changed.taken(order)
        return self._release(changed)

    def _release(self, data: _Data) -> Release:
        options: dict[str, Any] = {"unit": data.unit} if self.named else {}

        def release(book: shoal.Ledger) -> bytes:
            found: shoal.trials.PrivateTrial = self.mechanism.privatize(
                data.outcome, data.arm, data.cluster, space=self.space, ledger=book,
                outcome_name="outcome", privacy_unit="person", **options,
            )  # fmt: skip
            return found.document

        return release


def _epsilon(mechanism: Any) -> float:
    from shoal.privacy.budget import Budget

    return float(Budget.of(mechanism.epsilon).epsilon)


CASES: dict[str, Callable[..., Case]] = {
    f"trial, {name}, {kind}, {'named' if named else 'nameless'}": partial(
        Trial, mechanism, space, named=named
    )
    for name, mechanism in MECHANISMS.items()
    for kind, space in SPACES.items()
    for named in (True, False)
}
