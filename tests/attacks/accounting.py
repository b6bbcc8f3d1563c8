"""The stated loss of random plans against Google's dp-accounting.

Plans of cells by all methods and statistics with Laplace and Gaussian noise, plans of trials, and
clipped means. What a user moves and the noise that is added go to dp-accounting as events of their
own, and it composes them. Laplace noise: Renyi accounting at order 10^9 gives the pure loss to
seven digits, and an optimistic privacy loss distribution at delta = 10^-9 is a lower bound.
Gaussian noise: the exact epsilon of dp-accounting at the plan's delta. The stated loss is never
below by more than 1e-6 of itself, and never above by more than 2%.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from shoal.cells.cell_statistics import Mean, Variance
from shoal.errors import InputError
from shoal.privacy import permute_and_flip as selection
from shoal.trials import ClusterPrior, Experiment, Space
from shoal.trials.randomiser import ONE, PART

SIZE, UNIT = 1000, "plans"

_ORDER, _DELTA, _TINY = 1e9, 1e-12, 1e-9
_BELOW, _ABOVE = 1e-6, 0.02
# Discretised losses are exact to this.
_GRID = 1e-4
METHODS = (
    "uniform", "equalised", "balanced", "optimal", "clip_user", "array_averaging",
    "opt_array_averaging", "worst_case_optimal", "levy", "quantile", "akmv", "adaptive", "baseline",
)  # fmt: skip
STATISTICS = (
    ["mean"], ["variance"], ["share_above(3)"], ["mean", "variance"], ["share_above(3)", "mean"],
)  # fmt: skip


class Oracle:
    """Events composed by dp-accounting, and what it says they cost."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.events: Any = import_module("dp_accounting.dp_event")
            rdp: Any = import_module("dp_accounting.rdp")
            self.losses: Any = import_module("dp_accounting.pld.privacy_loss_distribution")
            self.exact: Any = import_module("dp_accounting.gaussian_mechanism")
        self._rdp = rdp.RdpAccountant(orders=[_ORDER])

    def pure(self, parts: list[float]) -> float:
        """Laplace noise and selections that cost so much each, together, to seven digits."""
        accountant = self._rdp.__class__(orders=[_ORDER])
        for part in parts:
            accountant.compose(self.events.LaplaceDpEvent(noise_multiplier=1 / part))
        return float(accountant.get_epsilon(_DELTA))

    def at_least(self, parts: list[float]) -> float:
        """A lower bound: optimistic loss distributions, composed; none lose nothing."""
        whole: Any = None
        for part in parts:
            one = self.losses.from_laplace_mechanism(
                1 / part,
                pessimistic_estimate=False,
                value_discretization_interval=_GRID,
                use_connect_dots=False,
            )
            whole = one if whole is None else whole.compose(one)
        return 0.0 if whole is None else float(whole.get_epsilon_for_delta(_TINY))

    def gaussian(self, parts: list[float], delta: float) -> float:
        """Gaussian noise of so many standard deviations to one, together."""
        return float(self.exact.get_epsilon_gaussian(1 / math.hypot(*parts), delta))

    def response(self, replaced: float, prior: list[float], delta: float) -> float:
        """A response to two outcomes: the first two levels of a prior."""
        rows = [
            {
                level: math.log(replaced * share + (1 - replaced) * (level == outcome))
                for level, share in enumerate(prior)
            }
            for outcome in (0, 1)
        ]
        found = self.losses.from_two_probability_mass_functions(
            *rows, pessimistic_estimate=False, value_discretization_interval=_GRID
        )
        return float(found.get_epsilon_for_delta(delta))


def attack(size: int, seed: int, _folder: Path) -> Iterator[str]:
    """Plan at random and compare."""
    oracle = Oracle()
    tried = number = 0
    while tried < size:
        rng = np.random.default_rng([seed, number])
        kind = str(rng.choice(list(_KINDS), p=[0.55, 0.2, 0.2, 0.05]))
        number += 1
        try:
            stated, found, least, grid = _KINDS[kind](rng, oracle)
        except InputError:
            continue  # nothing is left of this plan: another
        tried += 1
        if stated < found * (1 - _BELOW) - grid or stated < least - grid:
            yield f"plan {number - 1} of seed {seed} states {stated}, but loses {found}"
        if stated > found * (1 + _ABOVE) + 2 * grid:
            yield f"plan {number - 1} of seed {seed} states {stated}, loses only {found}"


