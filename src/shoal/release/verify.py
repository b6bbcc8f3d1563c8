"""The second opinion: recompute every claim of a manifest, without the planner's code.

Exact rationals instead of floating point, and nothing imported from planning, mechanisms,
bounding, accounting, records or theory: a fault there is not repeated here.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal import documents
from shoal.errors import DocumentError
from shoal.release import verify_mechanism
from shoal.release.verify_design import Design
from shoal.release.verify_facts import Facts, rational, real, whole
from shoal.release.verify_mechanism import SHARINGS
from shoal.release.verify_results import TOLERANCE, ranges_hold, results_hold, room_holds

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

SCHEMA = "shoal.manifest/2"


@dataclass(frozen=True)
class Check:
    """One claim and whether it holds.

    Attributes:
        claim: What was checked, in words.
        holds: The verdict.
        found: What the recomputation gave.
    """

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Verdict:
    """All checks of one manifest."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(check.holds for check in self.checks)

    def __str__(self) -> str:
        """One line a check, and the verdict."""
        lines = [f"{'ok ' if c.holds else 'NO '} {c.claim}: {c.found}" for c in self.checks]
        return "\n".join([*lines, "yes, every claim holds" if self.holds else "NO"])


def verify(manifest: str | os.PathLike[str] | documents.Document) -> Verdict:
    """Recompute epsilon and every certificate of a manifest from it alone.

    Args:
        manifest: A path, or the document itself.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not a manifest, or a part is missing or damaged.
    """
    if not isinstance(manifest, dict):
        manifest = documents.read(manifest, SCHEMA, "manifest")
    try:
        facts = Facts.of(manifest)
        return Verdict(tuple(_checks(facts, manifest)))
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        ArithmeticError,
        DocumentError,
    ):
        raise DocumentError(
            "the manifest is damaged",
            "a document written by shoal",
            "fetch it again, or have it delivered from the ledger",
        ) from None


_PARTS = {
    *("schema", "name", "records", "request", "simulation", "guarantee", "plan", "results"),
    *("confidence", "versions"),
}
_PLAN = {
    *("schema", "neighbours", "bounds", "tick_bits", "request", "source", "occupancy", "status"),
    *("numbers", "mechanism", "prices", "claims"),
}
_CLAIMS = {"epsilon", "gap", "bias_bound", "worst_case_error", "lower_bound"}
_NUMBERS = {"statistic", "noise", "lattice_bits", "cell", "weight", "relative_scale"}
_RESULT = {"cell", "key", "statistic", "steps", "range", "unclamped", "value", "interval"}
_GUARANTEE = {
    "privacy": "pure differential privacy",
    "unit": "user",
    "neighbours": "values: all values of one user change, the counts are public",
    "delta": "0",
}


def _checks(facts: Facts, manifest: documents.Document) -> list[Check]:
    plan, claims = manifest["plan"], manifest["plan"]["claims"]
    why = verify_mechanism.refused(plan)
    if why is not None:
        # Without a mechanism there is nothing that could be recomputed.
        return [Check("mechanism", holds=False, found=f"{why}; no other claim can be checked")]
    mechanism = verify_mechanism.read(plan, facts)
    arrays = verify_mechanism.arrays_of(mechanism, facts)
    design = Design.of(facts, mechanism, arrays)
    epsilon, stated = design.epsilon(), rational(manifest["guarantee"]["epsilon"])
    checks = [
        Check("privacy loss", *_loss(facts, epsilon, stated, rational(claims["epsilon"]))),
        Check("guarantee in words", *_guarantee(manifest, stated)),
        Check("within what was asked for", *_asked(plan["request"], stated, claims)),
        Check("noise of the operating system", *_genuine(manifest)),
        Check("public rules", *_rules(facts, plan)),
        Check("mechanism", *verify_mechanism.parameters_hold(mechanism, facts, arrays)),
        Check("counts' fingerprint", *_fingerprint(facts, plan["occupancy"])),
        Check("request key", *_request(manifest)),
        Check("bias bounds", *_compare(design.bias_bounds(), claims["bias_bound"])),
        Check("worst-case errors", *_compare(_error(design), claims["worst_case_error"])),
        Check("lower bounds", *_compare(claims["lower_bound"], _least(facts, stated))),
        Check("selected ranges", *ranges_hold(design, manifest)),
        Check("room on the lattice", *room_holds(design, manifest)),
        Check("results", *results_hold(design, manifest)),
        Check("gap of the balance", *_gap(facts, plan, stated)),
    ]
    if not _complete(manifest):
        checks.append(Check("no other parts", holds=False, found="something is added or missing"))
    return checks


