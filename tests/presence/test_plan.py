"""Plans of private counts: made without the file, charged once, and read back as they were."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.planning import plan
from shoal.presence.plan import Plan, Release
from tests.support.visits import BRANCHES, records, visits

ASKED: dict[str, Any] = {
    "keys": {"branch": BRANCHES},
    "users": 3000,
    "statistics": ["users", "mean", "median", "share_above(60)", "histogram"],
    "epsilon": 2,
}


def test_a_plan_is_the_same_for_any_data_and_opens_no_file(tmp_path: Path) -> None:
    """P-PURE: the path need not exist; two tables have the same plan and the same question."""
    absent = records(tmp_path / "absent.parquet")
    made = plan(absent, **ASKED)
    other = plan(records(visits(5)), **ASKED)
    assert made.to_document() == other.to_document()
    assert 1 - 1e-6 < made.exact_loss.epsilon / 2 <= 1
    made.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_document() == made.to_document()
    assert made.exact_loss.epsilon == sum(
        Fraction(each.whole, 2**each.bits) for each in made.rounds.values()
    )


def test_a_release_is_charged_once_and_read_again_from_both_documents(tmp_path: Path) -> None:
    """The ledger delivers the same bytes without the records; manifest and record say the same."""
    pq.write_table(visits(), tmp_path / "visits.parquet")
    source = records(tmp_path / "visits.parquet")
    made = plan(source, **ASKED)
    book = shoal.Ledger.create(tmp_path / "visits.ledger", epsilon=3, privacy_unit="card")
    done = made.release(source, ledger=book, name="march")
    (tmp_path / "visits.parquet").unlink()
    again = made.release(source, ledger=book, name="march")
    assert (again.from_ledger, again.document) == (True, done.document)
    assert len(book.entries()) == 1
    with pytest.raises(shoal.errors.BudgetError):
        made.release(source, ledger=book, name="april")
    done.write_manifest(tmp_path / "m.json")
    done.write_record(tmp_path / "r.json")
    for name in ("m.json", "r.json"):
        found = Release.load(tmp_path / name)
        assert found.to_text() == done.to_text()
        assert found.table(all=True) == done.table(all=True)


def test_what_is_released_is_near_the_truth() -> None:
    """Of 3,000 cards in three branches at epsilon 2, with and without pieces of the range."""
    table = visits()
    frame = table.to_pandas()
    whole = frame.groupby("branch")
    truth = {
        "users": whole["card"].nunique(),
        "records": whole.size(),
        "sum": whole["minutes"].sum(),
        "mean": whole["minutes"].mean(),
        "median": whole["minutes"].median(),
        "quantile(0.9)": whole["minutes"].quantile(0.9),
        "share_above(60)": whole["minutes"].apply(lambda each: (each > 60).mean()),
        "share_below(30)": whole["minutes"].apply(lambda each: (each < 30).mean()),
        "share_between(30, 60)": whole["minutes"].apply(
            lambda each: ((each > 30) & (each <= 60)).mean()
        ),
    }
    asked = {**ASKED, "statistics": list(truth), "epsilon": 8}
    found = plan(records(table), **asked).release(records(table), noise=shoal.Simulated(3))
    assert set(found.table()["status"].to_pylist()) == {"reliable"}
    for name, true in truth.items():
        rows = found.table().to_pandas().query("statistic == @name").set_index("branch")
        assert (rows["low"] <= true).all(), name
        assert (true <= rows["high"]).all(), name
        off = (rows["value"] - true).abs() / max(true.max(), 1e-9)
        assert off.max() < 0.12, name
    free = found.quantiles([0.5])["value"].to_numpy()
    assert free == pytest.approx(
        found.table().to_pandas().query("statistic == 'median'")["value"].to_numpy()
    )
    bins = found.histogram().to_pandas()
    assert bins.groupby("branch")["share"].sum().to_numpy() == pytest.approx(np.ones(3))


def test_cells_with_too_few_noisy_users_are_marked() -> None:
    """By the noisy number that everybody sees, in all statistics."""
    asked = {**ASKED, "statistics": ["users", "mean"], "min_users": 2000}
    found = plan(records(visits()), **asked).release(records(visits()), noise=shoal.Simulated(3))
    table = found.to_pandas().set_index(["statistic", "branch"])
    users = table.loc["users"]
    below = table.loc["mean", "status"] == "below min_users"
    assert below.tolist() == (users["value"] < 2000).tolist()
    assert 0 < below.sum() < 3
    assert users["status"].tolist() == table.loc["mean", "status"].tolist()
    checks = shoal.verify(found.manifest).checks
    assert [each.claim for each in checks if not each.holds] == ["noise of the operating system"]
    with pytest.raises(shoal.errors.InputError, match="add users"):
        plan(records(visits()), **asked | {"statistics": ["mean"]})


def test_nothing_depends_on_rows_in_what_is_asked_or_shown() -> None:
    """P-EMPTY: tables of no, one or foreign users give results of the same form, and no message."""
    empty = visits().slice(0, 0)
    one = visits(1)
    foreign = visits().set_column(1, "branch", [["Elsewhere"] * len(visits())])
    lacking = visits().set_column(3, "minutes", [[None] * len(visits())])
    many = visits(1).take(np.zeros(100_000, dtype=np.int64))
    shapes = set()
    for table in (empty, one, foreign, lacking.cast(visits().schema), many):
        source = records(table)
        done = plan(source, **ASKED).release(source, noise=shoal.Simulated(1))
        shown = done.table()
        shapes.add((str(shown.schema), tuple(shown["statistic"].to_pylist()[:12])))
    assert len(shapes) == 1


def test_nothing_that_leaves_names_a_user_or_a_key_that_nobody_listed(tmp_path: Path) -> None:
    """P-CANARY: in texts, documents, tables and the ledger's file, also if the file is damaged."""
    table = visits().set_column(0, "card", [["canary-user"] * len(visits())])
    key = np.where(np.arange(len(table)) % 2, "canary-key", "North")
    table = table.set_column(1, "branch", [key.tolist()])
    place = tmp_path / "visits.parquet"
    pq.write_table(table, place)
    source = records(place)
    made = plan(source, **ASKED)
    book = shoal.Ledger.create(tmp_path / "visits.ledger", epsilon=4, privacy_unit="card")
    done = made.release(source, ledger=book)
    left = [repr(source), str(made), repr(done), str(done), str(done.table().to_pydict())]
    left += [str(made.to_document()), str(done.manifest), str(done.record)]
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
    with pytest.raises(shoal.errors.DataError) as raised:
        made.release(source, ledger=book, name="again")
    left.append(str(raised.value))
    assert not any("canary" in each for each in left)
    assert b"canary" not in Path(book.path).read_bytes()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"keys": None}, "keys of 'branch' are not given"),
        ({"users": None}, "number of users is unknown"),
        ({"users": 70}, "private caps and ranges are mostly noise"),
        ({"delta": "1e-6"}, "a delta finds cells that are not listed"),
        ({"statistics": ["std"]}, "no statistic"),
        ({"statistics": ["share_above(240)"]}, "not inside the bounds"),
        ({"keys": {"branch": ["North", "North"]}}, "the same text"),
    ],
)
def test_refusals_are_functions_of_the_request(wish: dict[str, Any], words: str) -> None:
    """Nothing is opened, and each says what to do."""
    with pytest.raises(shoal.errors.InputError, match=words):
        plan(records("absent.csv"), **{**ASKED, **wish})


def test_a_ledger_of_values_takes_no_private_counts(tmp_path: Path) -> None:
    """What it protects is less than who is there."""
    source = records(visits())
    made = plan(source, **ASKED)
    book = shoal.Ledger.create(
        tmp_path / "values.ledger", epsilon=9, privacy_unit="card", counts="public"
    )
    with pytest.raises(shoal.errors.InputError):
        made.release(source, ledger=book)
    assert book.entries() == []


def test_many_users_in_each_cell_have_fine_pieces_and_bins_that_are_surely_full() -> None:
    """Most minutes are below 60; a bin of two pieces has what is at the knot between them."""
    asked = {**ASKED, "statistics": ["histogram"]}
    source = records(visits())
    few = plan(source, **{**asked, "users": 500})
    assert few.request.pieces == 8
    many = plan(source, **asked)
    assert many.request.pieces == 16
    found = many.release(source, noise=shoal.Simulated(1))
    lows = [row.low.max() for row in found.rows(0.95)]
    assert len(lows) == 8
    assert max(lows) > 0.1
