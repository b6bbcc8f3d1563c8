"""Manifests as plain numbers: the only module here that knows their JSON (shoal.manifest/4)."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Document = dict[str, Any]
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class Release:
    """The stated privacy loss: exact, as the plan claims it, and as it is shown."""

    epsilon: Fraction
    delta: Fraction
    claims: tuple[Fraction, Fraction]
    shown: tuple[float, float]
    confidence: float


@dataclass(frozen=True, eq=False)
class Cells(Release):
    """Memberships in released cells, the decision of a plan, its claims, and results.

    Claims and results are in the order statistics x cells. A result is a number of lattice steps,
    the ends of a selected range or None, the value before and after clamping, and its interval.
    """

    user: Array
    cell: Array
    count: Array
    name: str
    parameters: dict[str, Array]
    selection_scale: list[float]
    grouping: str
    balanced: bool
    shares: bool
    statistics: list[str]
    joint: bool
    gaussian: bool
    scale: dict[str, list[Fraction]]
    lattice_bits: int
    tick_bits: int
    low: Fraction
    width: Fraction
    weight: list[float]
    dual: Array | None
    targets: list[float] | None
    gap: float | None
    bias_bound: list[float]
    worst_case_error: list[float]
    lower_bound: list[float] | None
    results: list[tuple[int, list[int] | None, float, float, list[float]]]

    @cached_property
    def members(self) -> list[Array]:
        """Places of the memberships of each cell."""
        order = np.argsort(self.cell, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.cell, minlength=self.size))[:-1])

    @property
    def size(self) -> int:
        """How many cells are released."""
        return len(self.weight)

    @property
    def top(self) -> int:
        """The width in ticks over 2^10: the unit of selected ranges."""
        return 1 << (self.tick_bits + 10)


@dataclass(frozen=True, eq=False)
class Responses:
    """Randomised responses: levels in use, shares of 2^-32, priors and counts of each group."""

    kept: list[int]
    floor: int
    replaced: int
    weight: int
    lattice_bits: int
    prior: Array
    counts: Array


@dataclass(frozen=True, eq=False)
class Table:
    """Probabilities in 2^-62, responses x levels, dual variables of a bound, and counts."""

    kept: list[int]
    shift: list[float]
    numbers: Array
    weights: list[float] | None
    certificate: dict[str, list[float]]
    variance: float
    bound: float
    asked_epsilon: float
    counts: Array


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Noisy numbers of clusters: histograms, or differences with a sampling variance."""

    histogram: bool
    weight: int
    spread_weight: int
    lattice_bits: int
    numbers: list[int]


@dataclass(frozen=True, eq=False)
class Trial(Release):
    """Groups, mechanism, and effects: a value, and twice an error and the ends of an interval."""

    clustering_epsilon: Fraction
    levels: Array
    sizes: Array
    mechanism: Responses | Table | Aggregate
    effects: list[list[float]]


@dataclass(frozen=True, eq=False)
class Questions(Release):
    """Linear questions of a trial: public columns, weights of released numbers, and answers.

    A form is a variance of assigned groups: a factor, the kind of each unit, limits, and a step.
    """

    low: float
    width: float
    spread: float
    asked_epsilon: float
    columns: dict[str, tuple[Array, list[Any]]]
    questions: list[dict[str, Any]]
    rows: Array
    steps: Array
    moment_step: int
    groups_by: list[str]
    forms: list[tuple[Array, Array, Array, int]]
    numbers: list[int]
    moments: list[int]
    answers: list[list[float]]


@dataclass(frozen=True, eq=False)
class Mean(Release):
    """A mean of values without bounds; `normal` are place, noisy squares and half a width."""

    method: str
    weight: Array
    moments: list[tuple[float, float]]
    between: tuple[float, float] | None
    parameters: dict[str, int]
    coarse_delta: Fraction
    bias_bound: float
    standard_error: float
    exact: Fraction
    value: float
    interval: tuple[float, float]
    normal: tuple[Fraction, Fraction, float] | None


def unpack(packed: Document) -> Array:
    """A packed column of whole numbers."""
    raw = zlib.decompress(base64.b64decode(packed["data"]))
    numbers = np.frombuffer(raw, dtype=packed["type"]).astype(np.int64)
    if len(numbers) != packed["length"]:
        raise ValueError
    return numbers


def read(document: Document) -> Cells | Trial | Questions | Mean:
    """The parts of a manifest, by its kind."""
    stated, plan = document["guarantee"], document["plan"]
    parts = {
        **{name: Fraction(stated[name]) for name in ("epsilon", "delta")},
        "claims": tuple(Fraction(plan["claims"][name]) for name in ("epsilon", "delta")),
        "shown": (stated["epsilon_at_most"], stated["delta_at_most"]),
        "confidence": document["confidence"],
    }
    kinds: dict[str, Any] = {
        "cells": _cells,
        "trial": _trial,
        "questions": _questions,
        "mean": _mean,
    }
    made: Cells | Trial | Questions | Mean = kinds[document["kind"]](
        plan, document["results"], parts
    )
    return made


def _take(kind: type[Kind], *documents: Document) -> Kind:
    """An object from the entries of documents that are called like its fields; later ones count."""
    entries = {name: _plain(each) for document in documents for name, each in document.items()}
    return kind(**{each.name: entries[each.name] for each in fields(kind)})  # type: ignore[arg-type]


def _plain(entry: Any) -> Any:
    packed = isinstance(entry, dict) and entry.keys() == {"type", "length", "data"}
    return unpack(entry) if packed else entry


