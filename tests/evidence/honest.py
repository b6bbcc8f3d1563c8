"""Experiments of all shapes, planned, released with real noise, loaded and verified.

Arms of unlike sizes, clusters, covariates of any scale, assigned groups, clipped sums; effects,
means, subgroups and regressions in any company; outcomes at the ends of ranges that are narrow,
wide or far from 0; any epsilon. What can be planned is charged: every claim of it must hold for the
second opinion, and shoal must read its own answers. A plan may be refused, for nothing.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import shoal
from shoal.errors import ShoalError, ShoalWarning
from shoal.trials import PrivateAnswers, Questions, Space
from tests.evidence.finding import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evidence.finding import Progress

    Design = dict[str, Any]

NAME = "honest experiments"
PROMISES = ("G-READABLE", "G-VERIFY")
UNIT = "experiments"
FULL, REDUCED, PARTS = 2000, 40, 4

_BOUNDS = ((0, 1), (-3, 5), (0, 1e6), (1e6, 1e6 + 1), (-1e9, 1e-3), (0, 1e-6), (250, 550))
_SCALES = (1e-6, 1e-3, 1.0, 1.0, 1.0, 1e4)
_MOST_FAILURES = 50


def run(size: int, *, seed: int, folder: Path, progress: Progress) -> Outcome:
    """Draw designs, and release those that can be planned."""
    failures, counts = list[str](), {"verified": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        for number in range(size):
            found = _one(np.random.default_rng([seed, number]), folder)
            counts[found] = counts.get(found, 0) + 1
            if found not in {"verified", "refused"}:
                failures.append(f"seed {seed}, experiment {number}: {found}")
            progress(1)
    if counts["verified"] < size // 3:
        failures.append(f"only {counts['verified']} of {size} experiments could be planned")
    return Outcome(size, tuple(failures[:_MOST_FAILURES]), counts=counts)


def _one(rng: np.random.Generator, folder: Path) -> str:
    """`verified`, `refused`, or what is wrong."""
    given = _design(rng)
    space = Space.binary() if rng.random() < 0.25 else Space.bins(*_BOUNDS[rng.integers(7)])
    epsilon = round(float(10 ** rng.uniform(-2, 2)), 6)
    spread = float(space.levels[-1] - space.levels[0]) * 10 ** rng.uniform(-2, 0)
    wanted: Design = {"spread": spread} if rng.random() < 0.5 else {}
    if wanted and given["assigned"] is not None:
        wanted["clip"] = bool(rng.random() < 0.5)
    outcome = _outcome(rng, space, len(given["arm"]))
    book = shoal.Ledger.create(folder / "own.ledger", epsilon=1000)
    try:
        try:
            plan = _asked(rng, given).plan(space, epsilon, **wanted)
        except ShoalError:
            return "refused"
        release = plan.release(
            outcome, given["arm"], given["cluster"], given["covariates"],
            **({} if given["assigned"] is None else {"assigned": given["assigned"]}),
            ledger=book, outcome_name="score", privacy_unit="person",
        )  # fmt: skip
        verdict = shoal.verify(json.loads(release.document), ledger=book)
        if not verdict.holds:
            return "not verified"
        release.write_manifest(folder / "m.json", overwrite=True)
        again = PrivateAnswers.load(folder / "m.json")
        return "verified" if again.estimate() == release.estimate() else "read as something else"
    except Exception as error:  # noqa: BLE001
        charged = " after its charge" if book.entries() else ""
        return f"{type(error).__name__}{charged}"
    finally:
        book.path.unlink()


def _design(rng: np.random.Generator) -> Design:
    """Columns of an experiment in any order of rows."""
    size = int(rng.choice([4, 8, 20, 40, 60, 100, 200, 400]))
    arms = int(rng.choice([2, 2, 2, 3, 4]))
    groups = None
    if size >= 40 and rng.random() < 0.3:
        groups = rng.integers(0, int(rng.integers(6, size // 3 + 1)), size)
        own = np.arange(groups.max() + 1)
        arm = rng.permutation(own % arms)[groups]
    else:
        share = rng.dirichlet(np.full(arms, 10 ** rng.uniform(-0.3, 1)))
        arm = np.append(np.repeat(np.arange(arms), 2), rng.choice(arms, size, p=share))[:size]
        arm = rng.permutation(arm)
    cluster = None
    if groups is None and rng.random() < 0.4:
        cluster = rng.integers(0, int(rng.integers(1, 4)), size)
    covariates = {}
    if rng.random() < 0.6:
        scale = float(rng.choice(_SCALES))
        covariates["age"] = scale * rng.choice([rng.normal(0, 1, size), rng.integers(0, 9, size)])
    if rng.random() < 0.4:
        covariates["sex"] = np.array(["girl", "boy", "x"])[
            rng.integers(0, rng.integers(2, 4), size)
        ]
    return {"arm": arm, "cluster": cluster, "covariates": covariates or None, "assigned": groups}


def _outcome(rng: np.random.Generator, space: Space, size: int) -> Any:  # noqa: ANN401
    low, high = float(space.levels[0]), float(space.levels[-1])
    if len(space.levels) == 2 and (low, high) == (0.0, 1.0):
        return rng.integers(0, 2, size)
    kind = rng.integers(3)
    if kind == 0:
        return rng.choice([low, high], size)
    return rng.uniform(low, high, size) if kind == 1 else np.full(size, low)


def _asked(rng: np.random.Generator, given: Design) -> Questions:
    """One to three entries of any kind."""
    asked = Questions(
        given["arm"], given["cluster"], given["covariates"], assigned=given["assigned"]
    )
    names = list(given["covariates"] or ())
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.integers(4)
        if kind == 0:
            asked = asked.effect(weights="precision" if rng.random() < 0.4 else "units")
        elif kind == 1:
            asked = asked.means()
        elif kind == 2 and "sex" in names:
            asked = asked.effect("sex")
        else:
            every = [*names, "arm", *(["cluster"] if given["cluster"] is not None else [])]
            asked = asked.regression(rng.permutation(every)[: rng.integers(1, 4)].tolist())
    return asked
