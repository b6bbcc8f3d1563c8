"""Lies about trials: assignment, outcome, mechanism, released numbers and effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.evidence.lies_kit import (
    NotHereError,
    add,
    each,
    one,
    packed,
    plus,
    put,
    times,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tests.evidence.lies_kit import Change, Document, Lies

_MECHANISM, _ASSIGNMENT = "plan.mechanism", "plan.assignment"
_PARAMETERS, _AGGREGATE = f"{_MECHANISM}.parameters", f"{_MECHANISM}.aggregate"
_TABLE = f"{_MECHANISM}.table"
_EFFECT = "results.effects.0"


def _likelier(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """A part of one response is given to the next, for the first level alone."""
    moved = numbers.copy()
    levels = next(each for each in (11, 32, 9, 3) if len(numbers) % each == 0)
    moved[0] -= moved[0] // 2
    moved[levels] += numbers[0] // 2
    return moved


def _moved_effect(document: Document) -> None:
    effect = document["results"]["effects"][0]
    effect["value"] += 1.0
    for kind in ("finite_population", "super_population"):
        effect[kind]["interval"] = [end + 1.0 for end in effect[kind]["interval"]]


def _narrower(kind: str) -> Change:
    def change(document: Document) -> None:
        effect = document["results"]["effects"][0]
        if effect[kind] is None:
            raise NotHereError
        middle = sum(effect[kind]["interval"]) / 2
        effect[kind]["interval"] = [(end + middle) / 2 for end in effect[kind]["interval"]]

    return change


def _swapped_units(document: Document) -> None:
    units = document["plan"]["assignment"]["units"]
    if units is None:
        raise NotHereError
    values = units["columns"][0]["values"]
    values[0], values[-1] = values[-1], values[0]


LIES: Lies = {
    "another outcome": put("records.outcome", to="salary"),
    "another rule of missing outcomes": put("records.missing", to="ignored"),
    "another rule of single arms": put("records.single_arm", to="kept"),
    "clusters left out that were not": put("records.clusters_left_out", to=plus(1)),
    "clusters left out by a truth value": put("records.clusters_left_out", to=False),
    "levels that differ by their last digits": put(
        "plan.space.levels", to=lambda x: [2.0**50 + i for i in range(len(x))]
    ),
    "levels that are all but 0": put(
        "plan.space.levels", to=lambda x: [1e-300 * i for i in range(len(x))]
    ),
    "levels twice as far apart": each("plan.space.levels", lambda x: x * 2.0 + 1.0),
    "one level more": put("plan.space.levels", to=lambda x: [*x, x[-1] + 1.0]),
    "levels the other way round": put("plan.space.levels", to=lambda x: x[::-1]),
    "levels in whole numbers": each("plan.space.levels", int),
    "another way to round": put(
        "plan.space.rounding", to=lambda x: "nearest" if x == "random" else "random"
    ),
    "rounding of no kind": put("plan.space.rounding", to="up"),
    "labels that there are not": put("plan.space.labels", to=["low", "high"]),
    "an unknown fact of outcomes": add("plan.space", "width", 0.1),
    "larger groups": packed(f"{_ASSIGNMENT}.sizes", lambda x: x * 2),
    "a unit in another group": packed(
        f"{_ASSIGNMENT}.sizes", lambda x: x + np.where(np.arange(len(x)) < 2, [1, -1][0], 0)
    ),
    "groups of nobody": packed(f"{_ASSIGNMENT}.sizes", lambda x: x * 0),
    "groups in another order": packed(
        f"{_ASSIGNMENT}.sizes", lambda x: np.roll(x + np.arange(len(x)), 1)
    ),
    "one arm more": put(f"{_ASSIGNMENT}.arms.columns.0.values", to=lambda x: [*x, 2]),
    "arms of each other's names": put(f"{_ASSIGNMENT}.arms.columns.0.values", to=lambda x: x[::-1]),
    "arms of one name": put(f"{_ASSIGNMENT}.arms.columns.0.values", to=[0, 0]),
    "arms of another type": put(f"{_ASSIGNMENT}.arms.columns.0.type", to="string"),
    "clusters of one name": put(
        f"{_ASSIGNMENT}.clusters.columns.0.values", to=lambda x: [x[0]] * len(x)
    ),
    "units of each other's names": _swapped_units,
    "units of one name": put(f"{_ASSIGNMENT}.units.columns.0.values", to=lambda x: [x[0]] * len(x)),
    "one unit's name less": put(f"{_ASSIGNMENT}.units.columns.0.values", to=lambda x: x[1:]),
    "names of units without names": put(
        f"{_ASSIGNMENT}.units", to=lambda x: {} if x is None else None
    ),
    "another mechanism": put(
        f"{_MECHANISM}.name",
        to=lambda x: "uniform_prior" if x != "uniform_prior" else "cluster_dp",
    ),
    "a mechanism of no name": put(f"{_MECHANISM}.name", to="perfect"),
    "groups pooled or not": put(f"{_MECHANISM}.pooled", to=lambda x: not x),
    "a reason that claims a smaller epsilon": put(f"{_MECHANISM}.reason", to="epsilon 0.01"),
    "an unknown fact of the mechanism": add(_MECHANISM, "note", "epsilon is 0.01"),
    "less epsilon asked for": put(f"{_MECHANISM}.asked.epsilon", to="1/100"),
    "less delta asked for": put(f"{_MECHANISM}.asked.delta", to="1/10000000"),
    "other levels asked for": put(f"{_MECHANISM}.asked.levels", to=97),
    "an unknown request": add(f"{_MECHANISM}.asked", "note", "epsilon is 0.01"),
    "a lower floor": put(f"{_PARAMETERS}.floor", to=lambda x: x // 2),
    "a higher floor": put(f"{_PARAMETERS}.floor", to=lambda x: x + 2**20),
    "fewer outcomes replaced": put(f"{_PARAMETERS}.replaced", to=lambda x: x - 2**24),
    "more outcomes replaced": put(f"{_PARAMETERS}.replaced", to=lambda x: x + 2**20),
    "all outcomes replaced": put(f"{_PARAMETERS}.replaced", to=2**32),
    "a histogram with less noise": put(f"{_PARAMETERS}.weight", to=times(2)),
    "a histogram with more noise": put(f"{_PARAMETERS}.weight", to=times(0.5)),
    "another lattice of the histogram": put(f"{_PARAMETERS}.lattice_bits", to=plus(1)),
    "other levels in use": put(f"{_PARAMETERS}.kept", to=lambda x: [*x[:-1], x[-1] - 1]),
    "levels in use twice": put(f"{_PARAMETERS}.kept", to=lambda x: [x[0], *x[:-1]]),
    "an unknown parameter": add(_PARAMETERS, "gamma", 0.5),
    "responses that say more": each(f"{_TABLE}.shift", lambda x: x * 1.01),
    "responses that say less": each(f"{_TABLE}.shift", lambda x: x * 0.99),
    "one response says a little more": one(f"{_TABLE}.shift", lambda x: x + 2.0**-30),
    "responses the other way round": put(f"{_TABLE}.shift", to=lambda x: x[::-1]),
    "likelier responses": packed(f"{_TABLE}.numbers", _likelier),
    "one number of a response more": packed(
        f"{_TABLE}.numbers", lambda x: x + (np.arange(len(x)) == 0)
    ),
    "numbers of other levels": packed(f"{_TABLE}.numbers", lambda x: x[::-1] + np.arange(len(x))),
    "no number of a response": packed(f"{_TABLE}.numbers", lambda x: x * (np.arange(len(x)) > 0)),
    "a smaller variance of responses": put(f"{_TABLE}.variance", to=times(0.99)),
    "a larger lower bound": put(f"{_TABLE}.bound", to=times(1.01)),
    "a smaller lower bound": put(f"{_TABLE}.bound", to=times(0.99)),
    "a bound without proof": each(f"{_TABLE}.certificate.total", lambda x: x + 0.01),
    "weights of another sign": each(f"{_TABLE}.certificate.weight", lambda x: -x),
    "weights of a table that are none": put(f"{_TABLE}.weights", to=[0.5, 0.5]),
    "a table on other levels": put(f"{_TABLE}.kept", to=lambda x: [x[0], *x[:-1]]),
    "an unknown fact of a table": add(_TABLE, "gap", 0.0),
    "a proof with one more number": put(f"{_TABLE}.certificate.slope", to=lambda x: [*x, 0.0]),
    "sums with less noise": put(f"{_AGGREGATE}.weight", to=times(2)),
    "sums with more noise": put(f"{_AGGREGATE}.weight", to=times(0.5)),
    "spreads with more noise": put(f"{_AGGREGATE}.spread_weight", to=times(0.5)),
    "another lattice of sums": put(f"{_AGGREGATE}.lattice_bits", to=plus(-1)),
    "sums of other groups": packed(f"{_AGGREGATE}.sizes", lambda x: x + 1),
    "sums on other levels": each(f"{_AGGREGATE}.levels", lambda x: x + 1.0),
    "other priors": packed("results.released.prior", lambda x: x[::-1]),
    "priors that do not sum to one": packed("results.released.prior", lambda x: x + 1),
    "other counts of priors": packed("results.released.counts", lambda x: x + 1),
    "responses on levels that are not": packed("results.released.responses", lambda x: x + 90),
    "one response less": packed("results.released.responses", lambda x: x[:-1]),
    "other responses": packed("results.released.responses", lambda x: x.max() - x),
    "other numbers of clusters": one("results.released.numbers", plus(2**22)),
    "one number less": put("results.released.numbers", to=lambda x: x[:-1]),
    "numbers that are not whole": each("results.released.numbers", float),
    "another kind of release": put(
        "results.released.kind", to=lambda x: "clusters" if x == "units" else "units"
    ),
    "another effect": _moved_effect,
    "an effect without its interval": put(f"{_EFFECT}.value", to=plus(1.0)),
    "an effect of another arm": put(f"{_EFFECT}.arm", to=plus(1)),
    "an effect against another control": put(f"{_EFFECT}.control", to=plus(1)),
    "a smaller error": put(f"{_EFFECT}.finite_population.standard_error", to=times(0.5)),
    "a smaller error of a population": put(
        f"{_EFFECT}.super_population.standard_error", to=times(0.5)
    ),
    "a narrower interval": _narrower("finite_population"),
    "a narrower interval of a population": _narrower("super_population"),
    "an unknown fact of an effect": add(_EFFECT, "p_value", 0.001),
    "an effect twice": put("results.effects", to=lambda x: [*x, x[0]]),
    "no effects": put("results.effects", to=[]),
    "clusters that cost something": put("plan.clustering_epsilon", to="1/100"),
}
