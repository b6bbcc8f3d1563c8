"""What a trial's mechanism was asked for, and whether its parameters are of that.

Nothing is imported from other packages, as in `verify`.
"""

import math
from fractions import Fraction

from shoal.documents import Document
from shoal.verification.strict import rational, text, whole
from shoal.verification.trials.aggregates import joined
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.privacy import BITS, ONE

_LOSS = {"epsilon", "delta"}
_ASKED = {
    "cluster_dp": _LOSS | {"levels", "floor", "histogram_scale", "expected"},
    "cluster_free": _LOSS | {"levels", "floor", "histogram_scale", "expected"},
    "uniform_prior": _LOSS | {"levels", "expected"},
    "best_table": _LOSS | {"levels", "expected"},
    "noisy_horvitz_thompson": _LOSS | {"spread_share"},
    "noisy_histogram": _LOSS,
}
_PLAIN = {
    "noisy_horvitz_thompson": "Differences of means of clusters, with noise.",
    "noisy_histogram": "Histograms of groups, with noise.",
}
# Of the noise of a histogram; without one nothing else is written.
_LATTICE_BITS = 20
_PAIR = 2
# A table that is to choose for itself has so many levels at most.
_TABLE_LEVELS = 32


def asked_hold(facts: Facts, mechanism: Document) -> tuple[bool, str]:
    """Whether parameters are of what was asked, and the sentence about them is about these."""
    asked, name = mechanism["asked"], facts.mechanism
    if asked.keys() != _ASKED[name]:
        return False, f"not what {name} is asked"
    if name in _PLAIN:
        spread = name != "noisy_horvitz_thompson" or _spread(facts, mechanism["aggregate"], asked)
        return spread and mechanism["reason"] == _PLAIN[name], f"{len(asked)} parts of a request"
    levels = len(facts.levels)
    if "table" in mechanism:
        return _table(mechanism, levels), f"{len(asked)} parts of a request"
    told = mechanism["parameters"]
    holds = _levels(told["kept"], levels, asked["levels"]) and mechanism["reason"].startswith(
        _sentence(len(told["kept"]), levels, pooled=mechanism["pooled"], weight=told["weight"])
    )
    return holds and _histogram(told, asked), f"{len(asked)} parts of a request"


def _table(mechanism: Document, levels: int) -> bool:
    """Whether the table is on the levels asked for, best for what was asked, and called so."""
    told, asked = mechanism["table"], mechanism["asked"]
    many, expected = len(told["kept"]), asked["expected"] is not None
    most = min(levels, _TABLE_LEVELS) if asked["levels"] == "auto" else asked["levels"]
    kind = "mean expected" if expected else "worst"
    part = f"all {levels}" if many == levels else f"{many} of {levels}"
    said = f"a table of {len(told['shift'])} responses on {part} levels: a {kind} variance of "
    figures = f"{told['variance']:.4g}, at least {told['bound']:.4g} for any at this loss"
    weighed = (told["weights"] is not None) == expected and asked["delta"] == "0"
    return weighed and _levels(told["kept"], levels, most) and mechanism["reason"] == said + figures


def _spread(facts: Facts, told: Document, asked: Document) -> bool:
    """Whether the sampling variance has the share of all steps that was given, rounded down."""
    used = bool(((facts.sizes > 1) & ~joined(facts.sizes)[:, None]).any())
    share = asked["spread_share"]
    if share == "chosen":
        return used or told["spread_weight"] == 0
    steps = math.floor(rational(asked["epsilon"]) * 2 ** told["lattice_bits"])
    part = rational(share)
    return part < 1 and told["spread_weight"] == (math.floor(steps * part) if used else 0)


def _levels(kept: list[int], size: int, asked: object) -> bool:
    """Whether the levels in use are evenly spaced, and as many as asked for."""
    many = max(len(kept), _PAIR)
    even = all(
        2 * abs(Fraction(at * (size - 1), many - 1) - place) <= 1 for at, place in enumerate(kept)
    )
    if asked == "auto":
        return even
    return even and many == (size if asked == "all" else whole(asked))


def _histogram(told: Document, asked: Document) -> bool:
    """Whether floor and noise are the given ones, rounded down; without a histogram: none."""
    floor, scale = _number(asked.get("floor")), _number(asked.get("histogram_scale", "inf"))
    uniform = ONE // max(len(told["kept"]), 1)
    if not told["weight"]:
        # The floor of a uniform prior is checked with the other parameters.
        few = scale is None or scale > 1 << _LATTICE_BITS
        return few and bool(told["lattice_bits"] == _LATTICE_BITS)
    right = floor is None or told["floor"] == min(math.floor(floor * (1 << BITS)), uniform)
    if scale is None:
        return right
    steps = 0 if math.isinf(scale) else math.floor(2 ** told["lattice_bits"] / scale)
    return right and bool(told["weight"] == steps)


def _number(value: object) -> float | None:
    """A positive number as it is shown; None if none was given."""
    if value is None:
        return None
    found = float(text(value))
    if str(found) != value or not found > 0:
        raise ValueError
    return found


def _sentence(many: int, size: int, *, pooled: bool, weight: int) -> str:
    prior = "a uniform prior"
    if weight:
        prior = "priors from noisy histograms" + " of the arms" * pooled
    return f"{prior} on {f'all {size}' if many == size else f'{many} of {size}'} levels, "
