"""Reads manifests as plain numbers: no other module of this folder knows their JSON."""

import base64
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.verification.recount.noise import LAWS

Array = NDArray[Any]
Document = dict[str, Any]


# The confidence of the intervals of manifests.
_CONFIDENCE = 0.95


class Release(SimpleNamespace):
    """The entries of a manifest by their names there, and those that the functions below add."""

    epsilon: Fraction
    delta: Fraction
    confidence: float
    # Only releases of cells have the entries below. A result has lattice steps, a selected range,
    # the value before and after clamping, and an interval.
    user: Array
    cell: Array
    count: Array
    members: list[Array]
    statistics: list[str]
    scale: dict[str, list[Fraction]]
    ranges: dict[str, tuple[Fraction, Fraction]]
    results: dict[str, list[tuple[int, list[int] | None, float, float, list[float]]]]


def read(document: Document, entries_of: Callable[[Any, Any], Document]) -> Release:
    """Returns the entries of a manifest; of several with the same name, the innermost one."""
    stated, plan, results = (_plain(document[each]) for each in ("guarantee", "plan", "results"))
    entries = entries_of(plan, results)
    names = ("epsilon", "delta")
    entries |= {name: Fraction(stated[name]) for name in names}
    entries["claimed"] = [Fraction(plan["claims"][name]) for name in names]
    entries["shown"] = [stated[f"{name}_at_most"] for name in names]
    return Release(**document | entries)


def differs(what: str, stated: Any, true: Any, part: float, slack: float = 0.0) -> Iterator[str]:
    """Yields a sentence if stated numbers are not near the true ones; None stands for NaN.

    They may differ by the part `part` of the true numbers plus `slack`.
    """
    given = np.array(stated, dtype=np.float64)
    wanted = np.asarray(true, dtype=np.float64)
    if (
        given.shape != wanted.shape
        or not np.isclose(given, wanted, part, slack, equal_nan=True).all()
    ):
        yield f"{what}: {true}, not {stated}"


def cells_differ(
    what: str, stated: Array, true: Array, part: float, slack: Array | float = 0.0
) -> Iterator[str]:
    """Yields a sentence for each cell whose two numbers differ as in `differs`, (2, cells)."""
    if stated.shape != true.shape:
        raise ValueError
    near = np.isclose(stated, true, part, slack, equal_nan=True).all(axis=0)
    for at in np.flatnonzero(~near).tolist():
        yield f"{what} of cell {at}: {true[:, at]}, not {stated[:, at]}"


def _plain(entry: Any) -> Any:
    """Returns an entry with all packed columns of whole numbers unpacked."""
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


def of_cells(plan: Document, results: list[Document]) -> Document:
    """Returns the entries of a release of cells."""
    request = plan["request"]
    chosen = plan["decision"]
    statistics = request["statistics"]
    low, high = map(Fraction, request["bounds"])
    # Shares are parts of 1.
    ranges = {name: (Fraction(0), Fraction(1)) for name in statistics}
    ranges |= {"mean": (low, high - low), "variance": (Fraction(0), (high - low) ** 2 / 4)}
    known = memberships(plan["counts"], chosen["status"])
    size = known["size"]
    scale = [Fraction(each) for each in chosen["scale"]]
    if len(results) != len(scale):
        raise ValueError
    parts = ("steps", "range", "unclamped", "value", "interval")
    drawn = [tuple(each[part] for part in parts) for each in results]
    # Numbers come statistic by statistic, and within a statistic cell by cell.
    rows = {name: slice(at * size, at * size + size) for at, name in enumerate(statistics)}
    duals = chosen["duals"]
    dual = None
    if duals:
        dual = np.zeros(len(plan["counts"]["cells_per_user"]))
        dual[duals["user"]] = np.array(duals["dual"]) / max(duals["dual"])
    return {**plan, **request, **plan["claims"], **chosen, **known} | {
        "name": chosen["mechanism"],
        "lattice_bits": chosen["bits"],
        "widened": chosen["parameters"].get("widened", np.zeros(1)).tolist() == [1],
        "law": LAWS[chosen["noise"]],
        "scale": {name: scale[part] for name, part in rows.items()},
        "ranges": ranges,
        # Parts of ticks in the width of the bounds.
        "top": 1 << (request["tick_bits"] + 10),
        "dual": dual,
        "results": {name: drawn[part] for name, part in rows.items()},
    }


def memberships(counts: Document, status: list[str]) -> Document:
    """Returns user, cell and count of each membership of a planned cell, and the cells' members.

    Planned cells are numbered from 0.
    """
    planned = [at for at, each in enumerate(status) if each == "planned"]
    size = len(planned)
    # The new number of each cell, or -1 if it is not planned.
    place = np.full(int(counts["cell"].max()) + 1, -1)
    place[planned] = np.arange(size)
    cell = place[counts["cell"]]
    kept = cell >= 0
    lengths = counts["cells_per_user"]
    ends = np.cumsum(np.bincount(cell[kept], minlength=size))[:-1]
    return {
        "user": np.repeat(np.arange(len(lengths)), lengths)[kept],
        "cell": cell[kept],
        "count": counts["count"][kept],
        "size": size,
        "members": np.split(np.argsort(cell[kept], kind="stable"), ends),
    }


