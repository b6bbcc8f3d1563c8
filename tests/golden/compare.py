"""Differences between a golden result and today's, by what they mean."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.golden import files
from tests.golden.adapter import answer

if TYPE_CHECKING:
    from collections.abc import Iterator

# A gap is a small difference of large numbers; and what is as good as 0 in any unit.
_GAP, _NOTHING = 1e-6, 1e-12

Difference = tuple[str, Any, Any]


def compare(kind: str, tenth: int | None = None) -> Iterator[tuple[int, Difference]]:
    """Differences of one kind with the number of the request; of every tenth, if one is named."""
    pairs = files.read(kind)
    for at in range(len(pairs)) if tenth is None else range(tenth, len(pairs), 10):
        request, before = pairs[at]["request"], pairs[at]["result"]
        for each in differences(kind, request, before, answer(kind, request)):
            yield at, each


def differences(kind: str, request: Any, before: Any, after: Any) -> list[Difference]:  # noqa: ANN401
    """What differs by more than the request's tolerance: where, before and after."""
    if before.keys() != after.keys():
        return [("result", *(" ".join(each) for each in (before, after)))]
    tolerance = request.get("tolerance", 1e-9)
    if kind == "cells" and "loss" in before:
        # Where scales agree in all places, so do losses; else they are as near as the scales.
        same = all(before[part] == after[part] for part in ("scale", "whole", "selection_scale"))
        before, after = (_in_fractions(each, exact=same) for each in (before, after))
    return list(_differences("", before, after, tolerance))


def shown(difference: Difference) -> str:
    """A difference in a line."""
    path, before, after = difference
    return f"{path}: {_text(before)} before, {_text(after)} now"


def _in_fractions(result: Any, *, exact: bool) -> Any:  # noqa: ANN401
    """A decision whose losses are fractions, or floating-point numbers that may differ a little."""
    loss = result["loss"]
    users = [Fraction(each, 2 ** loss["bits"]) for each in loss["users"]]
    of_users = users if exact else [float(each) for each in users]
    told = {"largest": max(of_users), "users": of_users, "selection": Fraction(loss["selection"])}
    return {**result, "loss": told}


def _differences(path: str, before: Any, after: Any, tolerance: float) -> Iterator[Difference]:  # noqa: ANN401
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            one, other = before.get(name, "nothing"), after.get(name, "nothing")
            yield from _differences(f"{path} {name}".strip(), one, other, tolerance)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(f"{path}[{at}]", one, other, tolerance)
    elif isinstance(before, float) and isinstance(after, float):
        near = _GAP if path == "gap" else _NOTHING
        if not math.isclose(before, after, rel_tol=tolerance, abs_tol=near):
            yield path, before, after
    elif before != after:
        yield path, before, after


def _text(value: Any) -> str:  # noqa: ANN401
    text = f"{float(value)!r} ({value})" if isinstance(value, Fraction) else repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
