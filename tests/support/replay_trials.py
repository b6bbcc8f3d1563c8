"""Trials to replay: every kind of plan on several kinds of outcomes, with and without names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import shoal
from shoal.errors import ShoalWarning
from shoal.trials import ClusterPrior, Domain, Expected, Experiment
from shoal.trials.columns_of_a_file import read
from shoal.trials.plan import Plan
from tests.support.replay import Case, Release

Make = Callable[[Experiment, Domain], Plan]
PLANS: dict[str, Make] = {
    "cluster_prior": lambda study, domain: study.table(domain, 3, mechanism=ClusterPrior(0.02, 4)),
    "cluster_prior, pooled": lambda study, domain: study.table(
        domain, 2, delta="1e-5", levels=3, mechanism=ClusterPrior(0.01, 20, pooled=True)
    ),
    "uniform_prior": lambda study, domain: study.table(domain, 1, mechanism="uniform_prior"),
    "best_table": lambda study, domain: study.table(domain, 2),
    "best_table of few levels": lambda study, domain: study.table(
        domain, 1, levels=3, expected=Expected(1, 1)
    ),
    "histogram": lambda study, domain: study.histogram(domain, "3/2"),
    "subgroups": lambda study, domain: study.ask().effect("sex").means().plan(domain, 1),
    "several": lambda study, domain: (
        study.ask().effect(weights="precision").regression(["arm", "age"]).plan(domain, "1/2")
    ),
    "bounds": lambda study, domain: (
        study.ask().effect("sex").means().plan(domain, 2, missing="worst")
    ),
}
SPACES = {
    "counts": Domain.counts(0, 10),
    "bins": Domain.bins(-3, 5, 33),
    "nearest": Domain.bins(-3, 5, 9, "nearest"),
}
# The draw of bits from which responses are made.
_RESPONDING = 1


class Trial:
    """An experiment and a plan of it."""

    rho = 0.0
    slots = None
    # The upper 62 bits draw a response: of words that are 0 every level has the first.
    forced: ClassVar[dict[int, tuple[int, int]]] = {_RESPONDING: (3, 0)}

    def __init__(self, make: Make, domain: Domain, kind: str, rng: np.random.Generator) -> None:
        whole = kind == "groups"
        size, clusters = int(rng.integers(60, 150)), 1 if whole else int(rng.integers(1, 4))
        at = rng.permutation(size)
        self.domain, self.make, self.named, self.whole = domain, make, kind == "named", whole
        self.outcome = rng.uniform(domain.levels[0], domain.levels[-1], size)
        names = np.array([f"u{name:04}" for name in rng.permutation(10 * size)[:size]])
        age = rng.integers(10, 20, size).astype(float)
        self.columns = (at % 2, at // 2 % clusters, age, at // 6 % 2 > 0, names)
        self.epsilon = 0.0  # of the plan that a release makes

    def _study(self, order: NDArray[np.int64]) -> Experiment:
        arm, cluster, age, sex, names = (each[order] for each in self.columns)
        unit, groups = names if self.named else None, arm + 2 * (age > 14)
        assigned = groups if self.whole else None
        return Experiment(arm, cluster, {"age": age, "sex": sex}, unit=unit, assigned=assigned)

    def _plan(self, study: Experiment) -> Plan:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            return self.make(study, self.domain)

    def base(self) -> Release:
        """Of the columns as they are."""
        return self._release(self.outcome, np.arange(len(self.outcome)))

    def neighbour(self, rng: np.random.Generator) -> Release:
        """One outcome is another; rows come in another order."""
        low, high, outcome = self.domain.levels[0], self.domain.levels[-1], self.outcome.copy()
        others = [low, high, -1e9, 1e9, low + 0.4999, rng.uniform(low, high)]
        if self.make is PLANS["bounds"]:
            others = [np.nan]
        outcome[int(rng.integers(len(outcome)))] = rng.choice(others)
        by_value = rng.random() < 0.5
        order = np.argsort(outcome, kind="stable") if by_value else rng.permutation(len(outcome))
        # Rounding uses a word a row: where rows have no names they keep theirs.
        return self._release(outcome, order if self.named else np.arange(len(outcome)))

    def _release(self, outcome: NDArray[np.float64], order: NDArray[np.int64]) -> Release:
        def release(book: shoal.Ledger) -> bytes:
            study = self._study(order)
            plan = self._plan(study)
            self.epsilon = float(plan.loss.epsilon)
            given: dict[str, Any] = {"outcome_name": "outcome", "privacy_unit": "person"}
            return plan.release(outcome[order], study, ledger=book, **given).document

        return release


class Log:
    """A log of visits, of which one user has other rows, more or fewer."""

    rho = 0.0
    slots = None
    forced: ClassVar[dict[int, tuple[int, int]]] = {}

    def __init__(self, way: str, rng: np.random.Generator) -> None:
        self.way = way
        self.rows = [
            [float(value) for value in rng.integers(0, 4, rng.integers(1, 5))] for _ in range(40)
        ]
        self.epsilon = 0.0  # of the plan that a release makes

    def base(self) -> Release:
        """Of the rows as they are."""
        return self._release(self.rows, None)

    def neighbour(self, rng: np.random.Generator) -> Release:
        """One user has other rows, or one without an outcome; all rows come in another order."""
        at = int(rng.integers(len(self.rows)))
        choices = ([float("nan")], [1e300] * 3, [-5.0, 2.5], [3.0] * 300)
        rows = [*self.rows]
        rows[at] = choices[int(rng.integers(len(choices)))]
        return self._release(rows, rng)

    def _release(self, rows: list[list[float]], rng: np.random.Generator | None) -> Release:
        who = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        order = np.arange(len(who)) if rng is None else rng.permutation(len(who))
        value = np.concatenate(rows)[order]
        who = who[order]
        log = pa.table({"who": who, "arm": who % 2, "sex": who // 2 % 2, "spent": value})
        domains: Any = "bins:0:9"
        given: dict[str, Any] = {"outcome": "spent", "per_user": self.way}
        if self.way == "ratio":
            domains = "counts:0:9", "counts:0:5"
            given = {"outcome": ("spent", "rows")}

        def release(book: shoal.Ledger) -> bytes:
            study, outcomes = read(
                log, **given, arm="arm", user="who", by=["sex"], domain=domains,
                missing_value=0 if self.way == "mean" else None, privacy_unit="person",
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)
                plan = study.ask().effect().effect(by="sex").plan(domains, 1)
            self.epsilon = float(plan.loss.epsilon)
            return plan.release(outcomes, study, ledger=book, privacy_unit="person").document

        return release


CASES: dict[str, Callable[..., Case]] = {
    f"log, {way}": partial(Log, way) for way in ("sum", "mean", "ratio")
} | {
    f"trial, {name}, {values}, {kind}": partial(Trial, make, domain, kind)
    for name, make in PLANS.items()
    for values, domain in SPACES.items()
    for kind in ("named", "nameless", "groups")
    # Clusters of one are no covariate, and groups have no precision weights of their own.
    if kind != "groups" or name in ("uniform_prior", "best_table", "subgroups")
}
