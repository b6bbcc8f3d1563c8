"""Questions of experiments beside what an expert does by hand and what tables of units tell.

Outcomes stay as they are and arms are drawn anew within clusters, so that no arm has an effect and
every interval should hold 0. Noise is simulated.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

import shoal
from shoal.errors import ShoalWarning
from shoal.theory.questions.gaussian_strategy import least_covariance
from shoal.theory.questions.laplace_strategy import laplace_strategy
from shoal.theory.questions.noisy_variance import quantile
from shoal.theory.questions.weights import regression, scaled
from shoal.trials.mechanisms.outcomes import UniformPrior
from shoal.trials.questions.questions import Questions
from shoal_studies.registry import Repetitions, bench, option
from shoal_studies.trial_insurance_releases import load

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

_SEED = 2026
# Of outcomes that are 1, where they are events.
_RARE = 0.01
_KINDS = ("units", "precision")
_COLUMNS = ("experiment", "weights", "noise", "by hand", "table", "half width", "times", "covered")


@dataclass(frozen=True, eq=False)
class Experiment:
    """Outcomes without an effect, and how units were assigned.

    Attributes:
        name: What it is called.
        outcomes: Shape (units,).
        arm: Of each unit, as it was; numbers within each cluster stay.
        cluster: Of each unit.
        space: Of the outcomes.
        spread: Their expected standard deviation.
    """

    name: str
    outcomes: Floats
    arm: Whole
    cluster: Whole
    space: shoal.trials.Space
    spread: float

    def assigned(self, random: np.random.Generator) -> Whole:
        """Arms of as many units of each cluster, drawn anew."""
        rows = np.lexsort((random.random(len(self.arm)), self.cluster))
        found = np.empty_like(self.arm)
        found[rows] = self.arm[np.argsort(self.cluster, kind="stable")]
        return found


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
        "known variances, and its cover"
    )
    yield _line(_COLUMNS)
    for experiment in experiments():
        for weights in _KINDS:
            yield _line(_effect(experiment, weights, epsilon, repetitions))
    yield ""
    yield from _strategies()


def experiments() -> Iterator[Experiment]:
    """Two real ones if causaldata is installed, and two that are made up."""
    if find_spec("causaldata") is not None:
        yield _thornton()
        units = load()[0].units
        cluster, arm = np.divmod(units.assignment.group, len(_KINDS))
        yield Experiment(
            "insurance", units.outcomes.astype(float), arm, cluster,
            shoal.trials.Space.binary(), 0.5,
        )  # fmt: skip
    random = np.random.default_rng(_SEED)
    school = random.integers(0, 40, 4000)
    score = np.clip(np.rint(random.normal(5, 2, 4000) + (school % 5 - 2) / 2), 0, 10)
    arm = np.arange(4000) % 2
    yield Experiment("school", score, arm, school, shoal.trials.Space.counts(0, 10), 2.0)
    rare = (random.random(20_000) < _RARE).astype(float)
    alone = np.zeros(20_000, np.int64)
    yield Experiment("rare", rare, np.arange(20_000) % 2, alone, shoal.trials.Space.binary(), 0.1)


def _thornton() -> Experiment:
    from importlib import import_module

    frame = import_module("causaldata.thornton_hiv").load_pandas().data
    frame = frame.dropna(subset=["got", "any", "villnum"])
    frame = frame[frame.groupby("villnum")["any"].transform("nunique") == len(_KINDS)]
    village = np.unique(frame["villnum"], return_inverse=True)[1]
    got, arm = frame["got"].to_numpy(float), frame["any"].to_numpy(np.int64)
    return Experiment("thornton", got, arm, village, shoal.trials.Space.binary(), 0.46)


def _effect(
    experiment: Experiment, weights: str, epsilon: float, repetitions: int
) -> tuple[str, ...]:
    """Figures of one effect, over assignments."""
    random, width = np.random.default_rng(_SEED), experiment.space.width
    noise, by_hand, table, half, ideal, held = np.zeros((6, repetitions))
    for at in range(repetitions):
        arm = experiment.assigned(random)
        rows = _planned(experiment, arm, weights, epsilon)
        told = rows.release(
            experiment.outcomes, arm, experiment.cluster, noise=shoal.Simulated(at)
        ).estimate()[0]
        weight = _weights_of(rows, arm, experiment)
        plain = float(weight @ experiment.outcomes)
        scale = width * float(np.abs(weight).max()) / epsilon
        noise[at], by_hand[at] = told.value - plain, 2 * scale**2
        low, high = told.interval
        half[at], held[at] = (high - low) / 2, low <= 0 <= high
        variance = np.array([_variance(experiment, arm, weight)])
        ideal[at] = quantile(0.95, variance, scale)[0]
        if weights == _KINDS[0]:
            table[at] = _table(experiment, arm, epsilon, at) - plain
    shown = f"{_size(table):.4f}" if weights == _KINDS[0] else ""
    return (
        experiment.name, weights, f"{_size(noise):.4f}", f"{np.sqrt(by_hand.mean()):.4f}", shown,
        f"{half.mean():.4f}", f"{(half / ideal).mean():.3f}", f"{held.mean():.1%}",
    )  # fmt: skip


def _planned(experiment: Experiment, arm: Whole, weights: str, epsilon: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        asked = Questions(arm, experiment.cluster).effect(weights=weights)
        return asked.plan(experiment.space, epsilon, spread=experiment.spread)


def _weights_of(plan: Any, arm: Whole, experiment: Experiment) -> Floats:
    """The question's weights in the order of the experiment: alike within arm and cluster."""
    columns, row = plan.columns, plan.rows[0]
    cluster = np.unique(experiment.cluster, return_inverse=True)[1]
    found = np.zeros((int(cluster.max()) + 1, 2))
    found[columns.cluster, columns.arm] = row
    return np.asarray(found[cluster, arm])


