"""The second opinion on tables of responses: every lie about one is found out."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError
from shoal.trials.best_table.choice import best_table
from shoal.trials.expected import Expected
from shoal.trials.mechanisms.table import BestTable
from shoal.verification import verify
from shoal.verification.trials import effects
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.lower_bound import Dual
from shoal.verification.trials.tables import Tables
from tests.support.verdicts import rekey

if TYPE_CHECKING:
    from collections.abc import Callable

    Manifest = dict[str, Any]

pytestmark = pytest.mark.audit

SPACE = Space.counts(0, 4)


def _manifest(**options: Any) -> Manifest:  # noqa: ANN401
    rng = np.random.default_rng(2)
    found: Manifest = (
        BestTable(**{"epsilon": 2, **options})
        .privatize(rng.integers(0, 5, 300), np.arange(300) % 2, space=SPACE)
        .manifest
    )
    return found


TRUE = {
    "worst level": _manifest(),
    "expected": _manifest(expected=Expected(1, 1)),
    "few levels": _manifest(levels=2, epsilon=8),
    "little told": _manifest(epsilon="1/100"),
}


@pytest.mark.parametrize("name", TRUE)
def test_true_tables_hold(name: str) -> None:
    """G-VERIFY: loss, means, variances and lower bound, from the whole numbers alone."""
    verdict = verify.verify(TRUE[name])
    assert verdict.holds, str(verdict)
    claims = {check.claim for check in verdict.checks}
    assert {"privacy loss", "responses without bias", "lower bound"} <= claims


@pytest.mark.parametrize("said", [0, 1])
@pytest.mark.parametrize("far", [2.0**44, 2.0**70])
def test_a_far_response_excuses_no_other_effect(said: int, far: float) -> None:
    """G-VERIFY: rounding is that of what was said in an effect's two arms, not in a third."""
    rng = np.random.default_rng(3)
    manifest = BestTable(2).privatize(rng.integers(0, 5, 300), np.arange(300) % 3, space=SPACE)
    plan, results = manifest.manifest["plan"], manifest.manifest["results"]
    table = Tables.of(Facts.of(manifest.manifest), plan["mechanism"], results["released"])
    counts = np.concatenate([table.counts, np.zeros((1, 3, 1), np.int64)], axis=2)
    counts[0, 2, 0], counts[0, 2, -1] = counts[0, 2, 0] - said, said
    wide = dataclasses.replace(table, says=[*table.says, Fraction(far)], counts=counts)
    honest, other = effects.of_responses(table)[0], effects.of_responses(wide)[0]
    assert other.value == honest.value
    for known in other.known:
        assert other.excused(known) <= 1e-3 * known.half
    # Where all say the same there is no interval, and an effect is known to its last places.
    counts[...] = 0
    counts[0, :, 1] = 100
    [alike, _] = effects.of_responses(dataclasses.replace(wide, counts=counts))
    assert math.isnan(alike.known[0].half)
    assert alike.excused(alike.known[0]) <= 1e-12


def _moved(table: Manifest, by: int) -> None:
    """The first level gives the first response more often, and the second less."""
    numbers = documents.unpack_integers(table["numbers"], "numbers").copy()
    levels = len(table["kept"])
    numbers[0] += by
    numbers[levels] -= by
    table["numbers"] = documents.pack_integers(numbers)


def _one_level(table: Manifest) -> None:
    numbers = documents.unpack_integers(table["numbers"], "numbers").copy()
    numbers[::2] = 0
    table["numbers"] = documents.pack_integers(numbers)


