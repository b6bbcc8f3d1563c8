"""Honest releases verify wherever the levels lie."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials
from shoal.verification.verdict import Check, Verdict

pytestmark = pytest.mark.audit


def _clusters(folder: Path, mechanism: Any, outcomes: Any, space: trials.Space) -> Any:
    at, book = np.arange(len(outcomes)), folder / f"{len(list(folder.iterdir()))}.ledger"
    return mechanism.privatize(
        outcomes, at % 2, at // 2 % 3, space=space, outcome_name="o", privacy_unit="each row",
        ledger=shoal.Ledger.create(book, epsilon=1000, unit="each row"),
    ).manifest  # fmt: skip


@pytest.mark.parametrize(
    ("low", "width", "number", "epsilon", "units"),
    [(1e6, 0.01, 20, "1/100", 4), (1000, 1.01e-6, 100, "1/100", 4), (1e6, 0.01, 256, "1/10", 4)],
)
def test_narrow_levels_far_from_0_verify(
    tmp_path: Path, low: float, width: float, number: int, epsilon: str, units: int
) -> None:
    """Noisy shares do not add up to 1, so the centre of the levels must be exact."""
    space, mechanism = trials.Space.bins(low, low + width, number), trials.NoisyHistogram(epsilon)
    for _ in range(6):
        verdict = shoal.verify(_clusters(tmp_path, mechanism, np.full(6 * units, low), space))
        assert verdict.holds, [check for check in verdict.checks if not check.holds]


@pytest.mark.parametrize("sizes", [(1, 2), (2, 1), (1, 10), (1, 100), (3, 1), (5, 1, 1)])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_an_arm_of_one_unit_spends_all_and_verifies(sizes: tuple[int, ...], epsilon: int) -> None:
    """Its unit moves a difference and no variance, and epsilon is spent nonetheless."""
    arm = np.repeat(np.arange(len(sizes)), sizes)
    for share in (None, Fraction(1, 4)):
        mechanism = trials.NoisyHorvitzThompson(epsilon, spread_share=share)
        made = mechanism.privatize(np.arange(len(arm)) % 2, arm, space=trials.Space.binary())
        verdict = shoal.verify(made.manifest)
        assert verdict.holds, str(verdict)
        assert 0.999 * epsilon <= made.epsilon <= epsilon


@pytest.mark.parametrize("sizes", [(3, 1, 1, 1), (12, 4, 4, 4), (4, 2, 2)])
def test_a_cluster_of_half_of_the_units_verifies(sizes: tuple[int, ...]) -> None:
    """Where its effect is the others' mean there is no interval, nor rounding."""
    cluster = np.repeat(np.arange(len(sizes)), 2 * np.array(sizes))
    at = np.arange(len(cluster))
    alike = 0
    for _ in range(60):
        made = trials.UniformPrior(1).privatize(
            at // 2 % 2, at % 2, cluster, space=trials.Space.binary()
        )
        verdict = shoal.verify(made.manifest)
        assert verdict.holds, str(verdict)
        low, high = made.estimate().super_population.interval
        assert not high - low < 1e-6
        alike += np.isnan(low)
    assert alike < 60


@pytest.mark.parametrize("epsilon", [10, 12])
def test_clusters_with_the_same_effect_verify_beside_a_far_level(epsilon: int) -> None:
    """A level of 10,000 that nobody answers leaves no error where there is none."""
    ones = np.repeat([0, 1, 1, 2], 6), np.tile(np.arange(6), 4)
    outcomes, arm = (ones[1] < ones[0]).astype(float), np.repeat([0, 1, 0, 1], 6)
    mechanism, space = (
        trials.UniformPrior(epsilon, levels="all"),
        trials.Space((0, 1, 10, 100, 1e4)),
    )
    for _ in range(4):
        made = mechanism.privatize(outcomes, arm, np.repeat([0, 1], 12), space=space)
        verdict = shoal.verify(made.manifest)
        assert verdict.holds, str(verdict)


@pytest.mark.parametrize(("units", "gap"), [(30_000, 1e-12), (100_000, 3e-12)])
def test_many_units_on_close_levels_verify_beside_a_far_one(units: int, gap: float) -> None:
    """Means of levels that are 1e-12 of the range apart keep their digits."""
    at = np.arange(units)
    mechanism, space = trials.UniformPrior(30, levels="all"), trials.Space((0, gap, 1))
    made = mechanism.privatize(np.where(at % 3, 0, gap), at % 2, space=space)
    verdict = shoal.verify(made.manifest)
    assert verdict.holds, str(verdict)


def test_a_verdict_is_true_only_if_every_claim_holds() -> None:
    """Whoever asks for the verdict itself gets what `holds` says."""
    right, wrong = Check("a", holds=True, found="1"), Check("b", holds=False, found="2")
    for checks in ((), (right,), (wrong,), (right, wrong), (wrong, right)):
        verdict = Verdict(checks)
        assert bool(verdict) == verdict.holds == (wrong not in checks)


def _cells(who: Any, at: Any, values: Any, **asked: Any) -> Any:
    table = pa.table({"who": who, "at": at, "v": values})
    records = shoal.Records(table, user="who", value="v", bounds=(0, 10), by="at")
    return shoal.plan(records, **asked).release(records, noise=shoal.Simulated(1)).manifest


@pytest.mark.parametrize("keys", [(360610001001, 360610001002), ("07", "7"), ("nan", "b")])
def test_keys_are_names_and_no_numbers(keys: tuple[Any, Any]) -> None:
    """Numbers of one cell do not verify under the name of another that reads nearly the same."""
    manifest = _cells(range(200), [*keys] * 100, [1.0, 9.0] * 100, epsilon=5)
    assert all(each.holds for each in shoal.verify(manifest).checks[:2])
    one, other = manifest["results"]
    one["key"], other["key"] = other["key"], one["key"]
    assert not shoal.verify(manifest).checks[0].holds


def test_a_plan_that_costs_nothing_verifies() -> None:
    """Nobody counts where nobody can: the loss is 0, and no error is below half of the range."""
    asked = {"objective": "worst_case", "uninformative": "keep", "epsilon": 0.1}
    manifest = _cells([0, 1, 2, 3, 4, 4], [*"aabbab"], [1.0, 2, 3, 4, 5, 6], **asked)
    assert manifest["guarantee"]["epsilon"] == "0"
    assert all(each.holds for each in shoal.verify(manifest).checks[:2])
