"""Questions of trials to replay: effects, means and regressions, of outcomes of several ranges."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import shoal
from shoal.errors import ShoalWarning
from shoal.trials import Questions, QuestionsPlan, Space
from tests.support.replay import Case, Release

ASKED: dict[str, Callable[[Questions], Questions]] = {
    "one effect": lambda asked: asked.effect(),
    "precision weights": lambda asked: asked.effect(weights="precision"),
    "subgroups": lambda asked: asked.effect("sex").means(),
    "a regression": lambda asked: asked.regression(["arm", "age", "sex", "cluster"]),
    "several": lambda asked: asked.effect().means().regression(["arm", "age"]),
}
SPACES = {"binary": Space.binary(), "amounts": Space.bins(-3, 5)}


@dataclass(frozen=True)
class Columns:
    """Columns of an experiment: all but the outcome are public."""

    outcome: NDArray[np.float64]
    arm: NDArray[np.int64]
    cluster: NDArray[np.int64]
    age: NDArray[np.float64]
    sex: NDArray[np.str_]

    @classmethod
    def drawn(cls, rng: np.random.Generator, space: Space, size: int) -> Columns:
        """Of so many units, in any order."""
        at = np.arange(size)
        made = cls(
            rng.uniform(space.levels[0], space.levels[-1], size),
            at % 2,
            at // 2 % 3,
            rng.integers(10, 20, size).astype(float),
            np.where(at // 6 % 2, "girl", "boy"),
        )
        return made.taken(rng.permutation(size))

    def taken(self, order: NDArray[np.int64]) -> Columns:
        """The rows in another order."""
        return Columns(
            self.outcome[order],
            self.arm[order],
            self.cluster[order],
            self.age[order],
            self.sex[order],
        )

    @property
    def covariates(self) -> Mapping[str, NDArray[np.generic]]:
        """The public columns besides arm and cluster."""
        return {"age": self.age, "sex": self.sex}

    def plan(self, name: str, space: Space, epsilon: str = "1") -> QuestionsPlan:
        """Of a list of questions, by its name."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            asked = ASKED[name](Questions(self.arm, self.cluster, self.covariates))
            return asked.plan(space, epsilon)


class Asked:
    """An experiment and a plan of questions of it."""

    rho = 0.0
    slots = None
    forced: ClassVar[dict[int, tuple[int, int]]] = {}

    def __init__(self, name: str, space: Space, rng: np.random.Generator) -> None:
        self.space = space
        self.data = Columns.drawn(rng, space, int(rng.integers(60, 160)))
        self.plan = self.data.plan(name, space, str(rng.choice(["1/2", "3"])))
        self.epsilon = float(self.plan.loss.epsilon)

    def base(self) -> Release:
        """Of the columns as they are."""
        return self._release(self.data)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """One outcome is another; rows come in another order."""
        outcome, at = self.data.outcome.copy(), int(rng.integers(len(self.data.outcome)))
        low, high = self.space.levels[0], self.space.levels[-1]
        outcome[at] = rng.choice([low, high, -1e9, 1e9, low + 0.4999, rng.uniform(low, high)])
        own = self.data
        changed = Columns(outcome, own.arm, own.cluster, own.age, own.sex)
        return self._release(changed.taken(self._order(rng, outcome)))

    @staticmethod
    def _order(rng: np.random.Generator, outcome: NDArray[np.float64]) -> NDArray[np.int64]:
        by_value = np.argsort(outcome, kind="stable")
        return by_value if rng.random() < 0.5 else rng.permutation(len(outcome))

    def _release(self, data: Columns) -> Release:
        def release(book: shoal.Ledger) -> bytes:
            found = self.plan.release(
                data.outcome,
                data.arm,
                data.cluster,
                data.covariates,
                ledger=book,
                outcome_name="outcome",
                privacy_unit="person",
            )
            return found.document

        return release


CASES: dict[str, Callable[..., Case]] = {
    f"questions, {name}, {kind}": partial(Asked, name, space)
    for name in ASKED
    for kind, space in SPACES.items()
}
