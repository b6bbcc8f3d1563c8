"""The second opinion: recompute every claim of a manifest, without the planner's code.

Exact rationals instead of floating point, and nothing imported from planning, mechanisms,
accounting or theory: a fault there is not repeated here.
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
from shoal.release.verify_facts import MOST_STEPS, Facts, rational, real, sum_by, whole

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

SCHEMA = "shoal.manifest/1"
# Claims printed as floats may differ from the exact value by rounding, never by more.
_TOLERANCE = 1e-9


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
_GUARANTEE = {
    "privacy": "pure differential privacy",
    "unit": "user",
    "neighbours": "values: all values of one user change, the counts are public",
    "delta": "0",
}
_METHODS = {"balanced", "equalised", "uniform"}


def _checks(facts: Facts, manifest: documents.Document) -> list[Check]:
    plan, claims = manifest["plan"], manifest["plan"]["claims"]
    epsilon, stated = _epsilon(facts), rational(manifest["guarantee"]["epsilon"])
    request = plan["request"]
    checks = [
        Check("privacy loss", epsilon <= stated == rational(claims["epsilon"]), _show(epsilon)),
        Check("guarantee in words", *_guarantee(manifest, stated)),
        Check("within what was asked for", *_asked(request, stated, claims)),
        Check("noise of the operating system", *_genuine(manifest)),
        Check("public rules", *_rules(facts, plan)),
        Check("counts' fingerprint", *_fingerprint(facts, plan["occupancy"])),
        Check("request key", *_request(manifest)),
        Check("bias bounds", *_compare(_bias(facts), claims["bias_bound"])),
        Check("worst-case errors", *_compare(_error(facts), claims["worst_case_error"])),
        Check("lower bounds", *_compare(claims["lower_bound"], _least(facts, stated))),
        Check("results", *_results(facts, manifest)),
        Check("gap of the balance", *_gap(facts, plan, stated)),
    ]
    if manifest.keys() != _PARTS:
        checks.append(Check("no other parts", holds=False, found="something is added or missing"))
    return checks


def _guarantee(manifest: documents.Document, stated: Fraction) -> tuple[bool, str]:
    guarantee, plan = manifest["guarantee"], manifest["plan"]
    shown = Fraction(real(guarantee["epsilon_at_most"]))
    words = {name: guarantee[name] for name in guarantee if not name.startswith("epsilon")}
    holds = (
        words == _GUARANTEE
        and stated <= shown <= stated * (1 + Fraction(1, 2**50))
        and plan["schema"] == "shoal.plan/1"
        and plan["neighbours"] == "values"
        and plan["numbers"]["noise"] == "discrete laplace"
    )
    return holds, f"{guarantee['privacy']}, {guarantee['unit']}, epsilon {float(shown):.6g}"


def _asked(
    request: documents.Document, stated: Fraction, claims: documents.Document
) -> tuple[bool, str]:
    if (request["epsilon"] is None) == (request["error"] is None):
        return False, "not one of epsilon and error"
    if request["epsilon"] is not None:
        return stated <= rational(request["epsilon"]), f"epsilon {request['epsilon']}"
    largest = max(real(error) for error in claims["worst_case_error"])
    return largest <= real(request["error"]), f"error {request['error']}"


def _epsilon(facts: Facts) -> Fraction:
    """Largest over users of the sum of ceil((m/n) 2^j / b) / 2^j, in exact arithmetic."""
    place = np.full(len(facts.total), -1)
    place[facts.released] = np.arange(len(facts.released))
    inside = place[facts.cell] >= 0
    pairs, back = np.unique(
        np.stack([place[facts.cell[inside]], facts.count[inside]]), axis=1, return_inverse=True
    )
    steps = [
        math.ceil(
            Fraction(m, int(facts.total[facts.released[at]])) * 2**facts.bits / facts.scale[at]
        )
        for at, m in pairs.T.tolist()
    ]
    users = len(np.unique(facts.user))
    lost = sum_by(facts.user[inside], np.array(steps, dtype=np.int64)[back.ravel()], users)
    return Fraction(int(max(lost)), 2**facts.bits)


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
        and rule["method"] in _METHODS
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


def _bias(facts: Facts) -> list[float]:
    half_tick = Fraction(1025, 1024) / 2 ** (facts.tick_bits + 1)
    return [float(facts.width * (half_tick + b / 2 ** (facts.bits + 1))) for b in facts.scale]


def _error(facts: Facts) -> list[float]:
    noise = 1 / math.sinh(2.0**-facts.bits) * 2.0**-facts.bits
    return [
        bias + float(facts.width * b) * noise
        for bias, b in zip(_bias(facts), facts.scale, strict=True)
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
    margin = _TOLERANCE * np.abs(one) + 1e-300
    holds = bool((one <= other + margin).all() and (other <= one + 1e6 * margin).all())
    return holds, f"{len(one)} numbers, the largest {one.max():.6g}"


def _results(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    results, claims = manifest["results"], manifest["plan"]["claims"]
    labels = manifest["plan"]["status"]
    if [result["cell"] for result in results] != facts.released:
        return False, "not one result a released cell"
    if [at for at, status in enumerate(labels) if status == "released"] != facts.released:
        return False, "the released cells are not those of the status"
    confidence = real(manifest["confidence"])
    if not 0 < confidence < 1:
        return False, "a confidence that is no probability"
    quantile = _quantile(2.0**facts.bits, 1 - confidence)
    columns = [column["values"] for column in manifest["plan"]["occupancy"]["cells"]["columns"]]
    for result, b, bias in zip(results, facts.scale, claims["bias_bound"], strict=True):
        key = [column[result["cell"]] for column in columns]
        if result["key"] != key or result["statistic"] != "mean":
            return False, f"cell {result['cell']} has another key or statistic"
        if not _follows(facts, result, b, bias + float(facts.width * b) * quantile / 2**facts.bits):
            return False, f"cell {result['cell']} does not follow from its lattice number"
    return True, f"{len(results)} values and intervals"


def _follows(facts: Facts, result: documents.Document, b: Fraction, half: float) -> bool:
    steps = whole(result["steps"], -MOST_STEPS, MOST_STEPS)
    exact = float(facts.lo + facts.width * steps * b / 2**facts.bits)
    lo, hi = float(facts.lo), float(facts.lo + facts.width)
    low, high = exact - half, exact + half
    if low > hi or high < lo:
        low, high = lo, hi
    inside = [min(max(exact, lo), hi), max(low, lo), min(high, hi)]
    given = [result["value"], *result["interval"]]
    slack = _TOLERANCE * float(facts.width)
    return abs(exact - real(result["unclamped"])) <= _TOLERANCE * (abs(exact) + slack) and all(
        abs(x - real(y)) <= slack for x, y in zip(inside, given, strict=True)
    )


def _quantile(scale: float, beta: float) -> int:
    """Least z with 2 q^(z+1) / (1 + q) <= beta, by bisection on the tail itself."""

    def tail(z: int) -> float:
        return 2 * math.exp(-(z + 1) / scale) / (1 + math.exp(-1 / scale))

    low, high = -1, 1
    while tail(high) > beta:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle) > beta else (low, middle)
    return high


def _gap(facts: Facts, plan: documents.Document, epsilon: Fraction) -> tuple[bool, str]:
    """Weak duality with the manifest's prices: how much the mean of ln b could still fall."""
    claimed, method = plan["claims"]["gap"], plan["request"]["method"]
    if plan["prices"] is None:
        return method != "balanced" and claimed is None, "none is claimed"
    users = documents.unpack_integers(plan["prices"]["user"], "prices")
    own = np.array([float(b) for b in facts.scale])
    price = np.zeros(int(facts.user[-1]) + 1)
    price[users] = plan["prices"]["price"]
    if not (np.isfinite(price).all() and (price >= 0).all()):
        raise ValueError
    weight = np.array(plan["numbers"]["weight"], dtype=np.float64)
    asked = {1.0, *(real(each) for each in plan["request"]["weights"].values())}
    if weight.shape != own.shape or not set(weight.tolist()) <= asked:
        return False, "other weights than asked for"
    charged = np.bincount(facts.cell, price[facts.user] * facts.count, minlength=len(facts.total))
    per_cell = (charged / facts.total)[facts.released]
    bound = math.log(float(epsilon) * price.sum() / weight.sum())
    gap = max(0.0, float(weight @ np.log(own * weight / per_cell)) / float(weight.sum()) + bound)
    return method == "balanced" and gap <= real(claimed) + 1e-9, f"{gap:.2e} per cell"


def _show(value: Fraction) -> str:
    return f"{float(value):.12g}"