def _occupancy(rng: np.random.Generator) -> shoal.Counts:
    users, cells = int(rng.integers(1, 25)), int(rng.integers(1, 6))
    present = rng.random((users, cells)) < rng.choice([0.2, 0.6, 1.0])
    present[np.arange(users) % users, np.arange(users) % cells] = True
    user, cell = np.nonzero(present)
    count = np.ceil(np.exp(rng.choice([0.2, 1.2, 2.5]) * rng.normal(size=len(user)) + 1))
    return shoal.Counts.from_counts(user, cell, count.astype(int))


def _moves(plan: shoal.Plan) -> list[list[tuple[int, float]]]:
    """Of each user: what it moves every noisy number by, over the scale of its noise."""
    design, queries = plan.weights, plan.numbers
    rows = queries.per_statistic(plan.decision.scale)
    moved: list[list[tuple[int, float]]] = [[] for _ in range(plan.counts.n_users)]
    for at, statistic in enumerate(plan.statistics):
        if plan.decision.joint and statistic in (Mean(), Variance()):
            continue
        part = design.reach / design.total[design.cell]
        if statistic == Variance():
            # No closed form of two lines: the theory's own tests enumerate it.
            part = queries.sensitivity[at]
        for user, number, move in zip(design.user, design.cell, part, strict=True):
            if move > 0:
                moved[user].append((int(number), float(move / rows[at][number])))
    if plan.decision.joint:
        first, second = queries.pair
        part = design.reach / design.total[design.cell]
        for user, number, move in zip(design.user, design.cell, part, strict=True):
            for each in _pair(rows[first][number], rows[second][number] / 4, plan.gaussian):
                if move * each > 0:
                    moved[user].append((int(number), float(move * each)))
    return moved


def _pair(first: float, second: float, gaussian: bool) -> tuple[float, float]:
    """Moves of mean and mean square by the pair of values that is furthest apart, by trying."""
    y = np.linspace(-0.5, 0.5, 401)
    one, other = np.meshgrid(y, y)
    apart, squares = np.abs(one - other) / first, np.abs(one**2 - other**2) / second
    loss = apart**2 + squares**2 if gaussian else apart + squares
    at = np.unravel_index(int(loss.argmax()), loss.shape)
    return float(apart[at]), float(squares[at])


def _selections(plan: shoal.Plan) -> list[list[float]]:
    """Of each user: what the selections cost it."""
    mechanism = plan.mechanism
    found: list[list[float]] = [[] for _ in range(plan.counts.n_users)]
    if mechanism.range.selects == "nothing":
        return found
    moved = mechanism.range.score_sensitivity(plan.weights)
    pairs = set(zip(plan.weights.user.tolist(), plan.weights.number.tolist(), strict=True))
    if mechanism.range.selects == "for all":
        pairs = {(user, 0) for user, _ in pairs}
    for user, number in sorted(pairs):
        one = float(selection.loss(moved, float(plan.decision.selection_scale[number])))
        found[user] += [one] * mechanism.range.rounds
    return found


def _cells(rng: np.random.Generator, oracle: Oracle) -> tuple[float, float, float, float]:
    method = str(rng.choice(METHODS))
    bounding = method in METHODS[:5]
    statistics = STATISTICS[int(rng.integers(len(STATISTICS)))] if bounding else ["mean"]
    plan = shoal.plan(
        _occupancy(rng), bounds=(0, 9), epsilon=_epsilon(rng), method=method,
        statistics=statistics, uninformative="keep",
    )  # fmt: skip
    moves, selections = _moves(plan), _selections(plan)
    user = int(plan.user_losses.argmax())
    parts = [move for _, move in moves[user]] + selections[user]
    every = [sum(m for _, m in mine) + sum(s) for mine, s in zip(moves, selections, strict=True)]
    if max(every) > float(plan.exact_epsilon) * (1 + _BELOW):
        return 0.0, max(every), 0.0, 0.0  # another user loses more than any is said to
    least = oracle.at_least(parts) if sum(parts) < 20 else 0.0
    return float(plan.exact_epsilon), oracle.pure(parts), least, 0.0