def _variance(experiment: Experiment, arm: Whole, weight: Floats) -> float:
    """Of the effect over assignments, with the outcomes' own variance in each arm and cluster."""
    group = experiment.cluster * 2 + arm
    many = np.bincount(group)[group]
    mean = (np.bincount(group, experiment.outcomes) / np.maximum(np.bincount(group), 1))[group]
    square = (experiment.outcomes - mean) ** 2 * many / np.maximum(many - 1, 1)
    return float(weight**2 @ square)


def _table(experiment: Experiment, arm: Whole, epsilon: float, seed: int) -> float:
    """The effect by a table of units."""
    made = UniformPrior(epsilon=epsilon).privatize(
        experiment.outcomes, arm, experiment.cluster, space=experiment.space,
        noise=shoal.Simulated(seed),
    )  # fmt: skip
    return float(made.estimate().value)


def _strategies() -> Iterator[str]:
    """Twelve coefficients on 5,000 units: noise beside the bound, parts and an even split."""
    random = np.random.default_rng(_SEED)
    design = np.column_stack([np.ones(5000), random.normal(size=(5000, 11))])
    design[:, 1:4] = design[:, 1:4] > 0
    rows = regression(design)
    vectors = scaled(rows, 1.0)
    begun = time.perf_counter()
    gaussian = least_covariance(vectors)
    middle = time.perf_counter()
    laplace = laplace_strategy(vectors)
    ended = time.perf_counter()
    even = float((len(rows) * np.abs(vectors).max(axis=1) ** 2).sum() * len(rows))
    yield "12 coefficients of least squares on 5,000 units"
    yield f"Gaussian noise: within {gaussian.gap:.1e} of the least, {middle - begun:.1f} s"
    yield (
        f"Laplace noise: variance {laplace.total / laplace.lower_bound:.2f} times a bound, "
        f"{even / laplace.total:.1f} times less than an even split, "
        f"{laplace.diagonal.total / laplace.total:.2f} times less than the best parts, "
        f"{ended - middle:.1f} s"
    )


def _size(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))


def _line(row: tuple[str, ...]) -> str:
    return row[0].ljust(12) + row[1].ljust(11) + "".join(each.rjust(12) for each in row[2:])