def _complete(manifest: documents.Document) -> bool:
    plan = manifest["plan"]
    return (
        manifest.keys() == _PARTS
        and manifest["guarantee"].keys() == {*_GUARANTEE, "epsilon", "epsilon_at_most"}
        and plan.keys() == _PLAN
        and plan["claims"].keys() == _CLAIMS
        and plan["numbers"].keys() == _NUMBERS
        and all(result.keys() == _RESULT for result in manifest["results"])
    )


def _loss(facts: Facts, epsilon: Fraction, stated: Fraction, claimed: Fraction) -> tuple[bool, str]:
    # The planner rounds outwards: by a step in every cell, and by the last places of a double.
    cells = int(np.bincount(facts.member_user).max())
    most = epsilon * (1 + Fraction(1, 2**48)) + Fraction(2 * cells, 2**facts.bits)
    return epsilon <= stated == claimed <= most, f"{float(epsilon):.12g}"


def _guarantee(manifest: documents.Document, stated: Fraction) -> tuple[bool, str]:
    guarantee, plan = manifest["guarantee"], manifest["plan"]
    shown = Fraction(real(guarantee["epsilon_at_most"]))
    words = {name: guarantee[name] for name in guarantee if not name.startswith("epsilon")}
    holds = (
        words == _GUARANTEE
        and stated <= shown <= stated * (1 + Fraction(1, 2**50))
        and manifest["schema"] == SCHEMA
        and plan["schema"] == "shoal.plan/2"
        and plan["occupancy"]["schema"] == "shoal.occupancy/1"
        and plan["neighbours"] == "values"
        and plan["numbers"]["noise"] == "discrete laplace"
        and plan["numbers"]["statistic"] == "mean"
    )
    return holds, f"{guarantee['privacy']}, {guarantee['unit']}, epsilon {float(shown):.6g}"


def _asked(
    request: documents.Document, stated: Fraction, claims: documents.Document
) -> tuple[bool, str]:
    if (request["epsilon"] is None) == (request["error"] is None):
        return False, "not one of epsilon and error"
    if request["epsilon"] is not None:
        return stated <= rational(request["epsilon"]), f"epsilon {request['epsilon']}"
    if request["method"] not in SHARINGS:
        return False, "an error, with a method that takes epsilon only"
    largest = max(real(error) for error in claims["worst_case_error"])
    return largest <= real(request["error"]), f"error {request['error']}"


def _genuine(manifest: documents.Document) -> tuple[bool, str]:
    genuine = manifest["simulation"] is False
    return genuine, "stated" if genuine else "a simulation, not private"


def _rules(facts: Facts, plan: documents.Document) -> tuple[bool, str]:
    users = np.bincount(facts.cell)[facts.released]
    fewest, rule = int(users.min()), plan["request"]
    least = int(facts.total[facts.released].min())
    holds = (
        fewest >= whole(rule["min_users"], 1, 2**62)
        and least >= whole(rule["min_records"], 1, 2**62)
        and rule["worthless"] in {"drop", "keep", "refuse"}
        and rule["statistics"] == ["mean"]
        and len(plan["status"]) == len(facts.total)
    )
    return holds, f"at least {fewest} users and {least} records in a released cell"


