"""Which parts of a request go together, for the second opinion.

Nothing is imported from statistics, planning, mechanisms, bounding, records or theory, as in
`verify`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from shoal.verification.cells.facts import FINE
from shoal.verification.cells.mechanism import PART
from shoal.verification.cells.statistics import ALLOCATIONS, BOUNDINGS, MEAN, VARIANCE
from shoal.verification.strict import rational, real

if TYPE_CHECKING:
    from shoal import documents
    from shoal.verification.cells.errors import Errors

_LEAST_DELTA, _MOST_DELTA = Fraction(1, 10**100), Fraction(1, 100)
_LEAST_EPSILON, _MOST_EPSILON = Fraction(1, 10**9), Fraction(10**6)
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-6, 1e6
# With fewer, rounding would pass the margins of a variance of weighed users.
_FEWEST_BITS = 20
# Half of a range is the error of guessing; sums of logarithms differ in their last places.
_GUESS, _CLOSE = 0.5, 1e-6


def refused(plan: documents.Document) -> str | None:
    """Why the parts of a request do not go together; None if they do."""
    request = plan["request"]
    method, names, settings = request["method"], request["statistics"], request["settings"]
    delta, error, weights = rational(request["delta"]), request["error"], request["weights"]
    many, selects = names != [MEAN], settings.get("range") == "selected"
    fits_error = method in {*ALLOCATIONS, "optimal"} and len(names) == 1 and not (selects or delta)
    rules = (
        (many and method not in ALLOCATIONS + BOUNDINGS, "several statistics with another method"),
        (many and selects, "a selected range with more than the mean alone"),
        (delta > 0 and method not in (*ALLOCATIONS, "user_clipped"), "a delta with Laplace noise"),
        (delta > 0 and not _LEAST_DELTA <= delta <= _MOST_DELTA, "a delta that is not small"),
        (error is not None and not fits_error, "an error with what takes epsilon only"),
        (weights and method in {"equalised", "uniform"}, "weights with a method that has none"),
        (not all(map(_can_weigh, weights.values())), "a weight that no cell can have"),
        (not _one_limit(request), "not one of epsilon and error in its limits"),
        (not _can_limit(request), "a max_error that no plan takes"),
    )
    return next((why for broken, why in rules if broken), None)


def _can_weigh(weight: object) -> bool:
    return _LEAST_WEIGHT <= real(weight) <= _MOST_WEIGHT


def _one_limit(request: documents.Document) -> bool:
    epsilon, error = request["epsilon"], request["error"]
    if (epsilon is None) == (error is None):
        return False
    if error is not None:
        return real(error) > 0
    return _LEAST_EPSILON <= rational(epsilon) <= _MOST_EPSILON


def _can_limit(request: documents.Document) -> bool:
    most = request["max_error"]
    alone = request["error"] is None and request["uninformative"] == "drop"
    return most is None or (alone and 0 < real(most) < _GUESS)


def beyond(errors: Errors, request: documents.Document) -> str | None:
    """Why no plan for these counts and this range has these parts; None if one has."""
    facts, method = errors.design.facts, request["method"]
    most, bits = int(facts.count.max()), facts.tick_bits
    fine = bits >= _FEWEST_BITS or VARIANCE not in facts.statistics or method not in BOUNDINGS
    narrow = most << (bits + FINE + 1) < 2**63 and (most + 1) * len(facts.total) < 2**62
    parts = most < 1 << (62 - bits - PART) and int(facts.total.max()) < 1 << (62 - PART)
    ranges = [float(length) for _, length in errors.statistic_ranges.values()]
    rules = (
        (not fine, "a variance with few tick bits"),
        (not narrow or (method == "optimal" and not parts), "more records than have room"),
        (request["error"] is not None and 2 * real(request["error"]) >= min(ranges),
         "an error of half the range, which needs no data"),
    )  # fmt: skip
    return next((why for broken, why in rules if broken), None)


def left_out(errors: Errors, request: documents.Document) -> set[str]:
    """What a cell may be called that no public rule leaves out and that is not released."""
    if request["max_error"] is not None:
        return {"error too large"}
    # Users' vectors leave no cell out for its error.
    drops = request["uninformative"] == "drop" and errors.design.mechanism.name != "user_clipped"
    return {"uninformative"} if drops else set()


def above_most(errors: Errors, request: documents.Document) -> bool:
    """Whether a worst-case error is above the largest; errors of selected ranges are forecasts."""
    if request["max_error"] is None or errors.design.mechanism.selects:
        return False
    most, facts = real(request["max_error"]), errors.design.facts
    return any(
        errors.relative(name, at) > most * (1 + _CLOSE)
        for name in facts.statistics
        for at in range(len(facts.released))
    )


def uninformative(errors: Errors) -> bool:
    """Whether a released cell is no better than guessing: an error of at least half its range.

    Where a range is selected: the noise over the longest range, and what own parts of it leave out.
    """
    facts, mechanism = errors.design.facts, errors.design.mechanism
    numbers = range(len(facts.released))
    if mechanism.name == "user_clipped":
        # Noise is in proportion to a radius of the users' own deviations.
        return False
    if not mechanism.selects:
        return any(
            2 * errors.relative(name, at) >= 1 for name in facts.statistics for at in numbers
        )
    longest = mechanism.parameters["most"] if mechanism.name == "akmv" else [1 for _ in numbers]
    left_out = errors.design.missing()
    return any(
        2 * errors.noise(MEAN, at) * longest[at] + float(left_out[at]) >= 1 for at in numbers
    )
