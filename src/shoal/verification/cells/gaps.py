"""What a manifest proves of the best plan there is: gaps of balanced and of optimal plans.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal import documents
from shoal.verification.cells import keys as verify_keys
from shoal.verification.cells.facts import TOLERANCE
from shoal.verification.cells.members import MemberLosses
from shoal.verification.cells.optimal import proves
from shoal.verification.strict import real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verification.cells.errors import Errors
    from shoal.verification.cells.facts import Facts
    from shoal.verification.cells.losses import Losses

    Floats = NDArray[np.float64]


def gap_holds(
    losses: Losses, errors: Errors, plan: documents.Document, epsilon: Fraction
) -> tuple[bool, str]:
    """Whether weights are those asked for, and the manifest's duals prove the gap."""
    facts, method = errors.design.facts, plan["request"]["method"]
    claimed = plan["claims"]["gap"]
    weight = np.array(plan["numbers"]["weight"], dtype=np.float64)
    asked = plan["request"]["weights"]
    labels = verify_keys.labels(plan["occupancy"]["cells"])
    wanted = [real(asked.get(labels[cell], 1.0)) for cell in facts.released]
    if weight.tolist() != wanted or not asked.keys() <= {*labels}:
        return False, "other weights than asked for"
    settings = plan["request"]["settings"]
    balances = method == "balanced" or settings.get("noise") == "balanced"
    if not balances and method != "optimal":
        return claimed is None and plan["duals"] is None, "none is claimed"
    if claimed is None or plan["duals"] is None:
        return False, "none is claimed, or without dual variables"
    dual = _duals(plan["duals"], int(facts.user[-1]) + 1)
    if balances:
        spent = 2 * losses.largest if facts.gaussian else epsilon
        found = _balanced(errors, weight, dual, float(spent))
        holds = math.isfinite(found) and abs(found - real(claimed)) <= TOLERANCE * (1 + found)
        return holds, f"{found:.2e} per cell"
    if not targets_hold(facts, plan)[0]:
        return False, "nothing to compare errors with"
    targets = np.array([real(each) for each in plan["targets"]], dtype=np.float64)
    targets = targets / targets.max()
    # What the selection of a range costs is not there for noise.
    left = epsilon - Fraction(losses.once(), 2**facts.bits)
    return proves(errors, targets, dual, left, real(claimed))


def targets_hold(facts: Facts, plan: documents.Document) -> tuple[bool, str]:
    """Whether targets are there for optimal plans only, and as the setting says.

    With "equal" they are 1/weight, in proportion to it where an error is asked for; with "balanced"
    they only say what is compared.
    """
    request, targets = plan["request"], plan["targets"]
    if request["method"] != "optimal":
        return targets is None, "none"
    found = np.array([real(each) for each in targets], dtype=np.float64)
    if found.shape != (len(facts.released),) or not (found > 0).all():
        return False, "not one number above 0 for each released cell"
    if request["settings"].get("targets", "equal") == "equal" or request["error"] is not None:
        whole = 1.0 if request["error"] is None else float(found.max())
        same = found / whole * np.array(plan["numbers"]["weight"], dtype=np.float64)
        if not 0 < float(same.max()) <= float(same.min()) * (1 + TOLERANCE):
            return False, "not in proportion to one over the weights"
        if request["error"] is None and abs(float(same.max()) - 1) > TOLERANCE:
            return False, "not one over the weights"
    return True, f"{len(found)} relative errors"


def _duals(packed: documents.Document, size: int) -> Floats:
    """Duals over the largest: only their proportions count, and sums of them stay finite."""
    users = documents.unpack_integers(packed["user"], "duals")
    told = np.array([real(each) for each in packed["dual"]])
    if not len(users) == len(told) > 0 or not bool((np.diff(users) > 0).all()) or users[-1] >= size:
        raise ValueError
    if not bool((told > 0).all()):
        raise ValueError
    dual = np.zeros(size)
    dual[users] = told / told.max()
    return dual


def _balanced(errors: Errors, weight: Floats, dual: Floats, spent: float) -> float:
    """Weak duality: how much the weighted mean of ln b could still fall at most.

    With Gaussian noise losses are squares, and what is spent is twice rho.
    """
    facts = errors.design.facts
    paid = dual[facts.member_user] * MemberLosses(errors).all
    per_cell = np.bincount(facts.member_number, paid, minlength=len(weight))
    if not (per_cell > 0).all():
        return math.inf
    bound = math.log(spent * dual.sum() / weight.sum())
    found = float(weight @ np.log(weight / per_cell)) / float(weight.sum()) + bound
    # A comparison with NaN must not turn it into 0.
    if not math.isfinite(found):
        return math.inf
    return max(0.0, found / 2 if facts.gaussian else found)