LIES: dict[str, Callable[[Manifest], Any]] = {
    "a number more": lambda t: _moved(t, 1),
    "a far larger ratio": lambda t: _moved(t, 2**30),
    "responses that are never given": _one_level,
    "a response that says more": lambda t: t["shift"].__setitem__(-1, t["shift"][-1] * 1.001),
    "all responses nearer": lambda t: t.update(shift=[each * 0.9 for each in t["shift"]]),
    "a smaller variance": lambda t: t.update(variance=t["variance"] * 0.999),
    "a larger variance": lambda t: t.update(variance=t["variance"] * 1.001),
    "a larger bound": lambda t: t.update(bound=t["bound"] * 1.001),
    "no bound": lambda t: t.update(bound=0.0),
    "a proof that claims more": lambda t: t["certificate"].update(
        total=[each + 0.01 for each in t["certificate"]["total"]]
    ),
    "weights of a bound that are none": lambda t: t["certificate"].update(
        weight=[2 * each for each in t["certificate"]["weight"]]
    ),
    "weights below 0": lambda t: t["certificate"].update(
        weight=[-each for each in t["certificate"]["weight"]]
    ),
    "other weights": lambda t: t.update(
        weights=None if t["weights"] else [1 / len(t["kept"])] * len(t["kept"])
    ),
    "other levels": lambda t: t.update(kept=[each + 1 for each in t["kept"]]),
    "a level less": lambda t: t.update(kept=t["kept"][:-1]),
}


@pytest.mark.parametrize("name", TRUE)
@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_found(name: str, lie: str) -> None:
    """G-VERIFY: a lie about a table is a failed claim or a damaged document."""
    manifest: Manifest = json.loads(documents.canonical_bytes(TRUE[name]))
    LIES[lie](manifest["plan"]["mechanism"]["table"])
    assert not _holds(manifest)


@pytest.mark.parametrize("name", TRUE)
def test_a_smaller_loss_is_found(name: str) -> None:
    """G-VERIFY: guarantee, claims and request agree with each other and not with the table."""
    manifest: Manifest = json.loads(documents.canonical_bytes(TRUE[name]))
    for part in (manifest["guarantee"], manifest["plan"]["claims"]):
        part["epsilon"] = "1/200"
    manifest["plan"]["mechanism"]["asked"]["epsilon"] = "1/200"
    manifest["guarantee"]["epsilon_at_most"] = 0.005
    rekey(manifest)
    assert not _holds(manifest)


def _holds(manifest: Manifest) -> bool:
    try:
        return verify.verify(manifest).holds
    except DocumentError:
        return False


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_the_same_bound_by_other_code(epsilon: str) -> None:
    """G-INDEPENDENT: in fractions, what the solver found in floating point; no more than true."""
    for space in (Space.binary(), Space.counts(0, 6), Space((0.0, 0.1, 0.7, 1.0))):
        found = best_table(space, Fraction(epsilon))
        proof = found.certificate
        parts = (proof.weight, proof.slope, proof.total)
        exact = [[Fraction(each) for each in part.tolist()] for part in parts]
        levels = [Fraction(each) for each in space.levels]
        centred = [(y - levels[0]) / (levels[-1] - levels[0]) - Fraction(1, 2) for y in levels]
        proved = Dual(*exact).proves(centred, Fraction(epsilon)) * space.width**2
        assert proved == pytest.approx(found.bound, rel=1e-9)
        # A curve that dips below 0 proves less than it claims, never more.
        raised = [each + Fraction(1, 1000) for each in exact[2]]
        assert Dual(exact[0], exact[1], raised).proves(centred, Fraction(epsilon)) <= (
            found.variance / space.width**2
        )


def test_a_bound_of_any_dual_variables_is_below_the_best() -> None:
    """G-GAP: random dual variables prove less than the least variance."""
    rng, levels = np.random.default_rng(5), [Fraction(-1, 2), Fraction(0), Fraction(1, 2)]
    best = best_table(Space.counts(0, 2), Fraction(1)).variance / 4
    for _ in range(100):
        weight = rng.dirichlet(np.ones(3))
        dual = Dual(
            [Fraction(each) for each in weight.tolist()],
            [Fraction(each) for each in rng.normal(size=3).tolist()],
            [Fraction(each) for each in rng.normal(size=3).tolist()],
        )
        assert dual.proves(levels, Fraction(1)) <= best
    assert math.isfinite(best)
