"""True plans and manifests of every kind, to flip bits of and to lie about."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

import shoal
from shoal import documents, unbiased
from tests.evidence import replay_means, replay_questions, replay_trials
from tests.support import methods

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.trials import QuestionsPlan

_USERS, _CELLS, _MEMBERS = 14, 3, 300
_COUNTS = np.arange(_MEMBERS) % 3 + 1
_TOLERANCE, _LEAST = 1e-7, 1e-12
# Units with questions: enough for groups by sex.
_ASKED = 150
ROUNDING = ", by less than 1e-7 of itself"
_SPACES = {"counts": (), "bins": ("cluster_dp", "noisy_histogram"), "nearest": ("uniform_prior",)}


def plans() -> dict[str, bytes]:
    """The file of a plan by every method, of cells and of unbiased means."""
    table = methods.tied(3, _USERS, _CELLS)
    found = {
        f"cells, {name}": methods.plan(table, wanted).to_document()
        for name, wanted in methods.METHODS.items()
    }
    for name, wanted in replay_means.WISHES.items():
        found[f"unbiased mean, {name}"] = _mean_plan(wanted).to_document()
    found |= {name: plan.to_document() for name, plan in _question_plans()[0].items()}
    return {name: documents.canonical_bytes(each) for name, each in found.items()}


def manifests(folder: Path) -> dict[str, bytes]:
    """A manifest of real releases: cells by every method, trials by every mechanism, and so on."""
    return {**_cells(folder), **_trials(folder), **_means(), **_questions()}


def _cells(folder: Path) -> dict[str, bytes]:
    table = methods.tied(3, _USERS, _CELLS)
    records = methods.records(table)
    found = {}
    for number, (name, wanted) in enumerate(methods.METHODS.items()):
        book = shoal.Ledger.create(folder / f"{number}.ledger", epsilon=100, delta="0.5")
        made = methods.plan(table, wanted)
        found[f"cells, {name}"] = made.release(records, ledger=book, name="may").document
    return found


def _trials(folder: Path) -> dict[str, bytes]:
    rng, found = np.random.default_rng(4), {}
    at = np.arange(60)
    names = rng.permuted([f"u{number}" for number in at])
    for kind, own in _SPACES.items():
        space = replay_trials.SPACES[kind]
        outcome = rng.uniform(space.levels[0], space.levels[-1], len(at))
        for name, mechanism in replay_trials.MECHANISMS.items():
            if own and name not in own:
                continue
            for named in (True, False):
                book = shoal.Ledger.create(folder / f"{kind} {name} {named}.ledger", epsilon=100,
                                           delta="0.5")  # fmt: skip
                options: dict[str, Any] = {"unit": names} if named else {}
                trial = mechanism.privatize(
                    outcome, at % 2, at // 2 % 3, space=space, ledger=book,
                    outcome_name="bought",
                    privacy_unit="person", name="may", **options,
                )  # fmt: skip
                suffix = "named" if named else "nameless"
                found[f"trial, {name}, {kind}, {suffix}"] = trial.document
    return found


@cache
def _question_plans() -> tuple[dict[str, QuestionsPlan], replay_questions.Columns]:
    """Plans by their names, and the columns that they are of."""
    columns = replay_questions.Columns.drawn(
        np.random.default_rng(6), replay_questions.SPACES["amounts"], _ASKED
    )
    found = {
        f"questions, {name}": columns.plan(name, replay_questions.SPACES["amounts"])
        for name in replay_questions.ASKED
    }
    return found, columns


def _questions() -> dict[str, bytes]:
    plans, own = _question_plans()
    return {
        name: plan.release(
            own.outcome, own.arm, own.cluster, own.covariates, outcome_name="score", name="may",
            privacy_unit="person",
        ).document
        for name, plan in plans.items()
    }  # fmt: skip


def _mean_plan(wanted: dict[str, Any]) -> unbiased.UnbiasedPlan:
    return unbiased.plan(counts=_COUNTS, moment=unbiased.Moment(2, 1.5), **wanted)


def _means() -> dict[str, bytes]:
    found = {}
    for name, wanted in replay_means.WISHES.items():
        made = _mean_plan(wanted)
        estimate = made.release(*values(), name="may", values_name="height")
        found[f"unbiased mean, {name}"] = estimate.document
    return found


def asked() -> replay_questions.Columns:
    """The experiment that the questions are of."""
    return _question_plans()[1]


def values() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What the means are of, and whose."""
    who = np.repeat(np.arange(_MEMBERS), _COUNTS)
    return np.random.default_rng(5).normal(5, 1, len(who)), who


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same_numbers(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both are packed columns of the same numbers: how they are deflated is left open."""
    if not one.keys() == other.keys() == {"type", "length", "data"}:
        return False
    own, others = (documents.unpack_integers(each, "a column") for each in (one, other))
    return np.array_equal(own, others)


def changed_paths(one: object, other: object, path: str = "") -> list[str]:
    """Where two documents differ; places in lists are left out of the paths.

    Floating-point numbers that differ by less than the arithmetic of two machines may, and what is
    computed from them, are marked by `ROUNDING`.
    """
    if _number(one) and _number(other):
        if one == other:
            return []
        whole = isinstance(one, int) and isinstance(other, int)
        far = max(_LEAST, _TOLERANCE * max(abs(one), abs(other)))
        close = not whole and abs(one - other) <= far
        return [f"{path}{ROUNDING}" if close else path]
    if type(one) is not type(other):
        return [path]
    if isinstance(one, dict) and isinstance(other, dict):
        if _same_numbers(one, other):
            return []
        return sorted({
            found
            for key in one.keys() | other.keys()
            for found in (
                changed_paths(one[key], other[key], f"{path}.{key}".lstrip("."))
                if key in one and key in other
                else [f"{path}.{key}".lstrip(".")]
            )
        })  # fmt: skip
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return sorted({found for a, b in pairs for found in changed_paths(a, b, path)})
    return [] if one == other else [path]
