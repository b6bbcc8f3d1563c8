"""An earlier release as a guide: what it says beforehand, and what is done without it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import InputError
from shoal.planning import plan
from shoal.presence.plan import Plan, Release
from shoal.presence.request import Request
from shoal.publishing import publish
from tests.support.visits import BRANCHES, records, visits

ASKED: dict[str, Any] = {
    "keys": {"branch": BRANCHES},
    "users": 3000,
    "statistics": ["records", "mean"],
    "epsilon": 4,
}


SIMULATED = shoal.Simulated(1)


def _large_and_small() -> Any:
    """Of 16 cells the first has all of 3,000 people twice, the others one in 60 of them once."""
    who = np.arange(3000)
    parts = [(who, np.zeros(3000)), (who, np.zeros(3000))]
    parts += [(who[who % 60 == at], np.full(50, at)) for at in range(1, 16)]
    user, cell = (np.concatenate(each) for each in zip(*parts, strict=True))
    rows = pa.table({"who": user, "at": cell.astype(int), "value": np.full(len(user), 20.0)})
    return shoal.Records(rows, user="who", value="value", by="at", bounds=(0, 100))


def test_priorities_are_those_of_users_without_any_priority() -> None:
    """A priority makes small cells count for more, and is taken out again before the next one."""
    source = _large_and_small()
    made: Any = plan(source, keys={"at": range(16)}, users=3000, epsilon=8, statistics=["mean"])
    first = made.release(source, noise=shoal.Simulated(1))
    second = made.like(first).release(source, noise=shoal.Simulated(2))
    third = made.like(second)
    weights = np.array([2 / (2 + 15 / 60) * 3000] + [3000 / 60 / 3] * 15)
    for guided in (made.like(first), third):
        assert guided.rounds.keys() == {"answers"}
        assert guided.exact_loss.epsilon <= 8
        priority = np.array(guided.request.guide.priority)
        apart = priority[1:] / priority[0] / (weights[0] / weights[1:])
        assert 0.5 < np.median(apart) < 2


def test_what_is_not_given_is_as_it_was_there(tmp_path: Path) -> None:
    """Keys, statistics and users; other keys have priorities of their own; files say the same."""
    source = records(visits())
    first: Any = plan(source, **ASKED).release(source, noise=shoal.Simulated(1), name="may")
    first.write_manifest(tmp_path / "may.json")
    guided: Any = plan(source, epsilon=4, like=tmp_path / "may.json")
    assert guided.request.statistics == ("records", "mean")
    assert guided.request.keys == first.plan.request.keys
    assert guided.request.users == pytest.approx(3000, rel=0.1)
    assert "'may'" in str(guided)
    other: Any = plan(source, epsilon=4, like=first, keys={"branch": [BRANCHES[0], "new"]})
    assert len(other.request.guide.priority) == 2
    second = guided.release(source, noise=shoal.Simulated(2))
    wrong = [each.claim for each in shoal.verify(second.manifest).checks if not each.holds]
    assert wrong == ["noise of the operating system"]
    guided.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json").to_document() == guided.to_document()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"statistics": ["sum"]}, "says nothing of sum"),
        ({"records_per_user": 5}, "other bounds"),
        ({"like": "march"}, "march"),
    ],
)
def test_a_guide_that_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    """What it says nothing of cannot be taken from it."""
    source = records(visits())
    first = plan(source, **ASKED).release(source, noise=shoal.Simulated(1))
    with pytest.raises(shoal.ShoalError, match=message):
        plan(source, **{**ASKED, "like": first, **changed})


def test_a_simulation_guides_no_real_release(tmp_path: Path) -> None:
    """Its noise is known, so that a manifest with its numbers would say what is private."""
    source = records(visits())
    guided = plan(source, **ASKED, like=plan(source, **ASKED).release(source, noise=SIMULATED))
    guided.release(source, noise=SIMULATED)
    book = shoal.Ledger.create(tmp_path / "visits.ledger", epsilon=9, privacy_unit="card")
    with pytest.raises(InputError, match="simulated release"):
        guided.release(source, ledger=book, name="may")
    assert not book.entries()


def test_a_request_whose_guide_is_of_other_cells_is_refused() -> None:
    """A document that somebody changed."""
    source = records(visits())
    first = plan(source, **ASKED).release(source, noise=shoal.Simulated(1))
    guided: Any = plan(source, **ASKED, like=first)
    guide = guided.request.guide
    longer = guide.model_copy(update={"priority": (*guide.priority, 1.0)})
    asked = {name: getattr(guided.request, name) for name in Request.model_fields}
    with pytest.raises(InputError, match="guide is of other cells"):
        Request.of(**asked | {"guide": longer})


def test_the_last_release_guides_the_next_one_that_is_published(tmp_path: Path) -> None:
    """From the second month on, if the first plan says so."""
    pq.write_table(visits(), tmp_path / "may.parquet")
    source = records(tmp_path / "may.parquet")
    book = tmp_path / "visits.ledger"
    shoal.Ledger.create(book, epsilon=20, privacy_unit="card")
    made = plan(source, **ASKED, like="last")
    made.release(source, ledger=book, name="may").write_manifest(tmp_path / "may.json")
    last = tmp_path / "may.json"
    for month in ("june", "july"):
        done = publish(
            tmp_path / "may.parquet", last, ledger=book, name=month, output=tmp_path / month
        )
        found: Any = Release.load(done.files["manifest"])
        assert found.plan.request.guide.release == last.stem.split("-")[0]
        last = done.files["manifest"]
