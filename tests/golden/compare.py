"""Golden files, and how a result of today may differ from the one in them."""

import gzip
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.golden.adapter import answer

Plain = dict[str, Any]
# Where, before and now.
Difference = tuple[str, Any, Any]

KINDS = ("cells", "distributions", "presence", "trials", "means", "releases")
# A gap is a small difference of large numbers; and what is as good as 0 in any unit.
_GAP, _NOTHING = 1e-6, 1e-12
# Of losses, whatever else differs.
_LOSS = 1.5e-7
# Of optimal plans, which another solver and search finds by other weights: relative, of losses,
# errors and one plus the gap.
_OPTIMAL = 0.005
_WEIGHTS = ("scale", "whole", "weight", "bias", "loss")
# What an exact loss follows from.
_SCALES = ("scale", "selection_scale", "whole")


def place(kind: str) -> Path:
    """Where pairs of a request and its result are kept."""
    return Path(__file__).parent / f"{kind}.json.gz"


def read(kind: str) -> list[Plain]:
    """All pairs of a kind."""
    return list(json.loads(gzip.decompress(place(kind).read_bytes())))


def compare(kind: str, tenth: int | None = None) -> Iterator[tuple[int, Difference]]:
    """Differences with the number of the request; of one request in ten, from `tenth` on."""
    pairs = read(kind)
    for at in range(len(pairs)) if tenth is None else range(tenth, len(pairs), 10):
        request, before = pairs[at]["request"], pairs[at]["result"]
        for each in differences(request, before, answer(kind, request)):
            yield at, each


def differences(request: Plain, before: Plain, after: Plain) -> list[Difference]:
    """What differs by more than the request's tolerance."""
    if before.keys() != after.keys():
        return [("result", before if len(before) == 1 else "a result", after)]
    plan = request.get("asked", request).get("plan", {})
    if "optimal" in (plan.get("method"), before.get("method")):
        before, after = (_of_any_weights(each, plan["bounds"]) for each in (before, after))
        return list(_differences("", before, after, _OPTIMAL))
    if "loss" in before:
        # Where scales agree in all places, so do losses; else they are as near as the scales.
        exact = all(before.get(part) == after.get(part) for part in _SCALES)
        before, after = ({**each, "loss": _loss(each["loss"], exact)} for each in (before, after))
    return list(_differences("", before, after, request.get("tolerance", 1e-9)))


def shown(difference: Difference) -> str:
    """A difference in a line."""
    texts = [
        f"{float(each)!r} ({each})" if isinstance(each, Fraction) else repr(each)
        for each in difference[1:]
    ]
    return f"{difference[0]}: {texts[0][:100]} before, {texts[1][:100]} now"


def _of_any_weights(result: Plain, bounds: list[float]) -> Plain:
    """What optimal plans with other weights agree in: of releases, drawn with them, few columns."""
    if "loss" not in result:
        return {name: isinstance(each, dict) and each["statistic"] for name, each in result.items()}
    width = bounds[1] - bounds[0]
    ranges = {"mean": width, "variance": width**2 / 4}
    errors = [
        [error / ranges.get(name, 1) for error in each]
        for name, each in result["worst_case"].items()
    ]
    sums = [sum(each) for each in zip(*errors, strict=True)]
    facts = {name: each for name, each in result.items() if name not in _WEIGHTS}
    return facts | {"gap": 1 + result["gap"], "worst_case": sums}


def _loss(loss: Plain, exact: bool) -> Plain:
    """Losses as fractions, or as floating-point numbers that may differ a little."""
    users = [Fraction(each, 2 ** loss["bits"]) for each in loss.get("users", ())]
    rest: Plain = {name: Fraction(loss[name]) for name in ("exact", "selection") if name in loss}
    told: Plain = {"largest": max(users, default=Fraction(0)), "users": users, **rest}
    if exact:
        return told
    floats = {name: float(each) for name, each in told.items() if name != "users"}
    return {**floats, "users": [float(each) for each in users]}


def _differences(path: str, before: Any, after: Any, tolerance: float) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            one, other = before.get(name, "nothing"), after.get(name, "nothing")
            yield from _differences(f"{path} {name}".strip(), one, other, tolerance)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(f"{path}[{at}]", one, other, tolerance)
    elif isinstance(before, float) and isinstance(after, float):
        near = _GAP if path == "gap" else _NOTHING
        most = min(tolerance, _LOSS) if path.startswith("loss") else tolerance
        if not math.isclose(before, after, rel_tol=most, abs_tol=near):
            yield path, before, after
    elif before != after:
        yield path, before, after
