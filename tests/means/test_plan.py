"""The public face: plans, documents, ledgers, hostile values, refusals, and the second opinion."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal import unbiased
from shoal.documents import canonical_bytes
from shoal.errors import BudgetError, DataError, DocumentError, InputError
from shoal.unbiased import Moment, UnbiasedPlan
from shoal.verification.recount import recount
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

N = 400
VALUES = np.random.default_rng(1).normal(5, 1, N)
ASKED: dict[str, dict[str, Any]] = {
    "clipped_mean": {"epsilon": 1, "interval": (0, 10), "bias": 0.1},
    "symmetric_mean": {"epsilon": 2, "delta": "1e-6"},
}
MOMENT = (Moment(2, 1), Moment(4, 1.4))
Edit = Callable[[Any], Any]


def planned(method: str, counts: Any = N, **changes: Any) -> UnbiasedPlan:
    """A plan of a method."""
    return unbiased.plan(method, counts, moment=MOMENT, **{**ASKED[method], **changes})


def called(method: str, values: Any, users: Any = None, **changes: Any) -> Any:
    """One call of a method's function."""
    return getattr(unbiased, method)(values, users, moment=MOMENT, **{**ASKED[method], **changes})


def book(folder: Path, **budget: Any) -> shoal.Ledger:
    """A new ledger."""
    budget = {"epsilon": 10, "delta": "0.9", "privacy_unit": "each row", **budget}
    return shoal.Ledger.create(folder / "a.ledger", **budget, counts="public")


@pytest.mark.parametrize("method", ASKED)
def test_a_ledger_charges_the_exact_loss_once(method: str, tmp_path: Path) -> None:
    """The same request costs nothing and gives the same bytes; another name or value draws."""
    ledger = book(tmp_path)
    one = called(method, VALUES, ledger=ledger, values_name="height", name="first")
    assert abs(one.value - 5) <= one.plan.bias_bound + 12 * one.plan.standard_error
    assert one.interval[0] < one.value < one.interval[1]
    spent, exact = ledger.spent, one.plan.exact_loss
    again = called(method, VALUES + 1, ledger=ledger, values_name="height", name="first")
    assert again.from_ledger
    assert again.document == one.document
    assert again.value == one.value
    assert ledger.spent == spent == one.plan.loss
    assert exact.epsilon <= spent.epsilon <= Fraction(ASKED[method]["epsilon"])
    assert exact.epsilon >= spent.epsilon * Fraction(999_999, 10**6)
    assert exact.delta <= spent.delta <= Fraction(ASKED[method].get("delta", 0))
    for other in ({"name": "second"}, {"name": "first", "values_name": "weight"}):
        called(method, VALUES, ledger=ledger, **{"values_name": "height", **other})
    assert ledger.spent == spent + spent + spent


