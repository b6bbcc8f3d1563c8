"""What shoal answers to a golden request, as plain data: all that knows shoal's names is in here.

A redesign changes this module and nothing else of the net. Numbers are told by what they mean:
noise scales as parts of a statistic's range, losses as exact fractions, sums in whole ticks.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

import shoal
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Plain = dict[str, Any]


def answer(kind: str, request: Plain) -> Plain:
    """The result of a request of some kind, or that it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ANSWERS[kind](request)
        except ShoalError:
            return {"refused": True}


# Cells.


def _cells_plan(request: Plain, *, backwards: bool = False) -> shoal.Plan:
    step = -1 if backwards else 1
    user, cell, count = (np.array(request[name])[::step] for name in ("user", "cell", "count"))
    places = _places(cell, request["keys"])
    occupancy = shoal.Occupancy.from_counts([f"u{n:05}" for n in user], places, count)
    options = {k: v for k, v in request["plan"].items() if k not in ("bounds", "weights")}
    if "weights" in request["plan"]:
        labels = occupancy.labels
        heavy = {labels[int(at)]: each for at, each in request["plan"]["weights"].items()}
        options["weights"] = heavy
    return shoal.plan(occupancy, bounds=tuple(request["plan"]["bounds"]), **options)


def _places(cell: np.ndarray, keys: int) -> Any:  # noqa: ANN401
    """One key of text, or a text and a number."""
    if keys == 1:
        return [f"p{n:02}" for n in cell]
    return {"place": [f"q{n // 3:02}" for n in cell], "hour": (cell % 3).tolist()}


def plan_cells(request: Plain) -> Plain:
    """The decision of a plan of cells: status, scales, whole numbers, exact losses, errors."""
    found = _decision(_cells_plan(request))
    if request["reverse"]:
        found["rows_matter"] = _decision(_cells_plan(request, backwards=True)) != found
    return found


def _decision(plan: shoal.Plan) -> Plain:
    design, names = plan.design, [each.name for each in plan.statistics]
    share = design.weight / design.total[design.number]
    return {
        "method": plan.method,
        "settings": dict(plan.request.settings),
        "noise": "gaussian" if plan.gaussian else "laplace",
        "joint": plan.joint,
        "status": list(plan.status),
        "lattice_bits": plan.lattice_bits,
        # Of each released cell: a part of the range, or of the range that is selected.
        "scale": _rows(names, plan.relative_scale),
        "selection_scale": plan.selection_scale.tolist(),
        "whole": {name: each.tolist() for name, each in sorted(plan.parameters.items())},
        "weight": {
            "kept": _short(np.bincount(design.number, share, design.n_numbers)),
            "squares": _short(np.bincount(design.number, share**2, design.n_numbers)),
            "of_each": _digest(_fractions(design.weight, design.total[design.number])),
            "averaged_together": _digest(_arrays(design.groups)),
        },
        "loss": _losses(plan),
        "epsilon": plan.epsilon,
        "delta": str(plan.exact_delta),
        "bias": _rows(names, plan.bias_bound, _short),
        "worst_case": _rows(names, plan.worst_case_error, _short),
        "lower_bound": _rows(names, plan.lower_bound, _short),
        "gap": None if plan.gap is None else float(plan.gap),
    }


def _losses(plan: shoal.Plan) -> Plain:
    """What each user loses, exactly, from the steps that a user moves numbers by.

    With Laplace noise epsilon in parts of 2^bits; with Gaussian noise rho of the numbers in parts
    of 2^(2 bits + 1), and the epsilon of a selection for all cells beside it.
    """
    bits, design = plan.lattice_bits, plan.design
    if not plan.gaussian:
        lost = [Fraction(each) * 2**bits for each in plan.user_losses.tolist()]
        assert all(each.denominator == 1 for each in lost)
        return {"bits": bits, "users": [int(each) for each in lost], "selection": "0"}
    users = [0] * plan.occupancy.n_users
    balls = [int(plan.parameters[name][0]) for name in ("ball", "first_ball") if _has(plan, name)]
    for user in design.user.tolist() if balls else ():
        users[user] = sum((2 * ball) ** 2 for ball in balls)
    for steps in () if balls else plan.queries.member_steps(plan.relative_scale, bits):
        for user, each in zip(design.user.tolist(), steps.tolist(), strict=True):
            users[user] += each**2
    return {"bits": 2 * bits + 1, "users": users, "selection": str(plan.losses.selecting)}


def _has(plan: shoal.Plan, name: str) -> bool:
    return name in plan.parameters


def _arrays(groups: Any) -> list[Any]:  # noqa: ANN401
    """Which records are averaged together: of each array its members and their records."""
    if groups is None:
        return []
    found: dict[int, list[list[int]]] = {}
    columns = groups.group.tolist(), groups.member.tolist(), groups.records.tolist()
    for group, member, records in zip(*columns, strict=True):
        found.setdefault(group, []).append([member, records])
    return sorted(sorted(each) for each in found.values())


def _fractions(part: np.ndarray, whole: np.ndarray) -> list[str]:
    pairs = zip(part.tolist(), whole.tolist(), strict=True)
    return [str(Fraction(one, all_of_it)) for one, all_of_it in pairs]


def _digest(values: Any) -> str:  # noqa: ANN401
    """A few characters that stand for exact values."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _short(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Numbers of twelve places; what is not finite is None."""
    return [float(f"{x:.12g}") if np.isfinite(x) else None for x in np.asarray(values).tolist()]


def _plain(values: np.ndarray) -> list[float]:
    return [float(each) for each in values]


def _rows(names: Sequence[str], numbers: np.ndarray, form: Callable[..., Any] = _plain) -> Plain:
    """Numbers by statistic."""
    rows = np.asarray(numbers).reshape(len(names), -1)
    return {name: form(row) for name, row in zip(names, rows, strict=True)}


ANSWERS: dict[str, Callable[[Plain], Plain]] = {"cells": plan_cells}