def _cells(plan: Document, results: Any, parts: Document) -> Cells:
    numbers, request, names = plan["numbers"], plan["request"], plan["numbers"]["statistics"]
    cell, count, lengths = (
        unpack(plan["occupancy"][name]) for name in ("cell", "count", "cells_per_user")
    )
    size, users, (low, high) = len(numbers["cell"]), len(lengths), map(Fraction, plan["bounds"])
    place, dual = np.full(int(cell.max()) + 1, -1), np.zeros(users)
    place[numbers["cell"]] = np.arange(size)
    kept, scale = place[cell] >= 0, [Fraction(each) for each in numbers["relative_scale"]]
    if plan["duals"]:
        dual[unpack(plan["duals"]["user"])] = plan["duals"]["dual"]
    wanted = ("steps", "range", "unclamped", "value", "interval")
    parameters = plan["mechanism"]["parameters"].items()
    parts |= {
        "user": np.repeat(np.arange(users), lengths)[kept],
        "cell": place[cell[kept]],
        "count": count[kept],
        "parameters": {name: np.asarray(_plain(each)) for name, each in parameters},
        "grouping": request["settings"].get("grouping", "best_fit"),
        "balanced": "balanced" in (request["method"], request["settings"].get("noise")),
        "shares": request["method"] in ("balanced", "equalised", "uniform"),
        "gaussian": numbers["noise"] == "discrete gaussian",
        "scale": {name: scale[at * size :][:size] for at, name in enumerate(names)},
        "low": low,
        "width": high - low,
        "dual": dual / dual.max() if plan["duals"] else None,
        "results": [tuple(each[name] for name in wanted) for each in results],
    }
    return _take(Cells, numbers, plan["mechanism"], plan["claims"], plan, parts)


def _sizes(assignment: Document) -> Array:
    """Units of each group: clusters x arms."""
    arms = len(assignment["arms"]["columns"][0]["values"])
    return unpack(assignment["sizes"]).reshape(-1, arms)


def _trial(plan: Document, results: Document, parts: Document) -> Trial:
    way, sizes, released = plan["mechanism"], _sizes(plan["assignment"]), results["released"]
    more: Document = {"histogram": way["name"] == "noisy_histogram", "spread_weight": 0}
    mechanism: Responses | Table | Aggregate
    if "aggregate" in way:
        mechanism = _take(Aggregate, more, way["aggregate"], released)
    elif "table" in way:
        rows = unpack(way["table"]["numbers"]).reshape(len(way["table"]["shift"]), -1)
        more = {"asked_epsilon": float(Fraction(way["asked"]["epsilon"])), "numbers": rows}
        more["counts"] = unpack(released["counts"]).reshape(*sizes.shape, -1)
        mechanism = _take(Table, way["table"], more)
    else:
        more["counts"] = unpack(released["counts"]).reshape(*sizes.shape, -1)
        more["prior"] = unpack(released["prior"]).reshape(-1, *more["counts"].shape[1:])
        mechanism = _take(Responses, way["parameters"], more)
    pairs = [
        (each["value"], each["finite_population"], each["super_population"])
        for each in results["effects"]
    ]
    parts |= {
        "clustering_epsilon": Fraction(plan["clustering_epsilon"]),
        "levels": np.array(plan["space"]["levels"], dtype=np.float64),
        "sizes": sizes,
        "mechanism": mechanism,
        "effects": [
            [value, *(x for one in pair for x in (one["standard_error"], *one["interval"]))]
            for value, *pair in pairs
        ],
    }
    return _take(Trial, parts)


def _questions(plan: Document, results: Document, parts: Document) -> Questions:
    public, levels, numbers = plan["columns"], plan["space"]["levels"], plan["numbers"]
    sizes = _sizes(public["assignment"])
    group, arms = np.repeat(np.arange(sizes.size), sizes.ravel()), sizes.shape[1]
    names = [str(each) for each in public["assignment"]["clusters"]["columns"][0]["values"]]
    columns = {
        each["name"]: (unpack(each["codes"]), each["values"]) for each in public["covariates"]
    }
    forms = []
    for each in numbers.get("forms", []):
        factor, kind, limits = (unpack(each[name]) for name in ("factor", "kind", "limits"))
        forms.append((factor.reshape(-1, int(kind.max()) + 1) - 2**20, kind, limits, each["step"]))
    parts |= {
        "low": float(levels[0]),
        "width": float(levels[-1] - levels[0]),
        "asked_epsilon": float(Fraction(plan["epsilon"])),
        "columns": {
            **columns,
            "arm": (group % arms, list(range(arms))),
            "cluster": (group // arms, names),
        },
        "rows": unpack(numbers["rows"]).reshape(-1, len(group)) - 2**40,
        "forms": forms,
        "answers": [[x["value"], x["standard_error"], *x["interval"]] for x in results["answers"]],
    }
    return _take(Questions, plan, numbers, results, parts)


def _mean(plan: Document, results: Document, parts: Document) -> Mean:
    request, counts, normal = plan["request"], unpack(plan["counts"]), results.get("normal")
    weight = counts if request["weights"] == "counts" else np.ones_like(counts)
    parameters = {"coarse_delta": 0, **plan["parameters"]}
    parts |= {
        "weight": weight if request["cap"] is None else np.minimum(weight, request["cap"]),
        "moments": request["moments"],
        "between": request["interval"],
        "coarse_delta": Fraction(parameters.pop("coarse_delta")),
        "parameters": {name: int(each) for name, each in parameters.items()},
        "exact": Fraction(results["exact"]),
        "normal": normal
        and (Fraction(normal["about"]), Fraction(normal["squares"]), normal["half_width"]),
    }
    return _take(Mean, plan, plan["claims"], results, parts)
