"""The public face: plans, documents, ledgers, refusals."""

import dataclasses
import json
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal import documents, unbiased
from shoal.errors import BudgetError, DataError, DocumentError, InputError
from shoal.means.one_value_per_user import UserValues
from shoal.unbiased import Moment, UnbiasedPlan
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

N = 400
VALUES = np.random.default_rng(1).normal(5, 1, N)
WISHES: dict[str, dict[str, Any]] = {
    "clipped_mean": {"epsilon": 1, "interval": (0, 10), "bias": 0.1},
    "sampled_mean": {"delta": "1/4", "interval": (0, 10), "publish_values": True},
    "clipped_plus_residual": {
        "epsilon": 1,
        "delta": "1/100",
        "interval": (0, 10),
        "publish_values": True,
    },
    "symmetric_mean": {"epsilon": 2, "delta": "1e-6"},
}
MOMENT = (Moment(2, 1), Moment(4, 1.4))


def planned(method: str, counts: Any = N, **changes: Any) -> UnbiasedPlan:
    """A plan of a method."""
    return unbiased.plan(method, counts, moment=MOMENT, **{**WISHES[method], **changes})


def called(method: str, values: Any, users: Any = None, **changes: Any) -> Any:
    """One call of a method's function."""
    return getattr(unbiased, method)(values, users, moment=MOMENT, **{**WISHES[method], **changes})


def book(folder: Path, **budget: Any) -> shoal.Ledger:
    """A new ledger."""
    return shoal.Ledger.create(
        folder / "a.ledger", **{"epsilon": 10, "delta": "0.9", "unit": "each row", **budget}
    )


@pytest.mark.parametrize("method", WISHES)
def test_one_call_estimates_and_says_how_well(method: str) -> None:
    """The value is within a few standard errors; everything about it is there."""
    found = called(method, VALUES)
    assert abs(found.value - 5) <= found.bias_bound + 12 * found.standard_error
    low, high = found.interval
    assert low < found.value < high
    assert (found.n, found.mechanism, found.simulated) == (N, method, False)
    assert found.entry is None
    assert (found.coarse_failed is None) == (method != "symmetric_mean")
    assert method in str(found)


@pytest.mark.parametrize("method", WISHES)
def test_losses_are_exact_and_within_the_wish(method: str) -> None:
    """Fractions, never above, hardly below, and those of the manifest."""
    plan = planned(method)
    epsilon, delta = (Fraction(WISHES[method].get(part, 0)) for part in ("epsilon", "delta"))
    assert plan.exact_epsilon <= epsilon
    assert plan.exact_delta <= delta
    assert plan.exact_epsilon >= epsilon * Fraction(999, 1000)
    assert plan.exact_delta >= delta * Fraction(999, 1000)
    stated = plan.release(VALUES).manifest["guarantee"]
    exact = {"epsilon": plan.exact_epsilon, "delta": plan.exact_delta}
    for name, loss in exact.items():
        assert loss <= Fraction(stated[name]) <= loss * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize("method", WISHES)
@pytest.mark.parametrize("weights", ["equal", "counts"])
def test_plans_survive_a_file(method: str, weights: str, tmp_path: Path) -> None:
    """Saved and loaded, a plan is the same document and draws the same numbers."""
    counts = np.arange(N) % 5 + 1
    plan = planned(method, counts, weights=weights, source={"file": "x"})
    plan.save(tmp_path / "p.json")
    loaded = UnbiasedPlan.load(tmp_path / "p.json")
    assert loaded.to_document() == plan.to_document()
    users = np.repeat(np.arange(N), counts)
    values = np.repeat(VALUES, counts)
    one = plan.release(values, users, noise=shoal.Simulated(3))
    other = loaded.release(values, users, noise=shoal.Simulated(3))
    assert one.document == other.document


@pytest.mark.parametrize("method", WISHES)
def test_changed_plans_are_refused(method: str) -> None:
    """Every number of a plan is either checked or changes the claims."""
    document = planned(method).to_document()
    text = documents.canonical_bytes(document)
    for part in ("parameters", "claims", "request"):
        for name, value in document[part].items():
            if (
                value is None
                or isinstance(value, bool | list)
                or name in {"weights", "interval_by"}
            ):
                continue
            lie = json.loads(text)
            # A larger budget for the bias is kept all the same: a smaller one is a lie.
            if isinstance(value, str):
                # Less is asked for, or what the method does not take; a chance has other words.
                less = "1/7" if value == "0" else str(Fraction(value) / 3)
                lie[part][name] = "7" if part == "parameters" else less
            else:
                lie[part][name] = value / 4 if name == "bias" else value * 2 + 1
            with pytest.raises(DocumentError):
                UnbiasedPlan.from_document(lie)
    for damage in ({"schema": "x"}, {"parameters": None}, {"counts": 3}, {"extra": 1}):
        with pytest.raises(DocumentError):
            UnbiasedPlan.from_document({**document, **damage})


