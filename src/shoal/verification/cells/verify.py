"""The second opinion: recompute every claim of a manifest, without the planner's code.

Exact rationals instead of floating point, and nothing imported from planning, mechanisms,
bounding, accounting, records or theory: a fault there is not repeated here.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal import documents
from shoal.verification.cells import columns as verify_columns
from shoal.verification.cells import mechanism as verify_mechanism
from shoal.verification.cells import request as verify_request
from shoal.verification.cells import scales as verify_scales
from shoal.verification.cells import statistics as verify_statistics
from shoal.verification.cells.design import Design
from shoal.verification.cells.errors import Errors, compare
from shoal.verification.cells.facts import Facts
from shoal.verification.cells.gaps import gap_holds, targets_hold
from shoal.verification.cells.keys import keys_hold
from shoal.verification.cells.losses import Losses
from shoal.verification.cells.ranges import capacity_holds, ranges_hold
from shoal.verification.cells.results import results_hold
from shoal.verification.cells.vectors import has_first_round
from shoal.verification.envelope import (
    Words,
    genuine,
    guarantee_holds,
    no_other_parts,
    request_key,
    shown,
)
from shoal.verification.strict import rational, real, unit
from shoal.verification.verdict import Check, Verdict, checked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.verification.cells.mechanism import Mechanism

KIND = "cells"


def verify(manifest: documents.Document) -> Verdict:
    """Recompute epsilon and every certificate of a manifest from it alone.

    Args:
        manifest: The document.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not a manifest, or a part is missing or damaged.
    """
    return checked(_checks, manifest, _unverified(manifest["plan"]))


_BOUNDED = (
    "parameters that depend on the loss of a cell (minimax caps, ranks, rewards, parts, who is"
    " kept, noise of selections at the same loss), beyond their limits: bad ones cost error,"
    " never privacy"
)
_SHARED = (
    "how {} shares its noise among cells: other shares cost error and the coverage of typical"
    " intervals, never privacy"
)
_WAYS = (
    "that releasing mean and variance jointly or each alone, with Laplace or with Gaussian noise,"
    " has a smaller error than the other ways: they cost error, never privacy"
)
_CENTRES = (
    "that the centres of cells are values of a first round: others cost error and the coverage of"
    " typical intervals, never privacy (a ledger binds them)"
)
_COMPARED = (
    "the errors with which an optimal plan with balanced targets is compared: its gap is to these"
)
_CHOSEN = "that the method is the best for its objective: others cost error, never privacy"
_LEFT_OUT = "that cells left out as uninformative are so"
_LARGER = (
    "that cells left out for their errors would have larger ones: others cost cells, never privacy"
)
_FORECAST = "that the typical errors of released cells, which are simulated, are within max_error"


def _unverified(plan: documents.Document) -> Iterator[str]:
    """What a manifest with such a plan leaves to the planner's word; read where lies are caught."""
    request = plan["request"]
    method, names = request["method"], request["statistics"]
    selecting = verify_mechanism.PER_CELL + verify_mechanism.FOR_ALL
    both = {verify_statistics.MEAN, verify_statistics.VARIANCE} <= {*names}
    said = (
        (bool(request["objective"]), _CHOSEN),
        (method not in verify_statistics.ALLOCATIONS, _BOUNDED),
        (not verify_scales.known(method), _SHARED.format(method)),
        (both or request["delta"] != "0", _WAYS),
        (has_first_round(plan["mechanism"]["parameters"]), _CENTRES),
        (request["settings"].get("targets") == "balanced", _COMPARED),
        ("uninformative" in plan["status"], _LEFT_OUT),
        ("error too large" in plan["status"], _LARGER),
        (request["max_error"] is not None and plan["mechanism"]["name"] in selecting, _FORECAST),
    )
    yield from (sentence for there, sentence in said if there)


_PLAN = {
    *("schema", "neighbours", "bounds", "tick_bits", "request", "source", "occupancy", "status"),
    *("numbers", "mechanism", "duals", "targets", "claims"),
}
_REQUEST = {
    *("method", "epsilon", "error", "statistics", "delta", "uninformative", "min_users"),
    *("min_records", "weights", "settings", "objective", "range", "max_error"),
}
_CLAIMS = {"epsilon", "delta", "gap", "bias_bound", "worst_case_error", "lower_bound"}
_NUMBERS = {
    *("statistics", "joint", "noise", "lattice_bits", "cell", "weight", "relative_scale"),
}
_RESULT = {"cell", "key", "statistic", "steps", "range", "unclamped", "value", "interval"}
_NEIGHBOURS = "values: all values of one user change, the counts are public"
_MOST = Fraction(10**6)
_PRIVACY = {False: "pure differential privacy", True: "approximate differential privacy"}


def _checks(manifest: documents.Document) -> list[Check]:
    plan = manifest["plan"]
    for claim, refused in (
        ("statistics and noise", verify_statistics.refused),
        ("within what was asked for", verify_request.refused),
        ("mechanism", verify_mechanism.refused),
    ):
        why = refused(plan)
        if why is not None:
            return [_unknown(claim, why)]
    facts = Facts.of(manifest)
    mechanism = verify_mechanism.read(plan, facts)
    why = verify_mechanism.beyond(mechanism, facts)
    if why is not None:
        return [_unknown("mechanism", why)]
    return _all(facts, mechanism, manifest)


def _unknown(claim: str, why: str) -> Check:
    # Without a design there is nothing that could be recomputed.
    return Check(claim, holds=False, found=f"{why}; no other claim can be checked")


