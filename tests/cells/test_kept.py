"""A plan that breaks what it says it was asked for is neither loaded nor carried out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal import documents
from shoal.cells import document as plan_document
from shoal.cells.planner import _solve
from shoal.errors import DocumentError, InputError, ShoalError
from tests.support import flights

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.unit, pytest.mark.full]


def consistent(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the claims that its contents lead to."""
    return shoal.Plan(**plan_document.parts(document, None)).to_document()


def refused(document: dict[str, Any], folder: Path) -> None:
    """Loading fails in one line."""
    path = folder / "changed.json"
    path.write_bytes(documents.canonical_bytes(document))
    with pytest.raises(DocumentError, match="changed by hand"):
        shoal.Plan.load(path)


@pytest.mark.parametrize("rule", [{"min_users": 10**6}, {"min_records": 10**9}])
@pytest.mark.parametrize("method", ["balanced", "optimal", "levy"])
def test_public_rules_are_kept(rule: dict[str, int], method: str, tmp_path: Path) -> None:
    """A file that asks for more users or records than its cells have is refused."""
    document = flights.plan(method=method, uninformative="keep").to_document()
    document["request"].update(rule)
    refused(consistent(document), tmp_path)


@pytest.mark.parametrize("word", ["uninformative", "too few users", "too few records"])
@pytest.mark.parametrize("method", ["balanced", "uniform", "optimal"])
def test_a_good_cell_is_not_left_out(word: str, method: str, tmp_path: Path) -> None:
    """A plan without a cell that its request would release is refused."""
    whole = flights.plan(method=method, epsilon=4)
    assert whole.status == ("released",) * 4
    for cell in range(4):
        status = np.array(whole.status, dtype=object)
        status[cell] = word
        less = vars(_solve(whole.occupancy, whole.lattice, whole.request, status))
        made = shoal.Plan(
            **{
                name: less[name]
                for name in whole.__dataclass_fields__
                if name not in ("source", "built")
            }
        )
        if (
            word == "uninformative"
            and method == "optimal"
            and made.released.tolist() == _kept(whole)
        ):
            continue
        refused(made.to_document(), tmp_path)


def _kept(plan: shoal.Plan) -> list[int]:
    """The cells of an optimal plan without the first that an equalised plan gives up."""
    from shoal.cells.planner import order_of_leaving

    status = np.array(plan.status, dtype=object)
    first = order_of_leaving(plan.occupancy, plan.lattice, plan.request, status)[0]
    return [cell for cell in range(4) if cell != first]


@pytest.mark.parametrize("factor", [3, 1.01, 0.99, 1 / 30])
@pytest.mark.parametrize("wanted", [{"epsilon": None, "error": 60}, {"epsilon": 100}])
def test_noise_of_optimal_plans_is_derived_again(
    wanted: dict[str, Any], factor: float, tmp_path: Path
) -> None:
    """Noise that errs by more than was asked for, or costs more than it need, is not."""
    made = flights.plan(method="optimal", uninformative="keep", **wanted)
    made.save(tmp_path / "true.json")
    assert shoal.Plan.load(tmp_path / "true.json").epsilon == made.epsilon
    document = made.to_document()
    scale = document["numbers"]["relative_scale"]
    document["numbers"]["relative_scale"] = [each * factor for each in scale]
    refused(consistent(document), tmp_path)


@pytest.mark.parametrize("settings", [{}, {"targets": "balanced"}])
def test_targets_are_derived_again(settings: dict[str, str], tmp_path: Path) -> None:
    """Targets are those of the request's weights and setting."""
    made = flights.plan(method="optimal", uninformative="keep", settings=settings)
    made.save(tmp_path / "true.json")
    assert shoal.Plan.load(tmp_path / "true.json").epsilon == made.epsilon
    document = made.to_document()
    document["targets"] = [1.0, 2.0, 3.0, 4.0]
    refused(consistent(document), tmp_path)


@pytest.mark.parametrize("wanted", ["refuse", "drop"])
@pytest.mark.parametrize("method", ["balanced", "optimal"])
def test_uninformative_cells_are_not_released(wanted: str, method: str, tmp_path: Path) -> None:
    """A file that says so and releases uninformative cells is refused."""
    document = flights.plan(method=method, epsilon="0.05", uninformative="keep").to_document()
    document["request"]["uninformative"] = wanted
    refused(consistent(document), tmp_path)


@pytest.mark.parametrize("user", [40, 2**62])
def test_prices_of_users_that_are_not_there_are_refused(user: int, tmp_path: Path) -> None:
    """A dual variable of a user beyond the counts is damage, not a crash."""
    document = flights.plan().to_document()
    document["duals"] = {"user": documents.pack_integers(np.array([user])), "dual": [1.0]}
    refused(document, tmp_path)


def test_a_plan_without_its_proof_is_refused(tmp_path: Path) -> None:
    """A balanced plan has duals; no manifest without them would be verified."""
    document = flights.plan().to_document()
    document["duals"] = document["claims"]["gap"] = None
    refused(document, tmp_path)


def test_nothing_is_charged_for_a_plan_that_breaks_its_request(tmp_path: Path) -> None:
    """A release asks again, whatever way a plan was put together."""
    ledger, made = flights.ledger(tmp_path), flights.plan()
    less, half = (
        replace(made.request, min_users=10**6),
        replace(made.request, epsilon=Fraction(2, 3)),
    )
    for request in (less, half):
        with pytest.raises(ShoalError, match="changed by hand"):
            replace(made, request=request).release(flights.records(), ledger=ledger)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("method", ["balanced", "uniform", "equalised", "optimal"])
def test_no_error_costs_more_than_any_epsilon(method: str) -> None:
    """A loss beyond the largest epsilon would not verify, so no error is worth it."""
    counts = flights.plan().occupancy
    wanted: dict[str, Any] = {"bounds": flights.BOUNDS, "method": method, "tick_bits": 24}
    with pytest.raises(InputError, match="a request that its plan would not meet"):
        shoal.plan(counts, error=5e-5, uninformative="keep", **{"method": "balanced", **wanted})


def test_a_manifest_whose_loss_is_above_its_request_is_refused() -> None:
    """Nobody asked for so much."""
    plan = flights.plan(method="equalised", epsilon=4, uninformative="keep")
    manifest = plan.release(flights.records(), noise=shoal.Simulated(1)).manifest
    assert (
        shoal.Release(documents.canonical_bytes(manifest), None).plan.exact_epsilon
        == plan.exact_epsilon
    )
    manifest["plan"]["request"]["epsilon"] = "3"
    with pytest.raises(DocumentError, match="damaged"):
        assert shoal.Release(documents.canonical_bytes(manifest), None).plan