def _design(plan: Document) -> Document:
    """Returns sizes of cells, units of each kind, and columns as codes of kinds and values."""
    public = plan["design"]
    request = plan["request"]
    clusters, arms = (public[name]["columns"][0]["values"] for name in ("clusters", "arms"))
    many = public["many"]
    cell = public["cell"]
    sizes = np.bincount(cell, many, len(clusters) * len(arms)).reshape(len(clusters), -1)
    columns = {each["name"]: (each["codes"], each["values"]) for each in public["covariates"]}
    # C(age) has the numbers of age as texts.
    categories = {
        f"C({name})": (codes, [str(value) for value in values])
        for name, (codes, values) in columns.items()
    }
    columns = categories | columns
    columns["arm"] = (cell % len(arms), list(range(len(arms))))
    columns["cluster"] = (cell // len(arms), [str(each) for each in clusters])
    return {**request, **plan["chosen"]} | {
        "many": many,
        "sizes": sizes.astype(np.int64),
        "columns": columns,
        "grouped": public["group"] is not None,
        "group": public["group"],
        "clustering_epsilon": Fraction(public["clustering_epsilon"]),
        "planned_epsilon": float(Fraction(request["epsilon"])),
        "levels": np.array(request["domain"]["levels"], dtype=np.float64),
    }


def of_trial(plan: Document, results: Document) -> Document:
    """Returns the entries of a table of units or a histogram."""
    claims = plan["claims"]
    counts: Document = plan["chosen"].get("counts", {})
    effects = []
    for effect in results["estimates"]:
        spreads = {}
        for name in ("finite_population", "super_population"):
            spreads[name] = [effect[name]["standard_error"], *effect[name]["interval"]]
        effects.append((effect["value"], spreads))
    return (_design(plan) | counts) | {
        "drawn": results["drawn"],
        "variance_and_bound": [claims["variance"], claims["bound"]],
        "effects": effects,
    }


def of_presence(plan: Document, results: Document) -> Document:
    """Returns the entries of a release of private counts."""
    request = plan["request"]
    names = ("bounds", "tick_bits", "statistics", "pieces", "records_per_user")
    cells = results.get("keys", request["keys"])
    return {**results, **{name: request[name] for name in names}} | {
        "size": len(cells["columns"][0]["values"]),
        "finds": not request["keys"]["columns"][0]["values"],
        "selection": plan.get("selection"),
        "asked_delta": request["delta"],
        "asked": request["epsilon"],
        "guess": request["users"],
        "guide": request.get("guide"),
        "min_users": request.get("min_users"),
        "rounds": plan["rounds"],
    }


def of_questions(plan: Document, results: Document) -> Document:
    """Returns the entries of answers to questions."""
    found = _design(plan)
    drawn = results["drawn"]
    one = _released(found, found["steps"], drawn["numbers"], found["levels"])
    return found | one | {"drawn_moments": drawn["moments"], "answers": _answers(results)}


def of_ratios(plan: Document, results: Document) -> Document:
    """Returns the entries of ratios: those of both outcomes, and what they share."""
    found = _design(plan)
    drawn = results["drawn"]
    second = np.array(found["denominator"]["levels"], dtype=np.float64)
    both = (("first", found["levels"]), ("second", second))
    outcomes = []
    for name, levels in both:
        one = _released(found, found[f"{name}_steps"], drawn[name], levels)
        outcomes.append(Release(**found | one | {"confidence": _CONFIDENCE}))
    return found | {
        "outcomes": outcomes,
        "drawn_moments": drawn["moments"],
        "answers": _answers(results),
    }


def of_bounds(plan: Document, results: Document) -> Document:
    """Returns the entries of means of outcomes that may be missing."""
    found = _design(plan)
    drawn = results["drawn"]
    own = _released(found, found["steps"], drawn["numbers"], found["levels"])
    # Missing outcomes have the sizes of the same weights.
    missing = own | {"rows": np.abs(own["rows"]), "drawn_numbers": drawn["missing"]}
    return found | {
        "outcomes": [
            Release(**found | each | {"confidence": _CONFIDENCE}) for each in (own, missing)
        ],
        "drawn_moments": drawn["moments"],
        "answers": _answers(results),
    }


def _released(found: Document, steps: Array, numbers: Any, levels: Array) -> Document:
    """Returns the released rows and numbers of an outcome, and its range."""
    sums = found["sums"]
    if sums is None:
        rows = found["rows"].reshape(len(steps), len(found["many"])) - 2**40
    else:
        rows = (sums == np.arange(len(steps))[:, None]) * 2**40
    return {
        "low": float(levels[0]),
        "width": float(levels[-1] - levels[0]),
        "rows": rows,
        "steps": steps,
        "alone": sums is not None,
        "sum_of": sums,
        "drawn_numbers": numbers,
    }


def _answers(results: Document) -> list[list[float]]:
    """Returns the value, the error and the interval of each answer."""
    return [
        [each["value"], each["standard_error"], *each["interval"]] for each in results["estimates"]
    ]


def of_mean(plan: Document, results: Document) -> Document:
    """Returns the entries of a release of one mean."""
    request = plan["request"]
    weight = plan["counts"]
    if request["weights"] != "counts":
        weight = np.ones_like(weight)
    return {**plan, **request, **plan["claims"], **plan["choice"], **results} | {
        "weight": weight if request["cap"] is None else np.minimum(weight, request["cap"]),
        "moments": [(each["order"], each["size"]) for each in request["moments"]],
        "between": request["interval"],
        "choice": plan["choice"],
    }
