"""Questions of experiments beside what an expert does by hand and what tables of units tell.

Outcomes stay as they are and arms are drawn anew within clusters, so that no arm has an effect and
every interval should hold 0. Noise is simulated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.intervals import quantile
from shoal.privacy.noise import Simulated
from shoal.trials import Domain, Experiment, Plan
from shoal.trials.questions import noise
from shoal_studies.registry import Repetitions, bench, option

_SEED = 2026
_CONFIDENCE = 0.95
_KINDS = ("units", "precision")
_NAME = 23
_WIDE = 12
_COLUMNS = (
    "noise", "by hand", "table", "half width", "times", "covered", "predicted", "ms to plan"
)  # fmt: skip


class Case(NamedTuple):
    """Outcomes without an effect, how units were assigned, and the expected deviation."""

    name: str
    outcomes: NDArray[np.float64]
    arm: NDArray[np.int64]
    cluster: NDArray[np.int64]
    domain: Domain
    sd: float

    def assigned(self, random: np.random.Generator) -> Experiment:
        """Arms of as many units of each cluster, drawn anew."""
        rows = np.lexsort((random.random(len(self.arm)), self.cluster))
        found = np.empty_like(self.arm)
        found[rows] = self.arm[np.argsort(self.cluster, kind="stable")]
        return Experiment(found, self.cluster)


@bench("questions")
def questions(
    repetitions: Repetitions = 300,
    epsilon: Annotated[float, option("Loss of one outcome.", 0.001, 100)] = 1.0,
) -> Iterator[str]:
    """Ask for effects beside Laplace noise by hand and tables of units: errors, widths, coverage.

    Example: shoal bench questions --repetitions 300
    """
    yield (
        f"one effect at epsilon {epsilon:g}, {repetitions:,} assignments: root mean square of "
        "noise, beside Laplace noise by"
    )
    yield (
        "hand without an interval and a table of units; half of the 95% interval, over that of "
        "known variances, its cover, and as predicted"
    )
    yield _line("experiment", "weights", _COLUMNS)
    for case, weights in product(cases(), _KINDS):
        yield _line(case.name, weights, _effect(case, weights, epsilon, repetitions))
    yield ""
    yield from _strategies()


def cases() -> Iterator[Case]:
    """Two real ones if causaldata is installed, and two that are made up."""
    if find_spec("causaldata") is not None:
        yield _real("thornton", "thornton_hiv", ("got", "any", "villnum"), 0.46)
        columns = "takeup_survey", "default", "village"
        yield _real("insurance", "social_insure", columns, 0.5)
    random = np.random.default_rng(_SEED)
    school = random.integers(0, 40, 4000)
    score = np.clip(np.rint(random.normal(5, 2, 4000) + (school % 5 - 2) / 2), 0, 10)
    yield Case("school", score, np.arange(4000) % 2, school, Domain.counts(0, 10), 2.0)
    # Of outcomes that are events one in a hundred is 1.
    rare = (random.random(20_000) < 0.01).astype(float)
    alone = np.zeros(20_000, np.int64)
    yield Case("rare", rare, np.arange(20_000) % 2, alone, Domain.binary(), 0.1)


def _real(name: str, module: str, columns: tuple[str, str, str], sd: float) -> Case:
    """Units of the clusters that have both arms, whose values are known."""
    outcome, arm, cluster = columns
    frame = import_module(f"causaldata.{module}").load_pandas().data.dropna(subset=[*columns])
    frame = frame[frame.groupby(cluster)[arm].transform("nunique") == len(_KINDS)]
    home = np.unique(frame[cluster].astype(str), return_inverse=True)[1]
    values = frame[outcome].to_numpy(float)
    arms = frame[arm].to_numpy(np.int64)
    return Case(name, values, arms, home, Domain.binary(), sd)


def _effect(case: Case, weights: str, epsilon: float, repetitions: int) -> tuple[str, ...]:
    """Figures of one effect, over assignments."""
    random = np.random.default_rng(_SEED)
    found = np.zeros((repetitions, len(_COLUMNS)))
    for at in range(repetitions):
        study = case.assigned(random)
        began = time.perf_counter()
        plan = study.ask().effect(weights=weights).plan(case.domain, epsilon, sd=case.sd)
        predicted = plan.predicted[0].half_width
        taken = time.perf_counter() - began
        outcomes = case.outcomes[study.rows]
        told = _first(plan, case, study, at)
        weight = plan.blocks[0].rows[0][study.design.kind_of_unit]
        plain = float(weight @ outcomes)
        scale = case.domain.width * np.abs(weight).max() / epsilon
        low, high = told.interval
        # The outcomes' own variance in each arm and cluster.
        cell = study.design.cell_of_unit
        many = study.design.sizes.ravel()
        square = (outcomes - (np.bincount(cell, outcomes) / many)[cell]) ** 2
        variance = weight**2 @ (square * (many / np.maximum(many - 1, 1))[cell])
        known = quantile(_CONFIDENCE, variance, 2 * scale**2)
        table = 0.0
        if weights == _KINDS[0]:
            units = study.table(case.domain, epsilon, mechanism="uniform_prior")
            table = _first(units, case, study, at).value - plain
        found[at] = (
            (told.value - plain) ** 2, 2 * scale**2, table**2, (high - low) / 2,
            (high - low) / 2 / known, low <= 0 <= high, predicted, 1000 * taken,
        )  # fmt: skip
    mean = found.mean(axis=0)
    mean[:3] = np.sqrt(mean[:3])
    hand, own, table, half, times, held, predicted, taken = mean.tolist()
    return (
        f"{hand:.4f}", f"{own:.4f}", f"{table:.4f}" if table else "", f"{half:.4f}",
        f"{times:.3f}", f"{held:.1%}", f"{predicted:.4f}", f"{taken:.1f}",
    )  # fmt: skip


def _first(plan: Plan, case: Case, study: Experiment, seed: int) -> Any:
    """The first estimate of a simulated release."""
    drawn = plan.respond(case.outcomes[study.rows], Simulated(seed))
    return plan.read(drawn, _CONFIDENCE)[0]


def _strategies() -> Iterator[str]:
    """Twelve coefficients on 5,000 units: noise beside the bound, parts and an even split."""
    random = np.random.default_rng(_SEED)
    design = np.column_stack([np.ones(5000), random.normal(size=(5000, 11))])
    design[:, 1:4] = design[:, 1:4] > 0
    rows = np.linalg.pinv(design)
    vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    begun = time.perf_counter()
    gaussian = noise.gaussian_noise(vectors)
    middle = time.perf_counter()
    sums = noise.released_sums(vectors, [""] * len(vectors))
    ended = time.perf_counter()
    even = float((np.abs(vectors).max(axis=1) ** 2).sum() * len(vectors) ** 2)
    most = float(np.abs(sums @ vectors).sum(axis=0).max())
    total = float((np.linalg.pinv(sums) ** 2).sum()) * most**2
    parts = float((noise.best_diagonal(vectors) ** -2).sum())
    # Beyond 1 the noise is too little for a kind of units: all of it is scaled.
    short = float((np.linalg.solve(gaussian.root, vectors) ** 2).sum(axis=0).max())
    gap = short * float((gaussian.root**2).sum()) / gaussian.lower_bound - 1
    yield "12 coefficients of least squares on 5,000 units"
    yield f"Gaussian noise: within {gap:.1e} of the least, {middle - begun:.1f} s"
    yield (
        f"Laplace noise: variance {total / gaussian.lower_bound:.2f} times a bound, "
        f"{even / total:.1f} times less than an even split, "
        f"{parts / total:.2f} times less than the best parts, {ended - middle:.1f} s"
    )


def _line(name: str, kind: str, cells: Sequence[str]) -> str:
    return name.ljust(12) + kind.ljust(_NAME - 12) + "".join(each.rjust(_WIDE) for each in cells)