def _all(facts: Facts, mechanism: Mechanism, manifest: documents.Document) -> list[Check]:
    plan, claims = manifest["plan"], manifest["plan"]["claims"]
    arrays = verify_mechanism.arrays_of(mechanism, facts)
    design = Design.of(facts, mechanism, arrays)
    losses, errors = Losses(design), Errors(design)
    stated = rational(manifest["guarantee"]["epsilon"])
    checks = [
        Check("privacy loss", *_loss(losses, stated, claims)),
        Check("guarantee in words", *_guarantee(manifest, facts, stated)),
        Check("within what was asked for", *_asked(errors, plan, stated)),
        genuine(manifest),
        Check("cells", *keys_hold(plan["occupancy"]["cells"], len(facts.total))),
        Check("columns", *verify_columns.columns_hold(manifest)),
        Check("public rules", *_rules(errors, plan)),
        Check("mechanism", *verify_mechanism.parameters_hold(mechanism, facts, arrays)),
        Check("noise scales", *verify_scales.scales_hold(losses, errors, plan)),
        Check("counts' fingerprint", *_fingerprint(facts, plan["occupancy"])),
        _request(manifest),
        Check("bias bounds", *compare(errors.bias_bounds(), claims["bias_bound"])),
        Check("worst-case errors", *compare(errors.worst_case(), claims["worst_case_error"])),
        Check("lower bounds", *_least(errors, stated, claims["lower_bound"])),
        Check("targets", *targets_hold(facts, plan)),
        Check("selected ranges", *ranges_hold(design, manifest)),
        Check("capacity of the lattice", *capacity_holds(design, manifest)),
        Check("results", *results_hold(errors, manifest)),
        Check("gap to the best plan", *gap_holds(losses, errors, plan, stated)),
    ]
    return checks + no_other_parts(manifest, _parts(manifest))


def _parts(manifest: documents.Document) -> list[tuple[documents.Document, set[str]]]:
    plan = manifest["plan"]
    return [
        (plan, _PLAN),
        (plan["request"], _REQUEST),
        (plan["claims"], _CLAIMS),
        (plan["numbers"], _NUMBERS),
        *((result, _RESULT) for result in manifest["results"]),
    ]


def _loss(losses: Losses, stated: Fraction, claims: documents.Document) -> tuple[bool, str]:
    holds, found = losses.holds(stated)
    return holds and stated == rational(claims["epsilon"]), found


def _guarantee(manifest: documents.Document, facts: Facts, stated: Fraction) -> tuple[bool, str]:
    guarantee, plan = manifest["guarantee"], manifest["plan"]
    delta = plan["request"]["delta"] if facts.gaussian else "0"
    holds = (
        guarantee_holds(manifest, Words(_PRIVACY[facts.gaussian], _NEIGHBOURS))
        # A column of users tells units apart that may own many records each.
        and guarantee["unit"]["records"] == "all"
        and guarantee["delta"] == plan["claims"]["delta"] == delta
        and rational(guarantee["epsilon"]) == stated
        and plan["schema"] == "shoal.plan/3"
        and plan["occupancy"]["schema"] == "shoal.occupancy/1"
        and plan["neighbours"] == "values"
    )
    column = manifest["records"]["user"]
    told = "" if guarantee["unit"]["name"] == column else f" (column {column})"
    whose = f"{unit(guarantee['unit'])}{told}"
    return holds, f"{guarantee['privacy']}, {whose}, {shown(manifest)}"


def _asked(errors: Errors, plan: documents.Document, stated: Fraction) -> tuple[bool, str]:
    request = plan["request"]
    why = verify_request.beyond(errors, request)
    if why is not None:
        return False, why
    if request["epsilon"] is not None:
        asked = rational(request["epsilon"])
        return stated <= asked, f"epsilon {request['epsilon']}"
    largest = max(real(error) for error in plan["claims"]["worst_case_error"])
    holds = largest <= real(request["error"]) and stated <= _MOST
    return holds, f"error {request['error']}"


def _rules(errors: Errors, plan: documents.Document) -> tuple[bool, str]:
    """The status of every cell, again; which others are left out is the planner's word."""
    facts = errors.design.facts
    users, rule, status = np.bincount(facts.cell), plan["request"], plan["status"]
    few, thin = users < rule["min_users"], facts.total < rule["min_records"]
    if len(status) != len(few):
        return False, "not one status a cell"
    if rule["uninformative"] != "keep" and verify_request.uninformative(errors):
        return False, "a released cell is no better than guessing"
    if verify_request.above_most(errors, rule):
        return False, "a released cell has a larger error than max_error"
    own = {"released", *verify_request.left_out(errors, rule)}
    holds = all(
        each == "too few users" if one else each == "too few records" if other else each in own
        for each, one, other in zip(status, few.tolist(), thin.tolist(), strict=True)
    )
    fewest, least = int(users[facts.released].min()), int(facts.total[facts.released].min())
    return holds, f"at least {fewest} users and {least} records in a released cell"


def _fingerprint(facts: Facts, occupancy: documents.Document) -> tuple[bool, str]:
    state = hashlib.sha256(documents.canonical_bytes(occupancy["cells"]))
    for column in (facts.user, facts.cell, facts.count):
        state.update(column.astype("<i8").tobytes())
    return state.hexdigest() == occupancy["fingerprint"], state.hexdigest()[:16]


def _request(manifest: documents.Document) -> Check:
    plan, about = manifest["plan"], manifest["records"]
    asked = {part: plan[part] for part in plan.keys() - {"claims", "duals", "source"}}
    found = request_key(manifest, asked, about["value"], about["user"])
    if plan["source"] not in (None, about):
        return replace(found, holds=False, found="other records than the plan's")
    return found


def _least(errors: Errors, epsilon: Fraction, claimed: object) -> tuple[bool, str]:
    if errors.design.facts.gaussian:
        return claimed is None, "none is known with Gaussian noise"
    return compare(errors.least(epsilon), claimed)
