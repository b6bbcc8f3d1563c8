"""Why cells are left out, in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shoal
from shoal.cells.shown.left_out import budgets_needed, reasons
from shoal.errors import InputError
from tests.support import made_counts


def apart() -> shoal.Counts:
    """Nobody is in two cells: 40, 10 and 4 users of one record each."""
    return shoal.Counts.from_counts(range(54), [0] * 40 + [1] * 10 + [2] * 4, [1] * 54)


def test_counts_below_a_rule_are_told() -> None:
    """With what was asked for."""
    plan = shoal.plan(
        apart(), bounds=(0, 10), epsilon=8, method="balanced", min_users=5, min_records=20
    )
    assert reasons(plan) == [
        "", "fewer than 20", "fewer than 5"
    ]  # fmt: skip
    text = str(plan).splitlines()
    assert "1 cell with fewer than 5 users is left out" in text
    assert "1 cell with fewer than 20 records is left out" in text


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("method", ["balanced", "equalised", "uniform"])
def test_a_cell_by_itself_needs_what_is_said(method: str, delta: str) -> None:
    """Where nobody is in two cells the budget is exact: a bit less leaves the cell out."""
    wanted: dict[str, Any] = {"method": method, "delta": delta, "max_error": "5%"}
    plan = shoal.plan(apart(), bounds=(0, 10), epsilon=1, **wanted)
    assert plan.status == ("planned", "error too large", "error too large")
    needed = budgets_needed(plan, np.array([1, 2]))
    if not plan.gaussian:
        assert needed == pytest.approx([2, 5], rel=0.01)
        assert reasons(plan)[1:] == [
            "needs about 2 times the budget", "needs about 5 times the budget"
        ]  # fmt: skip
        for cell, factor in zip((1, 2), needed.tolist(), strict=True):
            less, more = (
                shoal.plan(apart(), bounds=(0, 10), epsilon=factor * bit, **wanted)
                for bit in (0.98, 1.02)
            )
            assert (less.status[cell], more.status[cell]) == ("error too large", "planned")


def test_users_in_several_cells_pay_for_all() -> None:
    """Two cells of the same users: each needs the budget of both, and of what is released."""
    user = [*range(40), *range(40), *range(40)]
    counts = shoal.Counts.from_counts(user, np.repeat([0, 1, 2], 40), [1] * 120)
    plan = shoal.plan(counts, bounds=(0, 10), epsilon=0.5, method="equalised", max_error="5.01%")
    assert len(plan.planned) == 1
    others = np.flatnonzero(np.array(plan.status, dtype=object) != "planned")
    assert sorted(budgets_needed(plan, others)) == pytest.approx([2, 3], rel=0.01)


@pytest.mark.parametrize("wanted", [
    {"method": "balanced"}, {"method": "optimal"}, {}, {"method": "adaptive"},
    {"method": "equalised", "delta": "1e-6"},
    {"statistics": ["mean", "variance"], "method": "equalised", "max_error": "45%"},
])  # fmt: skip
def test_every_left_out_cell_has_its_words(wanted: dict[str, Any]) -> None:
    """Whatever was asked for, and in the plan's table, too."""
    plan = shoal.plan(
        made_counts.sparse(4, users=60, cells=12),
        **{"bounds": (0, 9), "epsilon": 3, "max_error": "5%", **wanted},
    )
    told = reasons(plan)
    assert 0 < len(plan.planned) < 12
    for status, words in zip(plan.status, told, strict=True):
        assert (status == "planned") == (words == "")
        assert status == "planned" or words.startswith("needs ")
    assert plan.table()["reason"].to_pylist()[:12] == [each or None for each in told]


def test_uninformative_cells_are_told_what_they_need() -> None:
    """A word alone helps nobody."""
    plan = shoal.plan(apart(), bounds=(0, 10), epsilon=0.3, method="balanced")
    assert plan.status[2] == "uninformative"
    assert reasons(plan)[2] == "needs about 1.7 times the budget"


def lonely(**wanted: Any) -> tuple[shoal.Plan, shoal.Release]:
    """A plan of 40 users at A, two at B and one at C, and a simulated release of it."""
    where = ["A"] * 40 + ["B"] * 2 + ["C"]
    table = pa.table({"who": [*range(43)], "at": where, "value": [5.0] * 43})
    records = shoal.Records(
        table, user="who", value="value", bounds=(0, 10), by="at", counts="public"
    )
    plan = shoal.plan(records, epsilon=8, **wanted)
    return plan, plan.release(records, noise=shoal.Simulated(1))


@pytest.mark.parametrize(("wanted", "line"), [
    ({}, "2 cells with fewer than 3 users are left out"),
    ({"min_users": 2}, "1 cell with fewer than 2 users is left out"),
    ({"min_users": 1, "min_records": 3}, "2 cells with fewer than 3 records are left out"),
])  # fmt: skip
def test_readers_see_nothing_of_small_cells_but_how_many(
    tmp_path: Path, wanted: dict[str, Any], line: str
) -> None:
    """Tables, texts, files and pages have no row of them; a custodian sees keys and reasons."""
    plan, release = lonely(**wanted)
    hidden = [*"ABC"][len(plan.planned) :]
    assert {*plan.table()["at"].to_pylist(), *release.table()["at"].to_pylist()} & {
        *hidden
    } == set()
    for text in (str(plan), str(release)):
        assert line in text.splitlines()
    release.write(tmp_path / "table.csv")
    release.write_manifest(tmp_path / "last.json")
    shoal.report(tmp_path / "last.json", tmp_path / "last.html")
    assert not any(f'"{each}"' in (tmp_path / "table.csv").read_text() for each in hidden)
    page = (tmp_path / "last.html").read_text()
    assert f"<p>{line}</p>" in page
    assert not any(f"<td>{each}</td>" in page for each in hidden)
    rows = release.table(left_out=True).filter(pc.field("at").isin(hidden)).to_pylist()
    assert [row["at"] for row in rows] == hidden
    assert all(row["reason"].startswith("fewer than ") for row in rows)
    unknown = {*rows[0]} - {"at", "statistic", "status", "reason"}
    assert all(row[each] is None for row in rows for each in unknown)
    assert len(plan.table(left_out=True)) == 3


def test_cells_of_single_users_are_planned_if_asked_for() -> None:
    """With `min_users=1`; where all cells are so small the error says so."""
    assert lonely(min_users=1)[1].table()["at"].to_pylist() == ["A", "B", "C"]
    counts = shoal.Counts.from_counts([1, 2, 1], ["A", "A", "B"], [9, 9, 9])
    with pytest.raises(InputError, match=r"every cell has fewer than 3 users.*min_users=1"):
        shoal.plan(counts, bounds=(0, 10), epsilon=8)


def test_a_hint_names_only_what_can_be_lowered() -> None:
    """Of a plan without a cell whose public rules are at their least already."""
    counts = shoal.Counts.from_counts([1], ["A"], [1])
    asked: dict[str, Any] = {"bounds": (0, 10), "epsilon": 1, "objective": "worst_case"}
    with pytest.raises(InputError, match="the plan would have no cell") as error:
        shoal.plan(counts, min_users=1, **asked)
    assert "lower" not in str(error.value)
    with pytest.raises(InputError, match=r"fewer than 3 users or 2 records"):
        shoal.plan(counts, min_records=2, **asked)