@pytest.mark.parametrize("method", WISHES)
def test_a_ledger_records_once_and_replays(method: str, tmp_path: Path) -> None:
    """The same request costs nothing and gives the same bytes; another name draws."""
    ledger = book(tmp_path)
    one = called(method, VALUES, ledger=ledger, values_name="height", name="first")
    spent = ledger.spent
    again = called(method, VALUES + 1, ledger=ledger, values_name="height", name="first")
    assert again.from_ledger
    assert again.document == one.document
    assert ledger.spent == spent == one.plan.loss
    other = called(method, VALUES, ledger=ledger, values_name="height", name="second")
    assert not other.from_ledger
    assert ledger.spent == spent + spent


def test_what_does_not_fit_is_not_drawn(tmp_path: Path) -> None:
    """Budget, values, counts and simulations are refused before a charge."""
    ledger = book(tmp_path, epsilon="1/2", delta=0)
    with pytest.raises(BudgetError):
        called("clipped_mean", VALUES, ledger=ledger, values_name="height")
    for bad in ([1.0, np.nan], [1.0, np.inf], [], ["a"], [[1.0]]):
        with pytest.raises(DataError):
            called("clipped_mean", bad, ledger=ledger, values_name="height", epsilon="1/4")
    with pytest.raises(DataError):
        planned("clipped_mean", epsilon="1/4").release(
            VALUES[1:], ledger=ledger, values_name="height"
        )
    with pytest.raises(InputError):
        called(
            "clipped_mean", VALUES, ledger=ledger, values_name="height", noise=shoal.Simulated(1)
        )
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("method", ["sampled_mean", "clipped_plus_residual", "symmetric_mean"])
def test_pure_unbiased_estimators_are_refused_with_the_reason(method: str) -> None:
    """There is none for Gaussians: the message says so and names what there is."""
    with pytest.raises(InputError, match="exponential family") as found:
        planned(method, delta=0)
    for name in ("sampled_mean", "clipped_plus_residual", "symmetric_mean", "clipped_mean"):
        assert name in str(found.value)


@pytest.mark.parametrize("method", ["sampled_mean", "clipped_plus_residual"])
def test_publishing_needs_consent(method: str) -> None:
    """Only publish_values=True will do, and the manifest says what was done."""
    for consent in (False, 1, "yes"):
        with pytest.raises(InputError, match="publishes values"):
            planned(method, publish_values=consent)
    assert planned(method).release(VALUES).manifest["guarantee"]["publishes_values"]


@loop_over(
    ("method", "changes"),
    [
        ("clipped_mean", {"epsilon": 0}),
        ("clipped_mean", {"epsilon": -1}),
        ("clipped_mean", {"epsilon": "1e-300"}),
        ("clipped_mean", {"bias": None}),
        ("clipped_mean", {"bias": 0}),
        ("clipped_mean", {"bias": "x"}),
        ("clipped_mean", {"delta": "1e-6"}),
        ("clipped_mean", {"interval": None}),
        ("clipped_mean", {"interval": (1, 0)}),
        ("clipped_mean", {"interval": (0, float("nan"))}),
        ("clipped_mean", {"interval": "ab"}),
        ("clipped_mean", {"reuse": True}),
        ("clipped_mean", {"weights": "x"}),
        ("clipped_mean", {"cap": 2}),
        ("clipped_mean", {"weights": "counts", "cap": 0}),
        ("clipped_mean", {"moment": (2, 1)}),
        ("clipped_mean", {"moment": ()}),
        ("clipped_mean", {"counts": 0}),
        ("clipped_mean", {"counts": [1, 0]}),
        ("clipped_mean", {"counts": [1.5]}),
        ("clipped_mean", {"counts": 2**40}),
        ("sampled_mean", {"epsilon": 1}),
        ("sampled_mean", {"delta": 2}),
        ("sampled_mean", {"delta": "1e-30"}),
        ("symmetric_mean", {"interval": (0, 1)}),
        ("symmetric_mean", {"farthest": -1}),
        ("symmetric_mean", {"reuse": "yes"}),
        ("symmetric_mean", {"reuse": []}),
        ("symmetric_mean", {"epsilon": "1e-40"}),
    ],
)
def test_unusable_wishes_are_refused(method: str, changes: dict[str, Any]) -> None:
    """Every bad argument raises an InputError before any value is there."""
    arguments = {"counts": N, "moment": MOMENT, **WISHES[method], **changes}
    with pytest.raises(InputError):
        unbiased.plan(method, **arguments)


