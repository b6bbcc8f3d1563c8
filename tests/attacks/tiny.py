"""Every small public through every way to plan and release it: nothing fails but in our words.

One to three users in one to three cells with one to three records each, by every method, range,
rule and statistic, at losses from hopeless to lavish. What is planned is released and verified.
"""

import itertools
import random
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.cells.mechanisms.methods import METHODS

SIZE, UNIT = 5_000, "plans"
_LOSSES = ("1/1000", 1, 50)
_RULES = ("keep", "drop", "refuse")
_SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "optimal": tuple(
        {"range": range_, "targets": targets}
        for range_ in ("whole", "selected")
        for targets in ("equal", "balanced")
    ),
    "array_averaging": tuple(
        {"cap": cap, "grouping": grouping}
        for cap in ("median", "levy", "minimax", "surrogate", 1, 5)
        for grouping in ("best_fit", "wrap_around")
    ),
    "levy": ({}, {"cap": 1, "gamma": 0.9}, {"cap": "minimax"}),
    "quantile": ({}, {"quantiles": "optimised"}, {"cap": 2}),
}
_MANY = (["variance"], ["mean", "variance"], ["share_above(3)"], ["variance", "share_above(3)"])
_TOGETHER = ("balanced", "equalised", "uniform", "optimal", "clip_user")


@cache
def requests() -> tuple[dict[str, Any], ...]:
    """Every method with its settings, statistics, loss and rule."""
    found = []
    for method, loss, rule in itertools.product(METHODS, _LOSSES, _RULES):
        base = {"method": method, "epsilon": loss, "uninformative": rule}
        found += [base | {"settings": each} for each in _SETTINGS.get(method, ({},))]
        if method in _TOGETHER:
            found += [base | {"statistics": each} for each in _MANY]
        if method in _TOGETHER[:3]:
            found += [base | {"statistics": each, "delta": "1e-6"} for each in (["mean"], *_MANY)]
    return tuple(found)


@cache
def all_counts() -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Counts, users by cells, every cell and user with a record; users in falling order."""
    found = []
    for users, cells in itertools.product((1, 2, 3), repeat=2):
        most = 3 if users * cells <= 6 else 2
        rows = list(itertools.product(range(most + 1), repeat=cells))[1:]
        found += [
            table
            for table in itertools.combinations_with_replacement(rows, users)
            if all(any(row[cell] for row in table) for cell in range(cells))
        ]
    return tuple(found)


def attack(size: int, seed: int, folder: Path) -> Iterator[str]:
    """That many pairs of counts and a request, planned, released, simulated and verified."""
    dice = random.Random(seed)
    for _ in range(size):
        counts, wanted = dice.choice(all_counts()), dice.choice(requests())
        wrong = attempt(counts, wanted, folder)
        if wrong:
            yield f"{counts} {wanted}: {wrong}"


def attempt(counts: tuple[tuple[int, ...], ...], wanted: dict[str, Any], folder: Path) -> str:
    """What went wrong with one of them, or nothing; only a plan may be refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            records = shoal.Records(
                _table(counts), user="u", value="v", bounds=(0, 8), by="c", counts="public"
            )
            try:
                plan = shoal.plan(
                    records.counts(), bounds=(0, 8), **{"method": "balanced", **wanted}
                )
            except shoal.ShoalError:
                return ""
            return _carried_out(plan, records, folder, wanted)
        except Exception as error:
            return type(error).__name__


def _carried_out(
    plan: shoal.Plan, records: shoal.Records, folder: Path, wanted: dict[str, Any]
) -> str:
    if not np.isfinite(plan.worst_case_error).all() or plan.exact_epsilon < 0:
        return "an error that is no number"
    place = folder / "tiny.ledger"
    if not place.exists():
        shoal.Ledger.create(place, epsilon=10**9, delta="1/2", privacy_unit="u", counts="public")
    plan.release(records, noise=shoal.Simulated(1)).table()
    done = plan.release(records, ledger=place, name=f"{len(list(folder.iterdir()))}{wanted}"[:150])
    str(plan)
    done.table()
    done.write_manifest(folder / "tiny.json", overwrite=True)
    found = shoal.verify(folder / "tiny.json")
    return "" if found.holds else f"a manifest that does not verify: {str(found)[:300]}"


def _table(counts: tuple[tuple[int, ...], ...]) -> pa.Table:
    rows = [
        (f"u{user}", cell)
        for user, row in enumerate(counts)
        for cell, number in enumerate(row)
        for _ in range(number)
    ]
    values = [float((3 * at) % 9) for at in range(len(rows))]
    return pa.table({"u": [u for u, _ in rows], "c": [c for _, c in rows], "v": values})