def _fingerprint(facts: Facts, occupancy: documents.Document) -> tuple[bool, str]:
    state = hashlib.sha256(documents.canonical_bytes(occupancy["cells"]))
    for column in (facts.user, facts.cell, facts.count):
        state.update(column.astype("<i8").tobytes())
    return state.hexdigest() == occupancy["fingerprint"], state.hexdigest()[:16]


def _request(manifest: documents.Document) -> tuple[bool, str]:
    contents = {k: v for k, v in manifest["plan"].items() if k not in ("claims", "prices")}
    about, name = manifest["records"], manifest["name"]
    if manifest["plan"]["source"] not in (None, about):
        return False, "other records than the plan's"
    key = documents.digest({"plan": contents, "records": about, "name": name})
    return key == manifest["request"], key[:16]


def _error(design: Design) -> list[float]:
    """Bias bound and mean absolute noise; the width where a range is selected."""
    facts, bias = design.facts, design.bias_bounds()
    if design.mechanism.selects:
        return bias
    noise = 1 / math.sinh(2.0**-facts.bits) * 2.0**-facts.bits
    return [
        each + float(facts.width * b) * noise for each, b in zip(bias, facts.scale, strict=True)
    ]


def _least(facts: Facts, epsilon: Fraction) -> list[float]:
    """Least worst-case error of each cell: the minimum over all thresholds, not a closed form."""
    order = np.lexsort((facts.count, facts.cell))
    ends = np.cumsum(np.bincount(facts.cell, minlength=len(facts.total)))
    groups = np.split(facts.count[order], ends[:-1])
    return [
        float(facts.width) * _least_of(groups[g], int(facts.total[g]), float(epsilon))
        for g in facts.released
    ]


def _least_of(ascending: NDArray[np.int64], total: int, epsilon: float) -> float:
    # Cutting every m to at most T costs a convex, piecewise linear error: least at 0 or some m.
    threshold = np.append(0, ascending)
    at = np.searchsorted(ascending, threshold, side="right")
    below = np.append(0, np.cumsum(ascending))
    cut = (below[-1] - below[at] - threshold * (len(ascending) - at)) / 2
    return float((cut + threshold / epsilon).min()) / total


def _compare(truth: list[float], claimed: list[float]) -> tuple[bool, str]:
    one, other = np.asarray(truth, dtype=np.float64), np.asarray(claimed, dtype=np.float64)
    if one.shape != other.shape or not np.isfinite(other).all():
        return False, "not one number a released cell"
    # A claim must be no better than the truth, and not so loose that it says nothing.
    margin = TOLERANCE * np.abs(one) + 1e-300
    holds = bool((one <= other + margin).all() and (other <= one + 1e6 * margin).all())
    return holds, f"{len(one)} numbers, the largest {one.max():.6g}"


def _gap(facts: Facts, plan: documents.Document, epsilon: Fraction) -> tuple[bool, str]:
    """Weak duality with the manifest's prices: how much the mean of ln b could still fall."""
    claimed, method = plan["claims"]["gap"], plan["request"]["method"]
    own = np.array([float(b) for b in facts.scale])
    weight = np.array(plan["numbers"]["weight"], dtype=np.float64)
    asked = {1.0, *(real(each) for each in plan["request"]["weights"].values())}
    if weight.shape != own.shape or not set(weight.tolist()) <= asked:
        return False, "other weights than asked for"
    if plan["prices"] is None:
        return method != "balanced" and claimed is None, "none is claimed"
    users = documents.unpack_integers(plan["prices"]["user"], "prices")
    price = np.zeros(int(facts.user[-1]) + 1)
    price[users] = plan["prices"]["price"]
    if not (np.isfinite(price).all() and (price >= 0).all()):
        raise ValueError
    charged = np.bincount(facts.cell, price[facts.user] * facts.count, minlength=len(facts.total))
    per_cell = (charged / facts.total)[facts.released]
    bound = math.log(float(epsilon) * price.sum() / weight.sum())
    gap = max(0.0, float(weight @ np.log(own * weight / per_cell)) / float(weight.sum()) + bound)
    return method == "balanced" and gap <= real(claimed) + 1e-9, f"{gap:.2e} per cell"
