"""Lies about unbiased means: parameters, claims, parts of a request, counts and the result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.evidence.lies_kit import add, drop, packed, plus, put, times

if TYPE_CHECKING:
    from tests.evidence.lies_kit import Change, Document, Lies

_PARAMETERS, _CLAIMS, _WANTED = "plan.parameters", "plan.claims", "plan.request"


def _moved(document: Document) -> None:
    result = document["results"]
    result["value"] += 1.0
    result["interval"] = [end + 1.0 for end in result["interval"]]


def _smaller_errors(factor: float) -> Change:
    """Errors and the interval that would follow."""

    def change(document: Document) -> None:
        claims, result = document["plan"]["claims"], document["results"]
        claims["standard_error"] *= factor
        claims["rmse_bound"] = math.hypot(claims["bias_bound"], claims["standard_error"])
        half = claims["bias_bound"] + claims["standard_error"] / math.sqrt(0.05)
        result["interval"] = [result["value"] - half, result["value"] + half]

    return change


LIES: Lies = {
    "half of the noise": put(f"{_PARAMETERS}.lattice_bits", to=plus(-1)),
    "twice the noise": put(f"{_PARAMETERS}.lattice_bits", to=plus(1)),
    "dearer ticks": put(f"{_PARAMETERS}.per_unit", to=plus(9)),
    "cheaper ticks": put(f"{_PARAMETERS}.per_unit", to=lambda x: x // 2),
    "a wider grid": put(f"{_PARAMETERS}.high", to=plus(999)),
    "a narrower grid": put(f"{_PARAMETERS}.high", to=plus(-99_999)),
    "a grid from elsewhere": put(f"{_PARAMETERS}.low", to=plus(999)),
    "a finer tick": put(f"{_PARAMETERS}.tick_exponent", to=plus(-1)),
    "a coarser tick": put(f"{_PARAMETERS}.tick_exponent", to=plus(1)),
    "sampling more often": put(f"{_PARAMETERS}.sampling_words", to=lambda x: str(int(x) * 2)),
    "sampling less often": put(f"{_PARAMETERS}.sampling_words", to=lambda x: str(int(x) // 2)),
    "sampling by a number": put(f"{_PARAMETERS}.sampling_words", to=int),
    "a lower threshold": put(f"{_PARAMETERS}.coarse_threshold", to=plus(-(2**19))),
    "a higher threshold": put(f"{_PARAMETERS}.coarse_threshold", to=plus(2**24)),
    "users worth more": put(f"{_PARAMETERS}.coarse_per_user", to=times(2)),
    "a coarse step with less noise": put(f"{_PARAMETERS}.coarse_bits", to=plus(-1)),
    "fewer users in the coarse step": put(f"{_PARAMETERS}.coarse_users", to=plus(-40)),
    "other bins": put(f"{_PARAMETERS}.coarse_exponent", to=plus(-1)),
    "other windows": put(f"{_PARAMETERS}.coarse_windows", to=lambda x: 3 - x),
    "a smaller delta of the coarse step": put(f"{_PARAMETERS}.coarse_delta", to="1/2000000"),
    "a middle step with less noise": put(f"{_PARAMETERS}.middle_bits", to=plus(-1)),
    "a wider middle step": put(f"{_PARAMETERS}.middle_half", to=times(2)),
    "a wider final step": put(f"{_PARAMETERS}.half", to=plus(1000)),
    "users used once or twice": put(f"{_PARAMETERS}.reuse", to=lambda x: 1 - x),
    "an unknown parameter": add(_PARAMETERS, "noise", 0),
    "a parameter less": drop(f"{_PARAMETERS}.lattice_bits"),
    "a parameter that is no whole number": put(f"{_PARAMETERS}.lattice_bits", to=float),
    "less bias": put(f"{_CLAIMS}.bias_bound", to=times(0.99)),
    "no bias": put(f"{_CLAIMS}.bias_bound", to=lambda x: 0.0 if x else times(1)(0)),
    "errors a fifth smaller": _smaller_errors(0.8),
    "half of the errors": _smaller_errors(0.5),
    "a smaller root mean squared error": put(f"{_CLAIMS}.rmse_bound", to=times(0.8)),
    "a smaller noise scale": put(f"{_CLAIMS}.noise_scale", to=times(0.5)),
    "a larger noise scale": put(f"{_CLAIMS}.noise_scale", to=times(2.0)),
    "smaller moments": put(f"{_WANTED}.moments", to=[[2.0, 2.5]]),
    "no moments": put(f"{_WANTED}.moments", to=[]),
    "moments twice": put(f"{_WANTED}.moments", to=lambda x: [*x, *x]),
    "a wider interval of means": put(f"{_WANTED}.interval", to=lambda x: [x[0] - 5.0, x[1] + 5.0]),
    "another way to weigh users": put(
        f"{_WANTED}.weights", to=lambda x: "counts" if x == "equal" else "equal"
    ),
    "a cap of weights": put(f"{_WANTED}.cap", to=1),
    "a smaller bias asked for": put(f"{_WANTED}.bias", to=times(0.1)),
    "a smaller epsilon asked for": put(f"{_WANTED}.epsilon", to="1/100"),
    "a smaller delta asked for": put(f"{_WANTED}.delta", to="1/90000000"),
    "another reuse asked for": put(f"{_WANTED}.reuse", to=lambda x: not x),
    "a mean that may be farther": put(f"{_WANTED}.farthest", to=2.0**299),
    "an unknown request": add(_WANTED, "note", "epsilon is 0.01"),
    "other counts": packed("plan.counts", lambda x: x[9:]),
    "larger counts": packed("plan.counts", lambda x: x * 2),
    "counts in another order": packed("plan.counts", lambda x: x[::-1]),
    "another method": put(
        "plan.method", to=lambda x: "clipped_mean" if x != "clipped_mean" else "sampled_mean"
    ),
    "values published or not": put("guarantee.publishes_values", to=lambda x: not x),
    "other values": put("records.value", to="salary"),
    "values that claim a smaller epsilon": put("records.value", to="height with epsilon 0.01"),
    "another value": put("results.value", to=plus(1.0)),
    "another value and its interval": _moved,
    "a narrower interval": put(
        "results.interval", to=lambda x: [x[0] + (x[1] - x[0]) / 4, x[1] - (x[1] - x[0]) / 4]
    ),
    "an interval of no width": put(
        "results.interval", to=lambda x: [x[0] / 2 + x[1] / 2, x[0] / 2 + x[1] / 2]
    ),
    "an interval that is an ulp narrower": put(
        "results.interval", to=lambda x: [math.nextafter(x[0], math.inf), x[1]]
    ),
    "an interval that is a part of 10^8 wider": put(
        "results.interval", to=lambda x: [x[0] - (x[1] - x[0]) * 1e-8, x[1]]
    ),
    "less noise on squares": put(f"{_PARAMETERS}.square_step", to=lambda x: x * 4 // 5),
    "half of the noise on squares": put(f"{_PARAMETERS}.square_bits", to=plus(-1)),
    "more noise on squares": put(f"{_PARAMETERS}.square_bits", to=plus(1)),
    "a narrower forecast of the interval": put(f"{_CLAIMS}.half_width", to=times(0.9)),
    "certified intervals asked for": drop(f"{_WANTED}.interval_by"),
    "intervals of another name": put(f"{_WANTED}.interval_by", to="exact"),
    "half a width that is a tenth less": put("results.normal.half_width", to=times(0.9)),
    "squares about the estimate": put("results.normal.about", to="1/3"),
    "no squares": put("results.normal", to=None),
    "another confidence of the interval": put("confidence", to=0.99),
    "a coarse step that ended otherwise": put(
        "results.coarse_failed", to=lambda x: not x if x is not None else False
    ),
    "no word of the coarse step": put(
        "results.coarse_failed", to=lambda x: None if x is not None else True
    ),
    "an unknown fact of the result": add("results", "p_value", 0.001),
}
