"""Single bits of plan files flipped: of cells by every method, of unbiased means, of questions.

Loading must refuse the file with an error of shoal. What is loaded nevertheless must be harmless,
by the field that was hit: a plan of other records, which refuses the true ones and charges nothing;
or a plan with the same loss whose claims all hold, for another question, with other dual variables,
or with numbers that differ in their last digits. Of means and questions a release is drawn and
verified.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

import shoal
from shoal import unbiased
from shoal.documents.packed import unpack_integers
from shoal.errors import ShoalError
from shoal.privacy.budget import Budget
from shoal.trials import QuestionsPlan
from tests.evidence import specimens
from tests.evidence.finding import Outcome
from tests.support import methods

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.finding import Progress

NAME = "bit flips of plans"
PROMISES = ("G-TAMPER",)
UNIT = "flips"
FULL, REDUCED, PARTS = 10_000, 300, 4


# Of which records a plan is.
_RECORDS = ("source", "occupancy", "counts", "columns")
LOADERS: dict[str, Any] = {
    "cells": shoal.Plan,
    "unbiased mean": unbiased.UnbiasedPlan,
    "questions": QuestionsPlan,
}


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Flip a bit of each plan in turn, load, and carry out what can be loaded."""
    every, rng = list(specimens.plans().items()), np.random.default_rng(seed)
    failures, counts = [], {"refused": 0}
    for number in range(size):
        name, whole = every[number % len(every)]
        bit = int(rng.integers(8 * len(whole)))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        found = _judge(name, whole, bytes(flipped), folder)
        if found.startswith(("refused", "harmless")):
            counts[found] = counts.get(found, 0) + 1
        else:
            failures.append(f"{name}, bit {bit}: {found}")
        progress(1)
    return Outcome(size, tuple(failures), counts=counts)


def _judge(name: str, whole: bytes, flipped: bytes, folder: Path) -> str:
    """`refused`, `harmless: field`, or what is wrong."""
    path = folder / "plan.json"
    path.write_bytes(flipped)
    load = LOADERS[name.partition(",")[0]].load
    try:
        plan: Any = load(path)
    except ShoalError:
        return "refused"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__} instead of an error of shoal"
    before, after = json.loads(whole), json.loads(flipped)
    paths = specimens.changed_paths(before, after)
    if paths and all(_packed_anew(before, after, each) for each in paths):
        return "harmless: other bits of the same numbers, packed"
    fields = ", ".join(paths)
    path.write_bytes(whole)
    true: Any = load(path)
    if any(each.startswith(_RECORDS) for each in paths):
        found = carried_out(plan, folder)
        return f"{found}: {fields}" if found else f"carried out on true records with other {fields}"
    if loss(plan) != loss(true):
        return f"loaded with another {fields}"
    if isinstance(plan, shoal.Plan):
        return f"{'harmless' if all(map(_harmless, paths)) else 'loaded with another'}: {fields}"
    return f"{carried_out(plan, folder) or 'harmless, and every claim holds'}: {fields}"


def loss(plan: Any) -> Budget:  # noqa: ANN401
    """What a plan of any kind costs."""
    if isinstance(plan, QuestionsPlan):
        return plan.loss
    return Budget(plan.exact_epsilon, plan.exact_delta)


def _packed_anew(before: Any, after: Any, path: str) -> bool:  # noqa: ANN401
    """Whether a column was packed with another filling of its last byte: the numbers are equal."""
    *way, last = path.split(".")
    if last != "data":
        return False
    for name in way:
        before, after = before[name], after[name]
    return np.array_equal(unpack_integers(before, path), unpack_integers(after, path))


def _harmless(path: str) -> bool:
    """Whether a field of cells changes neither loss nor noise, and every claim still holds.

    What was asked for is another question then, which the same plan answers; any dual variables
    prove the gap that they prove; what follows by floating-point arithmetic may differ in its last
    digits.
    """
    asked = path.startswith("request.") or path == "tick_bits"
    # Errors and loss are computed from the chance of sampling: it is a parameter like others.
    chosen = path.startswith("duals.dual") or path == "parameters.sampling_words"
    return asked or chosen or path.endswith(specimens.ROUNDING)


def carried_out(plan: Any, folder: Path) -> str:  # noqa: ANN401
    """Nothing if the true records are released and verify; or that they are refused for nothing."""
    book = shoal.Ledger.create(folder / "own.ledger", epsilon=100, delta="0.5")
    try:
        done = _release(plan, book)
        verdict = shoal.verify(done.manifest, ledger=book)
    except ShoalError:
        charged = book.spent.epsilon
        return "a refusal was charged" if charged else "harmless, no records fit"
    else:
        return "" if verdict.holds else "charged for claims that do not hold"
    finally:
        book.path.unlink()


def _release(plan: Any, book: shoal.Ledger) -> Any:  # noqa: ANN401
    if isinstance(plan, shoal.Plan):
        table = methods.tied(3, specimens._USERS, specimens._CELLS)
        return plan.release(methods.records(table), ledger=book)
    if isinstance(plan, unbiased.UnbiasedPlan):
        values, who = specimens.values()
        return plan.release(values, who, ledger=book, values_name="height", privacy_unit="person")
    own = specimens.asked()
    return plan.release(
        own.outcome, own.arm, own.cluster, own.covariates,
        ledger=book, outcome_name="score", privacy_unit="person",
    )  # fmt: skip
