"""The second opinion on an unbiased mean: recompute every claim of its manifest, with its own code.

Exact fractions and outward-rounded decimals for the loss, other formulas for the errors, and
nothing is imported from the mechanisms or other packages: a fault there is not repeated here.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from shoal import documents
from shoal.verification.envelope import (
    CONFIDENCE,
    Words,
    genuine,
    guarantee_holds,
    no_other_parts,
    request_key,
)
from shoal.verification.means.bounds import Bounds, tick_of
from shoal.verification.means.facts import (
    CLIPPED,
    PARAMETERS,
    PUBLISHING,
    SAMPLED,
    SYMMETRIC,
    Facts,
    signed,
)
from shoal.verification.means.losses import exact_loss, parameters_hold
from shoal.verification.means.squares import Beside
from shoal.verification.strict import rational, real, rounded_up, text, unit
from shoal.verification.verdict import Check, Verdict, checked

Opinion = Callable[[Facts, documents.Document], tuple[bool, str]]
KIND = "mean"

_PLAN_SCHEMA = "shoal.unbiased-plan/1"
_PLAN = {"schema", "method", "counts", "request", "parameters", "source", "claims"}
_RECORDS = {"value"}
_REQUEST = {
    *("moments", "epsilon", "delta", "interval", "bias", "weights", "cap", "reuse", "farthest"),
}
_CLAIMS = {"epsilon", "delta", "bias_bound", "standard_error", "rmse_bound", "noise_scale"}
_BY, _NORMAL = "interval_by", "normal"
_HALF = "half_width"
_FOUND = {"about", "squares", _HALF}
_RESULTS = {"exact", "value", "interval", "coarse_failed"}
_NEIGHBOURS = "values: all values of one user change, the counts are public"
_PURE = "pure differential privacy"
_SAMPLED = "a sampled user's value is published"
_APPROXIMATE = {
    **dict.fromkeys(PUBLISHING, f"approximate differential privacy; {_SAMPLED}"),
    SYMMETRIC: (f"approximate differential privacy; should the coarse step fail, {_SAMPLED}"),
}
_GUESS = 61
# Bounds are floating-point numbers of another machine's logarithms.
_CLOSE = 1e-9
# A bias of this part of the noise is none: powers of it may be 0 in floating point, or not.
_NO_BIAS = 1e-290
# Noise is rounded to a lattice, and never below what was asked for.
_SPENT = Fraction(999, 1000)
_WIDER, _MISS = 1 + Fraction(1, 10**9), 1 - Fraction(str(CONFIDENCE))
# A stated loss may be above the truth by rounding, never below it.
_LAST_DIGITS = 1 + Fraction(1, 10**9)


def verify(manifest: documents.Document) -> Verdict:
    """Recompute epsilon, delta, bias, errors and the interval of a manifest from it alone.

    Args:
        manifest: The document.

    Returns:
        A verdict; it is false if any claim is better than the truth.

    Raises:
        DocumentError: Not a manifest of an unbiased mean, or a part is missing or damaged.
    """
    verdict = checked(_checks, manifest, _UNVERIFIED)
    more = [_SYMMETRY] if manifest["plan"]["method"] == SYMMETRIC else []
    if manifest["results"].get(_NORMAL) is not None:
        more.append(_NEARLY_NORMAL)
    return Verdict(verdict.checks, (*verdict.unverified, *more))


_SYMMETRY = (
    "that values are as likely above their mean as below, at every distance: the bias is 0 and the"
    " interval holds only then"
)
_NEARLY_NORMAL = (
    "that the mean of so many users is nearly normal: a normal interval rests on it, a certified"
    " one on the moments alone"
)
_UNVERIFIED = (
    (
        "that users are independent and their values keep the moments: the certificates rest on it,"
        " the loss does not"
    ),
    (
        "that no other parameters of this loss have a smaller error; of a coarse step, how much"
        " more delta is charged than it can cost"
    ),
    "what the plan's source says in free words, beyond `user` and `value`",
)


def _checks(manifest: documents.Document) -> list[Check]:
    if text(manifest["plan"]["method"]) not in PARAMETERS:
        # Nothing else means anything for a method that is not known.
        return [Check("method", holds=False, found="unknown; no other claim can be checked")]
    facts = Facts.of(manifest["plan"])
    whole = Check("parameters", *parameters_hold(facts))
    if not whole.holds:
        return [Check(whole.claim, whole.holds, "out of range; no other claim can be checked")]
    opinions: tuple[tuple[str, Opinion], ...] = (
        ("privacy loss", _loss),
        ("guarantee in words", _guarantee),
        ("within what was asked for", _asked),
        ("bias bound", _bias),
        ("errors", _errors),
        ("result", _result),
        ("interval", _interval),
    )
    checks = [whole, *(Check(claim, *opinion(facts, manifest)) for claim, opinion in opinions)]
    asked = {part: each for part, each in manifest["plan"].items() if part != "claims"}
    key = request_key(manifest, asked, manifest["records"]["value"])
    return [*checks, genuine(manifest), key, *no_other_parts(manifest, _parts(manifest))]


def _loss(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    claims = manifest["plan"]["claims"]
    epsilon, delta = exact_loss(facts)
    stated = rational(claims["epsilon"])
    holds = epsilon <= stated <= epsilon * _LAST_DIGITS
    holds = holds and rounded_up(rational(claims["delta"]), delta)
    return holds, f"epsilon {float(epsilon):.6g}, delta {float(delta):.6g}"


def _guarantee(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    stated, claims = manifest["guarantee"], manifest["plan"]["claims"]
    publishes = facts.method in PUBLISHING or manifest["results"]["coarse_failed"] is True
    words = _PURE if rational(stated["delta"]) == 0 else _APPROXIMATE.get(facts.method, "")
    holds = (
        guarantee_holds(manifest, Words(words, _NEIGHBOURS, publishes))
        and _whose(stated["unit"], facts, manifest)
        and all(stated[name] == claims[name] for name in ("epsilon", "delta"))
    )
    whose = unit(stated["unit"])
    return holds, f"{words}; it protects {whose}; {_published(facts.method, publishes)}"


def _published(method: str, publishes: object) -> str:
    """What this release did, where the guarantee says what the method may do."""
    if method == SYMMETRIC:
        return f"in this release the step {'failed' if publishes else 'did not fail: none was'}"
    return "values are published" if publishes else "no value is published"


def _whose(named: object, facts: Facts, manifest: documents.Document) -> bool:
    """Whether the privacy unit fits counts and description: rows have one record each."""
    source, value = manifest["plan"]["source"] or {}, manifest["records"]["value"]
    if not isinstance(named, dict):
        return False
    single = named["records"] == "all" or not facts.several
    told = source.get("user", named["name"]), source.get("value", value)
    return single and told == (named["name"], value)


def _asked(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    claims = manifest["plan"]["claims"]
    holds = (
        rational(claims["epsilon"]) <= facts.epsilon
        # One number with one noise: all that was asked for is spent on it.
        and (facts.method != CLIPPED or rational(claims["epsilon"]) >= facts.epsilon * _SPENT)
        and rational(claims["delta"]) <= facts.delta < 1
        and (facts.method == SAMPLED) == (facts.epsilon == 0)
        and (facts.method == CLIPPED) == (facts.delta == 0)
        and (facts.bias is None or facts.claims["bias_bound"] <= facts.bias * (1 + _CLOSE))
    )
    return holds, f"epsilon {float(facts.epsilon):.6g}, delta {float(facts.delta):.6g}"


def _bias(facts: Facts, _: documents.Document) -> tuple[bool, str]:
    truth, stated = Bounds.of(facts), facts.claims["bias_bound"]
    nothing = _NO_BIAS * truth.noise_scale
    holds = math.isclose(stated, truth.bias, rel_tol=_CLOSE, abs_tol=nothing)
    return math.isfinite(truth.bias) and holds, f"at most {truth.bias:.6g}"


def _errors(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    truth, claims = Bounds.of(facts), facts.claims
    stated, bias = claims["standard_error"], claims["bias_bound"]
    rmse = math.hypot(bias, stated)
    if not all(map(math.isfinite, (truth.variance, truth.bias, rmse))):
        return False, "errors without a bound"
    holds = (
        math.isfinite(truth.variance)
        and _covers(stated, math.sqrt(truth.variance))
        # That of a symmetric mean is found by a search: it may be a little above the least.
        and (facts.method == SYMMETRIC or stated * (1 - _CLOSE) <= math.sqrt(truth.variance))
        and math.isclose(claims["rmse_bound"], rmse, rel_tol=_CLOSE)
        and math.isclose(claims["noise_scale"], truth.noise_scale, rel_tol=_CLOSE)
        and (not facts.normal or _expected(facts, manifest["plan"]["claims"]))
    )
    return holds, f"standard error at most {math.sqrt(truth.variance):.6g}"


def _expected(facts: Facts, claims: documents.Document) -> bool:
    """Whether half a normal interval is that of values that spread as the moments allow."""
    truth = facts.claims["bias_bound"] + Beside.of(facts).expected(facts.deviation)
    return math.isclose(real(claims[_HALF]), truth, rel_tol=_CLOSE)


def _result(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    result = manifest["results"]
    value, failed = real(result["value"]), result["coarse_failed"]
    known = isinstance(failed, bool) if facts.method == SYMMETRIC else failed is None
    exact = signed(result["exact"])
    if not known or float(exact) != value:
        return False, f"{value:.6g}, not that of the exact number"
    # Squares are there if they were asked for, unless the coarse step failed.
    normal = result.get(_NORMAL)
    if (normal is not None) != (facts.normal and failed is not True):
        return False, f"{value:.6g}, with other numbers than were asked for"
    if facts.method in PUBLISHING or failed is True:
        return True, f"{value:.6g}, as a fraction"
    whole = _on_lattice(facts, exact) and (normal is None or _squares(facts, exact, normal))
    return whole, f"{value:.6g}, a whole number of steps of noise"


def _squares(facts: Facts, exact: Fraction, normal: documents.Document) -> bool:
    """Whether squares are counted from a place that a guess or grid may have, in whole steps."""
    about, beside = signed(normal["about"]), Beside.of(facts)
    if facts.method == SYMMETRIC:
        place = about / Fraction(2) ** (facts.parameters["coarse_exponent"] - _GUESS)
        known = place.denominator == 1 and place.numerator % 2 == 1
    else:
        middle = facts.parameters["low"] + facts.parameters["high"]
        known = about == middle * tick_of(facts) / 2
    step = tick_of(facts) / beside.total / facts.parameters["per_unit"]
    whole = facts.method != SYMMETRIC or ((exact - about) / step).denominator == 1
    return known and whole and beside.on_lattice(signed(normal["squares"]))


def _on_lattice(facts: Facts, exact: Fraction) -> bool:
    """Whether an estimate is a whole number of steps from a place where one can start.

    The grid starts at a whole number of ticks, the guess of a symmetric mean at one of 2^-61 bins.
    """
    tick, users = tick_of(facts), int(facts.final.sum())
    if facts.method == SYMMETRIC:
        tick = Fraction(2) ** (facts.parameters["coarse_exponent"] - _GUESS)
    return (exact / (tick / users / facts.parameters["per_unit"])).denominator == 1


def _interval(facts: Facts, manifest: documents.Document) -> tuple[bool, str]:
    result, claims = manifest["results"], facts.claims
    exact, (low, high) = signed(result["exact"]), map(real, result["interval"])
    if real(manifest["confidence"]) != CONFIDENCE:
        return False, f"another confidence than {CONFIDENCE}"
    if facts.normal and result[_NORMAL] is not None:
        return _normal_interval(facts, result)
    # An interval that is an ulp narrower on either side must not do: it is rounded, not stretched.
    inner = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
    wide = all(_far_enough(facts, side) for side in _sides(exact, (low, high)))
    wider = any(_far_enough(facts, side / _WIDER) for side in _sides(exact, inner))
    half = claims["bias_bound"] + claims["standard_error"] / math.sqrt(_MISS)
    return wide and not wider, f"{float(exact):.6g} -+ {half:.6g} at {CONFIDENCE:.4g}"


def _normal_interval(facts: Facts, result: documents.Document) -> tuple[bool, str]:
    """Whether half a width follows from the squares, and both ends from it, rounded outwards."""
    exact, normal = signed(result["exact"]), result[_NORMAL]
    half = real(normal[_HALF])
    moved, squares = exact - signed(normal["about"]), signed(normal["squares"])
    truth = facts.claims["bias_bound"] + Beside.of(facts).half(moved, squares)
    sides = _sides(exact, (real(result["interval"][0]), real(result["interval"][1])))
    inner = _sides(
        exact,
        (
            math.nextafter(result["interval"][0], math.inf),
            math.nextafter(result["interval"][1], -math.inf),
        ),
    )
    wide = all(side >= Fraction(half) for side in sides)
    wider = any(side >= Fraction(half) for side in inner)
    follows = math.isclose(half, truth, rel_tol=_CLOSE) and wide and not wider
    return follows, f"{float(exact):.6g} -+ {truth:.6g} at {CONFIDENCE:.4g}, normal"


def _sides(exact: Fraction, ends: tuple[float, float]) -> tuple[Fraction, Fraction]:
    """How far the ends of an interval are below and above a number, exactly."""
    return exact - Fraction(ends[0]), Fraction(ends[1]) - exact


def _far_enough(facts: Facts, side: Fraction) -> bool:
    """Whether the mean is beyond it with probability at most 1 - confidence, exactly.

    Chebyshev: further than bias and k deviations with probability at most 1/k^2.
    """
    rest = side - Fraction(facts.claims["bias_bound"])
    return rest >= 0 and rest**2 * _MISS >= Fraction(facts.claims["standard_error"]) ** 2


def _covers(stated: float, truth: float) -> bool:
    return stated >= truth * (1 - _CLOSE)


def _parts(manifest: documents.Document) -> list[tuple[documents.Document, set[str]]]:
    plan, results = manifest["plan"], manifest["results"]
    if plan["schema"] != _PLAN_SCHEMA or not isinstance(plan["source"], dict | None):
        raise ValueError
    return [
        (plan, _PLAN),
        (plan["request"], _REQUEST | ({_BY} if _BY in plan["request"] else set())),
        (plan["claims"], _CLAIMS | ({_HALF} if _BY in plan["request"] else set())),
        (manifest["records"], _RECORDS),
        (results, _RESULTS | ({_NORMAL} if _BY in plan["request"] else set())),
        *([(results[_NORMAL], _FOUND)] if results.get(_NORMAL) is not None else []),
    ]
