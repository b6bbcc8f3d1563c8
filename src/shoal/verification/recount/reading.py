"""Manifests as plain numbers: the only module here that knows their JSON (shoal.manifest/4)."""

from __future__ import annotations

import base64
import operator
import zlib
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Document = dict[str, Any]
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class Release:
    """The stated loss, as the plan claims it, and as it is shown; the confidence of intervals."""

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
    method: str
    settings: dict[str, Any]
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
        ends = np.cumsum(np.bincount(self.cell, minlength=self.size))[:-1]
        return np.split(np.argsort(self.cell, kind="stable"), ends)

    @property
    def size(self) -> int:
        """How many cells are released."""
        return len(self.weight)

    @property
    def top(self) -> int:
        """The width in ticks over 2^10: the unit of selected ranges."""
        return 1 << (self.tick_bits + 10)


@dataclass(frozen=True, eq=False)
class Trial(Release):
    """Groups (clusters x arms), mechanism with its numbers and what it released, and effects.

    An effect is a value, and twice an error and the ends of an interval.
    """

    clustering_epsilon: Fraction
    levels: Array
    sizes: Array
    name: str
    numbers: dict[str, Any]
    effects: list[list[float]]


@dataclass(frozen=True, eq=False)
class Questions(Release):
    """Linear questions of a trial: public columns, weights of released numbers, and answers.

    A form is a variance of assigned groups: a factor, the kind of each unit, limits, and a step.
    """

    low: float
    width: float
    spread: float
    largest_epsilon: float
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
    normal: tuple[str, str, float] | None


def read(document: Document) -> Cells | Trial | Questions | Mean:
    """The parts of a manifest, by its kind."""
    stated, plan, names = document["guarantee"], _plain(document["plan"]), ("epsilon", "delta")
    parts = {name: Fraction(stated[name]) for name in names} | {
        "claims": tuple(Fraction(plan["claims"][name]) for name in names),
        "shown": tuple(stated[f"{name}_at_most"] for name in names),
        "confidence": document["confidence"],
    }
    kinds: Any = {"cells": _cells, "trial": _trial, "questions": _questions, "mean": _mean}
    made: Cells | Trial | Questions | Mean
    made = kinds[document["kind"]](plan, _plain(document["results"]), parts)
    return made


def _plain(entry: Any) -> Any:
    """The same with all packed columns of whole numbers unpacked."""
    if isinstance(entry, list):
        return [_plain(each) for each in entry]
    if not isinstance(entry, dict):
        return entry
    if entry.keys() != {"type", "length", "data"}:
        return {name: _plain(each) for name, each in entry.items()}
    raw = zlib.decompress(base64.b64decode(entry["data"]))
    numbers = np.frombuffer(raw, dtype=entry["type"]).astype(np.int64)
    if len(numbers) != entry["length"]:
        raise ValueError
    return numbers


def _take(kind: type[Kind], *documents: Document) -> Kind:
    """An object from the entries of documents that are called like its fields; later ones count."""
    entries = {name: each for document in documents for name, each in document.items()}
    return kind(**{each.name: entries[each.name] for each in fields(kind)})  # type: ignore[arg-type]


def _cells(plan: Document, results: Any, parts: Document) -> Cells:
    numbers, public, duals = plan["numbers"], plan["occupancy"], plan["duals"]
    lengths, cells, (low, high) = public["cells_per_user"], numbers["cell"], plan["bounds"]
    place, dual = np.full(int(public["cell"].max()) + 1, -1), np.zeros(len(lengths))
    place[cells] = np.arange(len(cells))
    kept, scale = place[public["cell"]] >= 0, iter(map(Fraction, numbers["relative_scale"]))
    if duals:
        dual[duals["user"]] = np.array(duals["dual"]) / max(duals["dual"])
    wanted = ("steps", "range", "unclamped", "value", "interval")
    parts |= {
        "user": np.repeat(np.arange(len(lengths)), lengths)[kept],
        "cell": place[public["cell"][kept]],
        "count": public["count"][kept],
        "parameters": {n: np.asarray(x) for n, x in plan["mechanism"]["parameters"].items()},
        "gaussian": numbers["noise"] == "discrete gaussian",
        "scale": {name: [next(scale) for _ in cells] for name in numbers["statistics"]},
        "low": Fraction(low),
        "width": Fraction(high) - Fraction(low),
        "dual": dual if duals else None,
        "results": [tuple(each[name] for name in wanted) for each in results],
    }
    return _take(Cells, numbers, plan["mechanism"], plan["claims"], plan["request"], plan, parts)


def _sizes(assignment: Document) -> Array:
    sizes: Array = assignment["sizes"]
    return sizes.reshape(-1, len(assignment["arms"]["columns"][0]["values"]))


def _trial(plan: Document, results: Document, parts: Document) -> Trial:
    way, pair = plan["mechanism"], ("finite_population", "super_population")
    numbers = [way.get(name, {}) for name in ("asked", "parameters", "table", "aggregate")]
    parts |= {
        "clustering_epsilon": Fraction(plan["clustering_epsilon"]),
        "levels": np.array(plan["space"]["levels"], dtype=np.float64),
        "sizes": _sizes(plan["assignment"]),
        "name": way["name"],
        "numbers": {**reduce(operator.or_, numbers), "released": results["released"]},
        "effects": [
            [x["value"], *(y for p in pair for y in (x[p]["standard_error"], *x[p]["interval"]))]
            for x in results["effects"]
        ],
    }
    return _take(Trial, parts)


def _questions(plan: Document, results: Document, parts: Document) -> Questions:
    public, levels, numbers = plan["columns"], plan["space"]["levels"], plan["numbers"]
    sizes, clusters = _sizes(public["assignment"]), public["assignment"]["clusters"]["columns"][0]
    group, arms = np.repeat(np.arange(sizes.size), sizes.ravel()), sizes.shape[1]
    parts |= {
        "low": float(levels[0]),
        "width": float(levels[-1] - levels[0]),
        "largest_epsilon": float(Fraction(plan["epsilon"])),
        "columns": {each["name"]: (each["codes"], each["values"]) for each in public["covariates"]}
        | {
            "arm": (group % arms, list(range(arms))),
            "cluster": (group // arms, [str(each) for each in clusters["values"]]),
        },
        "rows": numbers["rows"].reshape(-1, len(group)) - 2**40,
        "forms": [
            (
                x["factor"].reshape(-1, x["kind"].max() + 1) - 2**20,
                x["kind"],
                x["limits"],
                x["step"],
            )
            for x in numbers.get("forms", [])
        ],
        "answers": [[x["value"], x["standard_error"], *x["interval"]] for x in results["answers"]],
    }
    return _take(Questions, plan, numbers, results, parts)


def _mean(plan: Document, results: Document, parts: Document) -> Mean:
    request, counts, normal = plan["request"], plan["counts"], results.get("normal")
    weight = counts if request["weights"] == "counts" else np.ones_like(counts)
    parameters = {"coarse_delta": 0, **plan["parameters"]}
    parts |= {
        "weight": weight if request["cap"] is None else np.minimum(weight, request["cap"]),
        "moments": request["moments"],
        "between": request["interval"],
        "coarse_delta": Fraction(parameters.pop("coarse_delta")),
        "parameters": {name: int(each) for name, each in parameters.items()},
        "exact": Fraction(results["exact"]),
        "normal": normal and tuple(normal[name] for name in ("about", "squares", "half_width")),
    }
    return _take(Mean, plan, plan["claims"], results, parts)