def test_unknown_methods_and_options_are_refused() -> None:
    """With what there is."""
    unknown: tuple[Any, ...] = ("mean", None, [])
    for method in unknown:
        with pytest.raises(InputError):
            unbiased.plan(method, 3, moment=MOMENT)
    with pytest.raises(InputError):
        called("clipped_mean", VALUES, colour="red")
    for confidence in (0, 1, "x", True):
        with pytest.raises(InputError):
            called("clipped_mean", VALUES, confidence=confidence)


def test_simulations_are_marked_and_repeat() -> None:
    """The same seed, the same bytes; another, others; marked in the manifest."""
    one, again, other = (
        called("symmetric_mean", VALUES, noise=shoal.Simulated(seed)) for seed in (1, 1, 2)
    )
    assert one.document == again.document != other.document
    assert one.simulated
    assert one.manifest["simulation"]


def test_people_are_means_and_counts_without_names() -> None:
    """One value a user; the order and the names of users leave no trace in plan or manifest."""
    users = ["b", "a", "b", "c", "c", "c"]
    user_values = UserValues.of([1, 10, 3, 4, 5, 9], users)
    assert user_values.count.tolist() == [1, 2, 3]
    assert user_values.value.tolist() == [10, 2, 6]
    assert "value" not in repr(user_values)
    renamed = UserValues.of([1, 10, 3, 4, 5, 9], [7, 8, 7, 1, 1, 1])
    assert renamed.value.tolist() == user_values.value.tolist()


@pytest.mark.parametrize("method", WISHES)
def test_one_user_moves_nothing_public_but_the_value(method: str) -> None:
    """Manifests of neighbours differ in value and interval alone; no value is in them."""
    canary = 1234.56789
    changed = VALUES.copy()
    changed[3] = canary
    one, other = (
        called(method, values, noise=shoal.Simulated(5)).manifest for values in (VALUES, changed)
    )
    assert "1234.5" not in json.dumps(other)
    for manifest in (one, other):
        for number in ("exact", "value", "interval", "normal"):
            manifest["results"].pop(number, None)
    assert one == other
    assert one["results"].keys() == {"coarse_failed"}


def test_manifests_are_written_as_recorded(tmp_path: Path) -> None:
    """Byte for byte."""
    found = called("clipped_mean", VALUES)
    found.write_manifest(tmp_path / "m.json")
    assert (tmp_path / "m.json").read_bytes() == found.document
    assert found.manifest["schema"] == "shoal.manifest/4"


def test_two_kinds_of_values_are_two_questions(tmp_path: Path) -> None:
    """With a ledger values have a name, and another name is another question."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=10, delta="0.1", unit="each row")
    one = called("clipped_mean", VALUES, ledger=ledger, values_name="height")
    two = called("clipped_mean", VALUES + 1, ledger=ledger, values_name="weight")
    assert one.value != two.value
    assert len(ledger.entries()) == 2
    with pytest.raises(InputError, match="a ledger without values_name;"):
        called("clipped_mean", VALUES, ledger=ledger)


def test_what_is_drawn_is_what_is_written() -> None:
    """Of a plan whose request was replaced, the manifest's interval is drawn from."""
    made = unbiased.plan(
        "sampled_mean", 2000, moment=unbiased.Moment(4, 1), delta="0.01", interval=(1000, 1001),
        publish_values=True,
    )  # fmt: skip
    plan = dataclasses.replace(made, request=dataclasses.replace(made.request, interval=(0.0, 1.0)))
    values = np.random.default_rng(0).normal(0.5, 1, 2000)
    found = [plan.release(values, noise=shoal.Simulated(seed)) for seed in range(40)]
    assert found[0].manifest["plan"]["request"]["interval"] == [0.0, 1.0]
    assert np.mean([(each.value - 0.5) ** 2 for each in found]) < 4 * made.rmse_bound**2


def test_arrays_of_a_mean_that_are_seen_otherwise_change_no_draw() -> None:
    """As of cells, a plan is made anew for each release."""
    plan = unbiased.plan(
        "clipped_mean", 400, moment=unbiased.Moment(2, 10), epsilon=1, interval=(0, 10), bias=0.5,
    )  # fmt: skip
    values = np.full(400, 3.0)
    before = plan.release(values, noise=shoal.Simulated(1)).value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        setattr(plan.estimator.weights.number, "dtype", np.dtype(">i8"))  # noqa: B010
    assert plan.release(values, noise=shoal.Simulated(1)).value == before
