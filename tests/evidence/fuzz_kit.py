"""Sound objects of every public class, made once a process: what fuzzed calls start from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import shoal
from shoal import bounds, mean, trials, unbiased
from tests.evidence.fuzz_values import CANARY, files

if TYPE_CHECKING:
    from pathlib import Path

_UNITS = 120


class Kit:
    """A folder with hostile files, and one sound object of each kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files(folder)
        self._ledgers = 0

    @cached_property
    def table(self) -> pa.Table:
        """Records of 12 users in three cells, some with canaries."""
        rng = np.random.default_rng(5)
        users = rng.integers(0, 12, 200)
        value = rng.uniform(0, 10, 200)
        value[::20] = CANARY
        when = pa.array(np.arange(200) * 3600, pa.timestamp("s", "UTC"))
        columns: dict[str, Any] = {
            "user": pa.array([f"u{each}" for each in users]),
            "value": value,
            "cell": users % 3,
            "time": when,
            "lat": np.full(200, 48.0),
            "lon": np.full(200, 11.0),
        }
        return pa.table(columns)

    @cached_property
    def records(self) -> shoal.Records:
        """These records."""
        return shoal.Records(self.table, user="user", value="value", bounds=(0, 10), cell="cell")

    @cached_property
    def occupancy(self) -> shoal.Occupancy:
        """Their counts."""
        return self.records.occupancy()

    @cached_property
    def plan(self) -> shoal.Plan:
        """A plan that can be carried out on them."""
        return shoal.plan(
            self.occupancy, method="balanced", bounds=(0, 10), epsilon=4, uninformative="keep"
        )

    @cached_property
    def release(self) -> shoal.Release:
        """What came of it."""
        return self.plan.release(self.records, noise=shoal.Simulated(3))

    @cached_property
    def frontier(self) -> Any:  # noqa: ANN401
        """Two methods beside each other."""
        return self.plan.frontier(["balanced", "uniform"], [2, 4])

    @cached_property
    def comparison(self) -> Any:  # noqa: ANN401
        """Two mechanisms beside each other."""
        return shoal.compare(
            self.occupancy, bounds=(0, 10), methods=["baseline", "user_clipped"], repetitions=2
        )

    @cached_property
    def simulation(self) -> Any:  # noqa: ANN401
        """One mechanism on made-up values."""
        return shoal.simulate(
            self.occupancy, shoal.Normal(5, 1), bounds=(0, 10), methods=["baseline"], repetitions=2
        )

    @property
    def ledger(self) -> str:
        """A fresh ledger's path."""
        self._ledgers += 1
        path = self.folder / f"{self._ledgers}.ledger"
        shoal.Ledger.create(path, epsilon=100, delta="1/10")
        return str(path)

    @cached_property
    def values(self) -> Any:  # noqa: ANN401
        """One number a record."""
        return self.table.column("value").to_numpy().clip(0, 10)

    @cached_property
    def users(self) -> Any:  # noqa: ANN401
        """Whose record it is."""
        return self.table.column("user").to_numpy(zero_copy_only=False)

    @cached_property
    def trial(self) -> dict[str, Any]:
        """Outcomes, arms and clusters."""
        rng = np.random.default_rng(7)
        return {
            "outcomes": rng.random(_UNITS) < 0.4,
            "treatment": np.arange(_UNITS) % 2,
            "cluster": np.arange(_UNITS) // 40,
            "space": trials.Space.binary(),
        }

    @cached_property
    def private_trial(self) -> trials.PrivateTrial:
        """A trial that was released."""
        return trials.ClusterDP(epsilon=2).privatize(**self.trial, noise=shoal.Simulated(1))

    @cached_property
    def columns(self) -> dict[str, Any]:
        """Public columns of the same units."""
        at = np.arange(_UNITS)
        sex = np.where(at // 6 % 2, "girl", "boy").tolist()
        own = {name: self.trial[each] for name, each in (("arm", "treatment"), ("cluster",) * 2)}
        return own | {"covariates": {"age": (at // 2 % 17).tolist(), "sex": sex}}

    @cached_property
    def questions(self) -> trials.Questions:
        """Questions of them, without any entry."""
        return trials.Questions(**self.columns)

    @cached_property
    def questions_plan(self) -> trials.QuestionsPlan:
        """A plan that can be carried out on them."""
        asked = self.questions.effect().regression(["arm", "age", "sex"])
        return asked.plan(trials.Space.binary(), 2)

    @cached_property
    def answers(self) -> trials.PrivateAnswers:
        """What came of it."""
        return self.questions_plan.release(
            self.trial["outcomes"], **self.columns, noise=shoal.Simulated(1)
        )

    @cached_property
    def trial_plan(self) -> trials.TrialPlan:
        """A trial before it runs."""
        return trials.plan(120, trials.Space.binary(), clusters=3, epsilon=2, effect=0.1)

    @cached_property
    def moment(self) -> unbiased.Moment:
        """What is known of the values."""
        return unbiased.Moment(4, 3)

    @cached_property
    def unbiased_plan(self) -> unbiased.UnbiasedPlan:
        """A clipped mean of the values."""
        counts = np.unique(self.users, return_counts=True)[1]
        return unbiased.plan(
            "clipped_mean", counts, moment=self.moment, epsilon=1, interval=(0, 10), bias=0.5
        )

    @cached_property
    def estimate(self) -> unbiased.UnbiasedEstimate:
        """What came of it."""
        return self.unbiased_plan.release(self.values, self.users, noise=shoal.Simulated(1))

    @cached_property
    def recommendation(self) -> unbiased.Recommendation:
        """All unbiased means beside each other."""
        return unbiased.recommend(
            100, epsilon=1, delta="1e-6", moment=self.moment, interval=(0, 10)
        )

    @cached_property
    def bound(self) -> bounds.Trilemma:
        """A lower bound."""
        return bounds.trilemma(100, 1, 0, 0.1, (2, 1.0))

    @cached_property
    def mean(self) -> mean.Estimate:
        """One cell in one call."""
        return mean.auto(
            self.values, self.users, bounds=(0, 10), epsilon=1, noise=shoal.Simulated(1)
        )
