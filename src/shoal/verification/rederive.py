"""Computes again, with the library, what a manifest states, and compares both.

Loss, claims, values, intervals and statuses follow from the request, public facts, the choice and
the drawn integers. `verification.recount` computes them by separate code.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from shoal import documents
from shoal.cells.facts.decision import public_status
from shoal.cells.facts.facts import Facts
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.plan import Release as CellsRelease
from shoal.cells.planners.largest_error import within
from shoal.cells.planners.planner import make_plan
from shoal.cells.public_counts import PublicPlan
from shoal.distributions.parts import units_of
from shoal.distributions.plan import Plan as DistributionsPlan
from shoal.distributions.plan import Release as DistributionsRelease
from shoal.documents.strict_json import strict
from shoal.errors import ShoalError
from shoal.means.plan import UnbiasedEstimate
from shoal.presence.plan import Release as PresenceRelease
from shoal.privacy.budget import from_text, round_up
from shoal.privacy.unit import Unit
from shoal.release.envelope import CONFIDENCE
from shoal.release.release import Release
from shoal.trials.plan import Release as TrialsRelease

# The part by which another machine's logarithms, sums and square roots may differ.
_CLOSE = 1e-9
# The part by which the scales of a plan that is made again may differ.
_REPLANNED = 1e-6

HOMES: tuple[type[Release[Any, Any]], ...] = (
    CellsRelease,
    DistributionsRelease,
    PresenceRelease,
    UnbiasedEstimate,
    TrialsRelease,
)
FAMILIES = {kind: home for home in HOMES for kind in home.kinds()}


def differences(release: Release[Any, Any]) -> Iterator[str]:
    """Yields a sentence for each part of a manifest that does not follow from plan and draws."""
    plan = release.plan
    manifest = release.record
    records = manifest["records"]
    unit = manifest["guarantee"]["unit"]
    whose = Unit.of_document(unit)
    if manifest["guarantee"] != plan.guarantee(whose):
        yield "the guarantee differs from the one that follows from the plan"
    if manifest["audience"] != plan.audience:
        yield "the record is for others than it says"
    asked = {"question": plan.key(records, whose), "name": manifest["name"]}
    if manifest["request"] != documents.digest(asked):
        yield "the digest of the request does not match plan, columns, unit and name"
    if manifest["plan"]["unit"] != {"counts": whose.counts, "period": whose.period}:
        yield "the plan protects something else than the guarantee says"
    yield from plan.mismatches(records, unit)
    claims = plan.claims.to_document()
    results = plan.results(release.released)
    yield from _unlike("claim", claims, manifest["plan"]["claims"], plan.size)
    yield from _unlike("result", results, manifest["results"], plan.size)
    if isinstance(plan, PublicPlan):
        for facts in plan.of_cells:
            yield from _statuses(facts)


def unlike_again(release: Release[Any, Any]) -> Iterator[str]:
    """Yields a sentence for each entry of a manifest that does not follow from what was drawn."""
    said = release.said
    for name in ("epsilon", "delta"):
        exact = from_text(getattr(said.guarantee, name))
        if getattr(said.guarantee, f"{name}_at_most") != round_up(exact):
            yield f"{name} is shown as another number than the exact one, rounded upwards"
    if said.confidence != CONFIDENCE:
        yield f"intervals are said to have another confidence than {CONFIDENCE}"
    stated = release.published
    again = stated.again()
    size = again.size
    if stated.plan is not None:
        plan = release.plan
        again = plan.published(release.released)
        size = plan.size
        unit = Unit.of_document(release.manifest["guarantee"]["unit"])
        same = (unit.counts, unit.period) == (plan.relation, plan.period)
        if not same or release.manifest["guarantee"] != plan.guarantee(unit):
            yield "the guarantee differs from the one that follows from the plan"
    yield from _unlike("entry", again.to_document(), stated.to_document(), size)


def _unlike(part: str, true: Any, stated: Any, size: float) -> Iterator[str]:
    """Yields a sentence for each entry that differs from the true one."""
    stated_entries = dict(_named(stated))
    if len(stated_entries) != len(true):
        yield f"there are {len(stated_entries)} {part}s, not {len(true)}"
    for name, wanted in _named(true):
        given = stated_entries.get(name)
        # Entries that are the same to the last place are not compared part by part, which is slow.
        if repr(wanted) == repr(given) or _same(wanted, given, size):
            continue
        entry = f"the {part} {name}"
        if isinstance(wanted, dict) and isinstance(given, dict):
            # The first entry inside that differs is named; there is none if entries are added.
            unlike = (x for x in wanted if not _same(wanted[x], given.get(x), size))
            entry = f"{next(unlike, 'an entry')} of {entry}"
        yield f"{entry} does not follow from the plan and what was drawn"


def _named(part: Any) -> Iterator[tuple[str, Any]]:
    """Yields the entries of an object by name, or those of a list by place."""
    pairs = part.items() if isinstance(part, dict) else enumerate(part)
    yield from ((str(name), each) for name, each in pairs)


def _statuses(plan: Facts) -> Iterator[str]:
    """Yields a sentence if statuses break the public rules, or a planned cell errs too much."""
    request = plan.request
    stated = np.array(plan.status, dtype=object)
    by_rules = stated
    # The public rules plan all cells that a plan may leave out for their errors.
    if request.max_error is not None:
        by_rules = np.where(stated == "error too large", "planned", stated)
    elif request.uninformative == "drop":
        by_rules = np.where(stated == "uninformative", "planned", stated)
    if (by_rules != public_status(plan.counts, request)).any():
        yield "the statuses of cells do not follow the public rules"
    if request.uninformative != "keep" and (plan.cell_error >= MIDPOINT_ERROR + _CLOSE).any():
        yield "a planned cell has an error as large as guessing"
    if not within(plan):
        yield "a planned cell has a larger error than was asked for"


def replanned(plan: PublicPlan[Any]) -> Iterator[str]:
    """Yields a sentence for each decision that differs in a new plan of request and counts."""
    for facts in plan.of_cells:
        yield from _replanned_cells(facts)
    if not isinstance(plan, DistributionsPlan):
        return
    stated = plan.units
    new = units_of(plan.counts, plan.request)
    if stated is None or new is None:
        # A plan has units if its request needs any.
        return
    if not _near(new.units, stated.units, part=_REPLANNED, slack=1):
        yield "the units of users differ from those of a new plan"
    for name in ("vote", "rounds", "fullest", "bins"):
        if getattr(new, name) != getattr(stated, name):
            yield f"the number of {name} differs from that of a new plan"


def _replanned_cells(plan: Facts) -> Iterator[str]:
    """Yields the same for a plan of means or certified statistics."""
    try:
        new = make_plan(plan.counts, plan.request).decision
        stated = plan.decision
    except ShoalError as error:
        yield f"the request leads to no plan: {error}"
        return
    if (new.method.name, new.method.settings) != (stated.method.name, stated.method.settings):
        yield "the method differs from that of a new plan"
    for name in ("status", "bits", "joint", "law"):
        if getattr(new, name) != getattr(stated, name):
            yield f"{name} differs from that of a new plan"
    for name in ("scale", "selection_scale", "targets"):
        if not _near(getattr(new, name), getattr(stated, name), part=_REPLANNED):
            yield f"{name} differs from that of a new plan"
    for name, values in new.parameters.items():
        # A parameter is a rounded product of logarithms: it may differ by 1.
        if not _near(values, stated.parameters.get(name), slack=1):
            yield f"the parameter {name} differs from that of a new plan"


def _near(one: Any, other: Any, *, part: float = 0, slack: float = 0) -> bool:
    """Returns whether arrays differ by a part or a slack at most, or both are None."""
    if one is None or other is None:
        # Only None is like None.
        return one is other
    return one.shape == other.shape and np.allclose(one, other, part, slack)


def load(path: str | os.PathLike[str]) -> Release[Any, Any]:
    """Returns the release in a manifest of any family."""
    data = documents.read_bytes(path, "manifest")
    found: Any = strict(data, f"manifest {os.fspath(path)!r}")
    kind = found.get("kind") if isinstance(found, dict) else None
    return FAMILIES.get(str(kind), CellsRelease).of_file(path, data, found)


def _same(true: Any, stated: Any, size: float) -> bool:
    """Returns whether parts are equal, but for the last places of floating-point numbers.

    `size` bounds the numbers from which they were computed. All else, such as a name 07, must be
    exactly equal.
    """
    if isinstance(true, dict):
        alike = isinstance(stated, dict) and true.keys() == stated.keys()
        return alike and all(_same(true[name], stated[name], size) for name in true)
    if isinstance(true, list | tuple):
        if not isinstance(stated, list | tuple) or len(true) != len(stated):
            return False
        # Lists of floating-point numbers are compared as arrays, which is faster.
        if not true or not all(isinstance(each, float) for each in true):
            return all(_same(*both, size) for both in zip(true, stated, strict=True))
    elif not isinstance(true, float) or not isinstance(stated, float):
        return repr(true) == repr(stated)
    one = np.asarray(true)
    other = np.asarray(stated)
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= 1e-14 * size + _CLOSE * np.abs(other)
    return bool(np.all(near | (one == other)))
