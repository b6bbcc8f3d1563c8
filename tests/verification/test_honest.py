"""Honest releases verify wherever the levels lie."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials
from shoal.verification.verdict import Check, Verdict


def _verified(plan: trials.Plan, outcomes: Any, study: trials.Experiment, folder: Path) -> Any:
    """A release of exact noise that verifies."""
    book = folder / f"{len(list(folder.iterdir()))}.ledger"
    ledger = shoal.Ledger.create(book, epsilon=1000, privacy_unit="each row", counts="public")
    given = {"ledger": ledger, "outcome_name": "o", "privacy_unit": "each row"}
    made = plan.release(outcomes, study, **given)
    verdict = shoal.verify(made.record)
    assert verdict.holds, str(verdict)
    return made


@pytest.mark.parametrize(
    ("low", "width", "number", "epsilon"),
    [(1e6, 0.01, 20, "1/100"), (1000, 1.01e-6, 100, "1/100"), (1e6, 0.01, 256, "1/10")],
)
def test_narrow_levels_far_from_0_verify(
    tmp_path: Path, low: float, width: float, number: int, epsilon: str
) -> None:
    """Noisy shares do not add up to 1, so the centre of the levels must be exact."""
    domain, at = trials.Domain.bins(low, low + width, number), np.arange(24)
    study = trials.Experiment(at % 2, at // 2 % 3)
    for plan in (study.histogram(domain, epsilon), study.table(domain, epsilon, levels=3)):
        for _ in range(3):
            _verified(plan, np.full(24, low), study, tmp_path)


@pytest.mark.parametrize("sizes", [(3, 1, 1, 1), (12, 4, 4, 4), (4, 2, 2)])
def test_a_cluster_of_half_of_the_units_verifies(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """Where its effect is the others' mean there is no interval, nor rounding."""
    cluster = np.repeat(np.arange(len(sizes)), 2 * np.array(sizes))
    at = np.arange(len(cluster))
    study, alike = trials.Experiment(at % 2, cluster), 0
    plan = study.table(trials.Domain.binary(), 1, mechanism="uniform_prior")
    for _ in range(15):
        made = _verified(plan, at // 2 % 2, study, tmp_path)
        low, high = made.estimate()[0].super_population.interval
        assert not high - low < 1e-6
        alike += np.isnan(low)
    assert alike < 15


@pytest.mark.parametrize(
    ("levels", "epsilon", "units"), [((0, 1, 10, 1e4), 12, 24), ((0, 3e-12, 1), 30, 100_000)]
)
def test_close_levels_verify_beside_a_far_one(
    levels: tuple[float, ...], epsilon: int, units: int, tmp_path: Path
) -> None:
    """A level that nobody answers leaves no error where there is none; means keep their digits."""
    at = np.arange(units)
    study = trials.Experiment(at % 2, at // 2 % 2)
    plan = study.table(trials.Domain(levels), epsilon, mechanism="uniform_prior", levels="all")
    for _ in range(3):
        _verified(plan, np.where(at % 3, 0, levels[1]), study, tmp_path)


def test_a_verdict_is_true_only_if_every_claim_holds() -> None:
    """Whoever asks for the verdict itself gets what `holds` says."""
    right, wrong = Check("a", holds=True, found="1"), Check("b", holds=False, found="2")
    for checks in ((), (right,), (wrong,), (right, wrong), (wrong, right)):
        verdict = Verdict(checks)
        assert bool(verdict) == verdict.holds == (wrong not in checks)


def _cells(who: Any, at: Any, values: Any, **asked: Any) -> Any:
    table = pa.table({"who": who, "at": at, "v": values})
    records = shoal.Records(table, user="who", value="v", bounds=(0, 10), by="at", counts="public")
    return shoal.plan(records, **asked).release(records, noise=shoal.Simulated(1)).record


@pytest.mark.filterwarnings("ignore:.*holds the text nan:shoal.errors.ShoalWarning")
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