def _gaussian_cells(rng: np.random.Generator, oracle: Oracle) -> tuple[float, float, float, float]:
    method = str(rng.choice(METHODS[:3]))
    statistics = STATISTICS[int(rng.integers(len(STATISTICS)))]
    users, cells = int(rng.integers(5, 30)), int(rng.integers(30, 60))
    user, cell = np.divmod(np.arange(users * cells), cells)
    count = rng.integers(1, 5, users * cells)
    delta = float(rng.choice([1e-9, 1e-6, 1e-3]))
    plan = shoal.plan(
        shoal.Counts.from_counts(user, cell, count), bounds=(0, 9), epsilon=_epsilon(rng),
        method=method, statistics=statistics, uninformative="keep", delta=delta,
    )  # fmt: skip
    if not plan.gaussian:
        raise InputError("Laplace noise", "Gaussian noise", "try another plan")
    every = [math.hypot(*(move for _, move in mine)) for mine in _moves(plan)]
    found = oracle.exact.get_epsilon_gaussian(1 / max(every), delta)
    return float(plan.exact_epsilon), float(found), 0.0, 0.0


def _trial(rng: np.random.Generator, oracle: Oracle) -> tuple[float, float, float, float]:
    levels = int(rng.integers(2, 8))
    space, sizes = Space.counts(0, levels - 1), rng.integers(20, 4000, 2)
    delta = float(rng.choice([0, 1e-6, 1e-3]))
    study = Experiment(np.arange(int(sizes.sum())) % 2)
    if uniform := rng.random() < 0.4:
        plan = study.table(space, _epsilon(rng, most=6), delta=delta, mechanism="uniform")
        table = plan.response_table
        many, floor = len(table.levels), 1 / len(table.levels)
        share = 1 - float((table.numbers[0, 0] - table.numbers[0, 1]) / ONE)
    else:
        asked = ClusterPrior(float(rng.uniform(0.01, 1)) / levels, float(rng.choice([2, 20, 200])))
        plan = study.table(space, _epsilon(rng, most=6), delta=delta, mechanism=asked)
        many, floor = levels, plan.chosen.floor / PART
        share = plan.chosen.replaced / PART
    # The worst prior has the outcome and its neighbour on levels with the least share.
    rest = 1 - 2 * floor
    prior = [floor, floor, *([rest / (many - 2)] * (many - 2))] if many > 2 else [floor, 1 - floor]
    found = oracle.response(share, prior, delta)
    if many == 2:
        found = max(found, oracle.response(share, [1 - floor, floor], delta))
    if not uniform:
        # One label moves two bins by one: two Laplace draws.
        found += oracle.pure([plan.chosen.weight / 2**plan.chosen.lattice_bits] * 2)
    return float(plan.exact_epsilon), found, 0.0, _GRID


def _clipped(rng: np.random.Generator, oracle: Oracle) -> tuple[float, float, float, float]:
    from shoal import unbiased

    counts = rng.integers(1, 9, int(rng.integers(30, 3000)))
    plan = unbiased.plan(
        "clipped_mean", counts, moment=unbiased.Moment(2, 1), epsilon=_epsilon(rng),
        interval=(0, float(rng.choice([0, 1, 30]))), bias=0.2, weights="counts",
    )  # fmt: skip
    choice: Any = plan.choice
    weight, (low, high) = counts / counts.sum(), plan.request.interval or (0.0, 0.0)
    range_width = high - low + 2 * choice.margin(plan.request)
    return (
        plan.epsilon,
        oracle.pure([float(weight.max()) * range_width / plan.noise_scale]),
        0.0,
        0.0,
    )


def _epsilon(rng: np.random.Generator, most: float = 60) -> float:
    return round(float(np.exp(rng.uniform(math.log(0.01), math.log(most)))), 6)


_KINDS: dict[str, Callable[[np.random.Generator, Oracle], tuple[float, float, float, float]]] = {
    "cells with Laplace noise": _cells,
    "cells with Gaussian noise": _gaussian_cells,
    "trials": _trial,
    "clipped means": _clipped,
}