@pytest.mark.parametrize("method", ASKED)
@pytest.mark.parametrize("options", [{}, {"weights": "counts", "cap": 3}])
def test_plans_survive_a_file(method: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Saved and loaded, without a search, a plan is the same document and draws the same."""
    counts = np.arange(N) % 5 + 1
    plan = planned(method, counts, **options)
    plan.save(tmp_path / "p.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("shoal.means.certificate._first_steps")
        loaded = UnbiasedPlan.load(tmp_path / "p.json")
    assert loaded.to_document() == plan.to_document()
    users, values = np.repeat(np.arange(N), counts), np.repeat(VALUES, counts)
    one, other = (x.release(values, users, noise=shoal.Simulated(3)) for x in (plan, loaded))
    assert one.document == other.document
    assert one.simulated
    one.write_manifest(tmp_path / "m.json")
    again = unbiased.UnbiasedEstimate.load(tmp_path / "m.json")
    assert (again.value, again.interval, str(again.plan)) == (one.value, one.interval, str(plan))


def cheaper(plan: Any) -> None:
    """A choice with half of the noise."""
    plan["choice"]["last"]["noise"]["bits"] -= 1


def less_noisy_squares(plan: Any) -> None:
    """Squares that cost something."""
    plan["choice"]["squares"]["bits"] -= 1


DAMAGE: dict[str, Edit] = {
    "noise": cheaper,
    "squares": less_noisy_squares,
    "request": lambda plan: plan["request"].update(epsilon="1/2"),
    "counts": lambda plan: plan.update(counts=3),
    "schema": lambda plan: plan.update(schema="shoal.plan/7"),
    "another part": lambda plan: plan.update(extra=1),
    "no choice": lambda plan: plan.update(choice=None),
    "half": lambda plan: plan["choice"]["last"].update(half=2**23),
    "coarse": lambda plan: plan["choice"]["coarse"].update(threshold=2**30),
    "users": lambda plan: plan["choice"]["coarse"].update(users=N),
    "another method": lambda plan: plan["request"].update(method="clipped_mean"),
    "method": lambda plan: plan["request"].update(method="sampled_mean"),
}


@loop_over("damage", DAMAGE.values())
def test_plans_that_cost_more_or_are_damaged_are_refused(damage: Edit) -> None:
    """Loss and errors are computed from the choice, whatever is claimed."""
    document = json.loads(json.dumps(planned("symmetric_mean").to_document()))
    UnbiasedPlan.from_bytes(canonical_bytes(document))
    damage(document)
    with pytest.raises(DocumentError):
        UnbiasedPlan.from_bytes(canonical_bytes(document))


LIES: dict[str, Edit] = {
    "loss": lambda made: made["guarantee"].update(epsilon="1/3", epsilon_at_most=1 / 3),
    "value": lambda made: made["results"].update(value=made["results"]["value"] + 0.01),
    "interval": lambda made: made["results"].update(interval=[4.99, 5.01]),
    "certified": lambda made: made["results"].update(certified_interval=[4.99, 5.01]),
    "steps": lambda made: made["results"].update(steps=made["results"]["steps"] + 2**30),
    "error": lambda made: made["plan"]["claims"].update(
        standard_error=made["plan"]["claims"]["standard_error"] * 0.5
    ),
}


@pytest.mark.parametrize("method", ASKED)
def test_manifests_verify_and_no_better_ones_do(method: str) -> None:
    """By the library and by the recount alone; the failure of a coarse step too."""
    found = planned(method).release(VALUES)
    assert shoal.verify(found.record).holds
    for name, lie in LIES.items():
        manifest = json.loads(found.document)
        lie(manifest)
        assert recount(manifest), name
        assert not shoal.verify(manifest).checks[0].holds or name == "error"


def test_a_failed_coarse_step_gives_no_estimate(tmp_path: Path) -> None:
    """Values that are all apart: nothing is published, the charge stands, the manifest verifies."""
    values = np.arange(N) * 1e6
    found = planned("symmetric_mean").release(values, ledger=book(tmp_path), values_name="height")
    assert found.coarse_failed
    assert (found.value, found.interval, found.certified_interval) == (None, None, None)
    assert "no estimate" in str(found)
    assert set(found.record["results"].values()) == {None}
    assert shoal.verify(found.record).holds
    assert shoal.Ledger(tmp_path / "a.ledger").spent == found.plan.loss
    lie = json.loads(found.document)
    lie["results"]["value"] = 5.0
    assert recount(lie)


@pytest.mark.parametrize("method", ASKED)
def test_one_user_moves_nothing_public_but_the_numbers(method: str) -> None:
    """Manifests of neighbours differ in what was drawn alone; no value is in them."""
    changed = VALUES.copy()
    changed[3] = 1234.56789
    one, other = (
        called(method, values, noise=shoal.Simulated(5)).record for values in (VALUES, changed)
    )
    assert "1234.5" not in json.dumps(other)
    assert {**one, "results": 0} == {**other, "results": 0}


@pytest.mark.parametrize("method", ASKED)
def test_hostile_values_are_numbers_like_others(method: str) -> None:
    """The largest doubles overflow nowhere and move an estimate by no more than others."""
    plan = planned(method)
    for far in (1.7e308, -1.7e308, 5e-324):
        values = VALUES.copy()
        values[:3] = far
        found = plan.release(values, noise=shoal.Simulated(1))
        assert found.value is not None
        assert abs(found.value - 5) < 2
    same = plan.release(np.full(N, 5.0), noise=shoal.Simulated(1)).value
    assert same is not None
    assert abs(same - 5) < 1


def test_what_does_not_fit_is_not_drawn(tmp_path: Path) -> None:
    """Budget, values, counts, names and simulations are refused before a charge."""
    ledger = book(tmp_path, epsilon="1/2", delta=0)
    options: dict[str, Any] = {"ledger": ledger, "values_name": "height"}
    with pytest.raises(BudgetError):
        called("clipped_mean", VALUES, **options)
    masked = np.ma.masked_array([1.0, 1e6], mask=[False, True])
    for bad in ([1.0, np.nan], [1.0, np.inf], [], ["a"], [[1.0]], masked):
        with pytest.raises(DataError):
            called("clipped_mean", bad, epsilon="1/4", **options)
    with pytest.raises(DataError):
        planned("clipped_mean", epsilon="1/4").release(VALUES[1:], **options)
    with pytest.raises(InputError):
        called("clipped_mean", VALUES, noise=shoal.Simulated(1), **options)
    with pytest.raises(InputError, match="values_name"):
        called("clipped_mean", VALUES, ledger=ledger)
    assert ledger.spent.epsilon == 0


@loop_over(
    ("method", "changes"),
    [
        ("mean", {"epsilon": 1}),
        (None, {"epsilon": 1}),
        ("symmetric_mean", {"delta": 0}),
        ("symmetric_mean", {"delta": 1}),
        ("symmetric_mean", {"interval": (0, 1)}),
        ("symmetric_mean", {"bias": 0.1}),
        ("symmetric_mean", {"counts": 9}),
        *(
            ("clipped_mean", each)
            for each in (
                *({"epsilon": x} for x in (0, -1, "1e-300", "1e309", 1e7)),
                *({"bias": x} for x in (None, 0, "x")),
                *({"interval": x} for x in (None, (1, 0), (0, float("nan")), "ab", (0, 1, 2))),
                *({"moment": x} for x in ((2, 1), ())),
                *({"counts": x} for x in (0, [1, 0], [1.5], 2**40)),
                *({"interval_by": x} for x in ("Normal", 1, True)),
                {"delta": "1e-6"},
                {"weights": "x"},
                {"cap": 2},
                {"weights": "counts", "cap": 0},
                {"counts": 1, "interval_by": "normal"},
            )
        ),
    ],
)
def test_unusable_requests_are_refused(method: Any, changes: dict[str, Any]) -> None:
    """Every bad argument raises an InputError before any value is there."""
    arguments = {"counts": N, "moment": MOMENT, **ASKED.get(method, {}), **changes}
    with pytest.raises(InputError):
        unbiased.plan(method, **arguments)


def test_options_and_confidences_are_checked() -> None:
    """With what there is, and what to do."""
    with pytest.raises(InputError, match="colour"):
        called("clipped_mean", VALUES, colour="red")
    with pytest.raises(InputError, match="exponential family"):
        planned("symmetric_mean", delta=0)
    for confidence in (0, 1, "x", True, 0.5, 0.999):
        with pytest.raises(InputError):
            called("clipped_mean", VALUES, confidence=confidence)
    assert planned("clipped_mean", 1).interval_by == "certified"
    certified = planned("clipped_mean", interval_by="certified")
    assert certified.release(VALUES, confidence=0.999).interval is not None


@loop_over(
    ("interval", "size", "bias"),
    [
        ((5.0, 5.001), 1e-90, 1e-91),
        ((95.367431640625, 95.367431640625), 2.0**-20, 2.0**-20 / 10),
        ((1e6, 1e6), 0.01, 1e-3),
        ((-1e15, 1e15), 0.1, 1e-4),
    ],
)
def test_a_bias_budget_holds_far_from_0(
    interval: tuple[float, float], size: float, bias: float
) -> None:
    """Edges that are rounded inwards would leave less than the margin, or none."""
    plan = unbiased.plan(
        "clipped_mean", 100, moment=Moment(2, size), epsilon=1, interval=interval, bias=bias
    )
    assert plan.bias_bound <= bias
    assert UnbiasedPlan.from_bytes(canonical_bytes(plan.to_document())).bias_bound <= bias
