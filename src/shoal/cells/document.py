"""Plans as versioned JSON documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal import documents
from shoal.cells.allocation.base import LinearProgram
from shoal.cells.derived import follows
from shoal.cells.plan_facts import weights_of
from shoal.cells.queries import PAIR
from shoal.cells.request import make_request
from shoal.data.occupancy import Counts
from shoal.data.value_lattice import Bounds, Lattice
from shoal.errors import DocumentError, InputError
from shoal.privacy.noise import MOST_BITS
from shoal.release.question import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.cells.request import Request

SCHEMA = "shoal.plan/3"
KIND = "cells"
_NOISE = ("discrete laplace", "discrete gaussian")
# Of a parameter: products with ticks and weights stay whole 64-bit numbers.
_LARGEST = 2**53
_PRIVACY = {False: "pure differential privacy", True: "approximate differential privacy"}


def to_document(plan: PlanFacts) -> documents.Document:
    """Everything public about a plan, with what it claims, as one JSON object."""
    return {
        "schema": SCHEMA,
        "neighbours": "values",
        "bounds": [plan.bounds.lo, plan.bounds.hi],
        "tick_bits": plan.lattice.bits,
        "request": _request_document(plan.request),
        "source": dict(plan.source) if plan.source else None,
        "occupancy": plan.occupancy.to_document(),
        "status": list(plan.status),
        "numbers": {
            "statistics": [each.name for each in plan.statistics],
            "joint": plan.joint,
            "noise": "discrete gaussian" if plan.gaussian else "discrete laplace",
            "lattice_bits": plan.lattice_bits,
            "cell": plan.released.tolist(),
            "weight": weights_of(plan.occupancy, plan.released, plan.request.weights).tolist(),
            "relative_scale": plan.relative_scale.tolist(),
        },
        "mechanism": {
            "name": plan.mechanism.name,
            "parameters": {
                name: documents.pack_integers(value)
                if name in plan.mechanism.contributions.per_member
                else value.tolist()
                for name, value in plan.parameters.items()
            },
            "selection_scale": plan.selection_scale.tolist(),
        },
        "duals": None if plan.duals is None else _sparse(plan),
        "targets": None if plan.targets is None else plan.targets.tolist(),
        "claims": {
            "epsilon": str(plan.loss.epsilon),
            "delta": str(plan.loss.delta),
            "gap": plan.gap,
            "bias_bound": plan.bias_bound.tolist(),
            "worst_case_error": plan.worst_case_error.tolist(),
            "lower_bound": None if plan.gaussian else plan.lower_bound.tolist(),
        },
    }


def written_anew(plan: PlanFacts, origin: str | None) -> dict[str, Any]:
    """The fields of the plan that a plan's document says, for one release: nobody else has them.

    Arrays that cannot be written into can still be given other strides or another type by whoever
    has them, after losses were computed: so nothing that is drawn or charged comes from there.

    Args:
        plan: Of any class of plans of cells.
        origin: The file that no output of it may replace; None if there is none.

    Returns:
        Arguments for `PlanViews` or `Plan`.

    Raises:
        DocumentError: Its document cannot be written or read.
    """
    written = documents.canonical_bytes(to_document(plan))
    return parts(documents.parse(written, SCHEMA, "plan"), origin)


def parts(document: documents.Document, origin: str | None) -> dict[str, Any]:
    """The fields of a plan from its document; claims are left for the caller to compare.

    Args:
        document: Of a plan.
        origin: The file that no output of it may replace; None if there is none.

    Raises:
        DocumentError: A part is missing or damaged.
    """
    try:
        numbers = document["numbers"]
        occupancy = replace(Counts.from_document(document["occupancy"]), origin=origin)
        status = tuple(str(each) for each in document["status"])
        scale = np.array(numbers["relative_scale"], dtype=np.float64)
        released = [at for at, each in enumerate(status) if each == "released"]
        request = _request(document["request"])
        kinds = [each.name for each in request.statistics]
        sound = (
            len(status) == occupancy.n_cells
            and numbers["cell"] == released
            and numbers["statistics"] == kinds
            and scale.shape == (len(kinds) * len(released),)
            and type(numbers["joint"]) is bool
            and (not numbers["joint"] or set(PAIR) <= set(request.statistics))
            and numbers["noise"] in _NOISE[: 2 if request.delta else 1]
            and bool(np.isfinite(scale).all() and (scale > 0).all())
            and 1 <= int(numbers["lattice_bits"]) < MOST_BITS
            and document["neighbours"] == "values"
        )
        if not sound:
            raise damaged()
        return {
            "occupancy": occupancy,
            "lattice": Lattice(Bounds(*document["bounds"]), document["tick_bits"]),
            "request": request,
            "status": status,
            "relative_scale": scale,
            "lattice_bits": int(numbers["lattice_bits"]),
            "duals": _dense(document["duals"], occupancy.n_users),
            "targets": _targets(document["targets"], request, len(released)),
            "source": _source(document["source"]),
            "joint": numbers["joint"],
            "gaussian": numbers["noise"] == _NOISE[1],
            **_mechanism(document, request, occupancy, np.array(released, dtype=np.int64)),
        }
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, InputError):
        raise damaged() from None


def check_claims(plan: PlanFacts, document: documents.Document) -> None:
    """Compare what a document claims with what its plan really costs and promises.

    Raises:
        DocumentError: They differ by more than the arithmetic of another machine could.
    """
    own = to_document(plan)
    if {**own, "claims": None} != {**document, "claims": None}:
        raise damaged()
    mine, theirs = own["claims"], document.get("claims")
    if not isinstance(theirs, dict) or mine.keys() != theirs.keys():
        raise damaged()
    if mine["epsilon"] != theirs["epsilon"] or mine["delta"] != theirs["delta"]:
        raise damaged()
    for name in ("bias_bound", "worst_case_error", "lower_bound"):
        if not _close(mine[name], theirs[name], plan.statistic_range):
            raise damaged()
    if not _close(mine["gap"], theirs["gap"], np.ones(())):
        raise damaged()
    if not follows(plan):
        raise damaged()


def _close(mine: object, theirs: object, unit: NDArray[np.float64]) -> bool:
    """Equal but for the last places, of what is far below the range of its statistic, too."""
    if mine is None or theirs is None:
        return mine is theirs
    try:
        one, other = np.asarray(mine, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return one.shape == other.shape and bool(
        np.isclose(one, other, rtol=1e-9, atol=1e-15 * unit).all()
    )


def question_of(plan: PlanFacts, records: Mapping[str, Any], unit: str, name: str = "") -> Question:
    """What a release of a plan is asked for; claims and proofs follow, records say the source."""
    document, follows = to_document(plan), ("claims", "duals", "source")
    asked = {part: each for part, each in document.items() if part not in follows}
    return Question(
        kind=KIND,
        plan=document,
        asked=asked,
        records=records,
        unit=unit,
        loss=plan.loss,
        privacy=_PRIVACY[plan.gaussian],
        neighbours="values: all values of one user change, the counts are public",
        name=name,
    )


def damaged() -> DocumentError:
    """The error for a plan that does not hold together."""
    return DocumentError(
        "the plan is damaged or was changed by hand",
        "a document written by shoal whose claims follow from its contents",
        "make the plan again with `shoal plan`",
    )


def _request_document(request: Request) -> documents.Document:
    return {
        "method": request.method,
        "epsilon": None if request.epsilon is None else str(request.epsilon),
        "error": request.error,
        "statistics": [each.name for each in request.statistics],
        "delta": str(request.delta),
        "uninformative": request.uninformative,
        "min_users": request.min_users,
        "min_records": request.min_records,
        "weights": dict(request.weights),
        "settings": dict(request.settings),
        "objective": request.objective,
        "max_error": request.max_error,
        "range": request.range,
    }


def _request(document: documents.Document) -> Request:
    return make_request(**document)


def _mechanism(
    document: documents.Document,
    request: Request,
    occupancy: Counts,
    released: NDArray[np.int64],
) -> dict[str, Any]:
    lattice = Lattice(Bounds(*document["bounds"]), document["tick_bits"])
    mechanism = request.parts.mechanism(lattice)
    stated = document["mechanism"]
    parameters = {
        name: _parameter(values, packed=name in mechanism.contributions.per_member)
        for name, values in stated["parameters"].items()
    }
    scale = np.array(stated["selection_scale"], dtype=np.float64)
    sound = (
        stated["name"] == mechanism.name
        and mechanism.check(parameters, occupancy, released)
        and scale.shape == (mechanism.range.selections(parameters, len(released)),)
        and bool((np.isfinite(scale) & (scale > 0)).all())
    )
    if not sound:
        raise damaged()
    return {"parameters": parameters, "selection_scale": scale}


def _targets(numbers: Any, request: Request, cells: int) -> NDArray[np.float64] | None:
    if (numbers is None) == isinstance(request.parts.allocation, LinearProgram):
        raise damaged()
    if numbers is None:
        return None
    found = np.array(numbers, dtype=np.float64)
    if found.shape != (cells,) or not (np.isfinite(found) & (found > 0)).all():
        raise damaged()
    return found


def _parameter(values: Any, *, packed: bool) -> NDArray[np.int64]:
    if packed:
        found = documents.unpack_integers(values, "parameters")
        if len(found) and int(found.max()) >= _LARGEST:
            raise damaged()
        return found
    if not all(type(value) is int and 0 <= value < _LARGEST for value in values):
        raise damaged()
    return np.array(values, dtype=np.int64)


def _source(source: object) -> dict[str, Any] | None:
    if source is None:
        return None
    if not isinstance(source, dict):
        raise damaged()
    return source


def _sparse(plan: PlanFacts) -> documents.Document:
    duals = np.zeros(0) if plan.duals is None else plan.duals
    users = np.flatnonzero(duals)
    return {"user": documents.pack_integers(users), "dual": duals[users].tolist()}


def _dense(document: documents.Document | None, n_users: int) -> np.ndarray | None:
    if document is None:
        return None
    duals, users = np.zeros(n_users), documents.unpack_integers(document["user"], "duals")
    if int(users.max(initial=0)) >= n_users or len(document["dual"]) != len(users):
        raise damaged()
    duals[users] = document["dual"]
    if not (np.isfinite(duals).all() and (duals >= 0).all()):
        raise damaged()
    return duals
