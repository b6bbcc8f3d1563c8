"""One call does what its steps do, and says the plan before."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials
from shoal.errors import DataError, InputError, ShoalError

RNG = np.random.default_rng(4)
TRIPS = pa.table({
    "bus": np.repeat(np.arange(200), 6), "line": RNG.integers(0, 4, 1200),
    "speed": RNG.normal(30, 8, 1200),
})  # fmt: skip
ROLES = {"user": "bus", "value": "speed", "bounds": (0, 65), "by": "line"}
VISITS = pa.table({
    "arm": np.arange(600) % 2, "city": np.arange(600) // 200, "sex": np.arange(600) // 2 % 2,
    "bought": RNG.integers(0, 2, 600),
})  # fmt: skip


def test_means_are_those_of_a_plan_and_its_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same bytes, also of a total; bad arguments and no ledger charge and draw nothing."""
    for by in ("line", None):
        roles = ROLES | {"by": by}
        found = shoal.summarize(
            TRIPS, **roles, epsilon=2, noise=shoal.Simulated(1), counts="public"
        )
        records = shoal.Records(TRIPS, **roles, counts="public")
        plan = shoal.plan(records, epsilon=2)
        assert found.document == plan.release(records, noise=shoal.Simulated(1)).document
        assert capsys.readouterr().out == f"{plan}\n"
    ledger = shoal.Ledger.create(
        tmp_path / "a.ledger", epsilon=3, privacy_unit="bus", counts="public"
    )
    with pytest.raises(InputError, match="has no ledger"):
        shoal.summarize(TRIPS, **ROLES, epsilon=2, counts="public")
    with pytest.raises(ShoalError):
        shoal.summarize(TRIPS, **ROLES, epsilon=2, ledger=ledger, objective="best", counts="public")
    for wrong, near in (("min_user", "min_users"), ("epsilons", "epsilon")):
        with pytest.raises(InputError, match=rf"summarize has no option.*did you mean '{near}'"):
            shoal.summarize(TRIPS, **ROLES, epsilon=2, ledger=ledger, **{wrong: 5}, counts="public")
    assert ledger.spent.epsilon == 0
    first, again = (
        shoal.summarize(TRIPS, **ROLES, epsilon=2, ledger=ledger, name="x", counts="public")
        for _ in range(2)
    )
    assert first.document == again.document
    assert ledger.spent.epsilon == 2


def test_effects_are_those_of_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In all and in subgroups, of a table in memory; with names of units the ledger is theirs."""
    found = shoal.effects(
        VISITS, outcome="bought", arm="arm", cluster="city", by=["sex"], domain="binary", epsilon=2,
        noise=shoal.Simulated(3),
    )  # fmt: skip
    study = trials.Experiment(VISITS["arm"], VISITS["city"], {"sex": VISITS["sex"]})
    plan = study.ask().effect().effect(by="sex").plan(trials.Domain.binary(), epsilon=2)
    own = plan.release(VISITS["bought"], study, noise=shoal.Simulated(3))
    assert str(found.estimate()) == str(own.estimate())
    assert capsys.readouterr().out == f"{plan}\n"
    named = VISITS.append_column("who", pa.array(np.arange(600)))
    ledger = shoal.Ledger.create(
        tmp_path / "b.ledger", epsilon=3, privacy_unit="who", counts="public"
    )
    asked = {"outcome": "bought", "arm": "arm", "user": "who", "domain": trials.Domain.binary()}
    shoal.effects(named, **asked, epsilon=1, ledger=ledger)
    with pytest.raises(InputError, match="no ledger"):
        shoal.effects(named, **asked, epsilon=1)
    assert ledger.entries()[0].charge.epsilon == pytest.approx(1)


LOG = pa.table(
    {
        "who": np.arange(3000) // 3,
        "arm": np.arange(3000) // 3 % 2,
        "spent": np.where(np.arange(3000) % 7, np.arange(3000) % 4 * 1.0, np.nan),
    }
)


def ledger_of_who(folder: Path) -> shoal.Ledger:
    """A ledger of the users of the log."""
    return shoal.Ledger.create(folder / "b.ledger", epsilon=3, privacy_unit="who", counts="public")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"per_user": "sum", "domain": "counts:0:9"}, "spent (sum per user) within 0 to 9"),
        ({"per_user": "mean", "domain": "bins:0:3", "missing_value": 0}, "missing as 0 within"),
        (
            {"per_user": "mean", "domain": "bins:0:3", "missing": "worst"},
            "control: 0; whatever missing\n  outcomes are: a value has them in the middle",
        ),
        (
            {"outcome": ("spent", "rows"), "domain": ("counts:0:9", "counts:1:3"), "lift": True},
            "spent / rows (sums per user) within 0 to 9 and 1 to 3",
        ),
    ],
)
def test_effects_of_a_log_say_what_they_are_on(
    asked: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each outcome of a user is charged once, to its own question; all rows are protected."""
    book = shoal.Ledger.create(
        tmp_path / "b.ledger", epsilon=3, privacy_unit="who", counts="public"
    )
    given = {"outcome": "spent", "arm": "arm", "user": "who", "epsilon": 1, "ledger": book} | asked
    found = shoal.effects(LOG, **given)
    assert told in str(found.estimate())
    assert (
        "all rows of one who, and how many; public: who takes part, arm" in capsys.readouterr().out
    )
    assert shoal.effects(LOG, **given).from_ledger
    assert [each.charge.epsilon for each in book.entries()] == [pytest.approx(1)]
    verdict = shoal.verify(found.manifest, ledger=book)
    assert verdict.holds, verdict


def test_other_outcomes_of_the_same_rows_are_other_questions(tmp_path: Path) -> None:
    """The sum and the mean of a user in one domain cost twice."""
    book = ledger_of_who(tmp_path)
    given = {"outcome": "spent", "arm": "arm", "user": "who", "epsilon": 1, "ledger": book}
    given["domain"] = "bins:0:3"
    shoal.effects(LOG, **given, per_user="sum", name="a")
    shoal.effects(LOG, **given, per_user="mean", missing="worst", name="a")
    # The same request but for what is missing.
    shoal.effects(LOG, **given, per_user="mean", missing_value=1, name="a")
    assert len(book.entries()) == 3
    with pytest.raises(DataError, match="'who' has several rows; say what the outcome"):
        shoal.effects(LOG, **given)
    rows = {**given, "user": None}
    with pytest.raises(InputError, match="each row is a unit here, and the ledger counts 'who'"):
        shoal.effects(LOG, **rows)
    study, outcomes = trials.read(LOG, outcome="spent", arm="arm", domain="bins:0:3",
                                  missing_value=0)  # fmt: skip
    plan = study.ask().effect().plan("bins:0:3", 1)
    with pytest.raises(InputError, match="each row is a unit here"):
        plan.release(outcomes, study, ledger=book, privacy_unit="who")
    study, outcomes = trials.read(LOG, outcome="spent", arm="arm", domain="bins:0:3", user="who",
                                  per_user="sum")  # fmt: skip
    with pytest.raises(DataError, match=r"the outcomes are .* and the plan is for"):
        plan.with_source(study.source.model_copy(update={"per_user": "mean"})).release(
            outcomes, study, ledger=book
        )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"domain": "counts:1:5", "missing_value": 0}, "missing_value is 0"),
        ({"domain": "bins:0:3", "missing_value": 1, "missing": "public"}, "something else does"),
        ({"domain": "bins:0:3", "missing_value": 1, "missing": "worst"}, "something else does"),
        (
            {"domain": ("counts:0:9", "counts:1:3"), "outcome": ("spent", "rows"),
             "per_user": None, "missing_value": 1},
            "something else does",
        ),
    ],
)  # fmt: skip
def test_what_a_missing_outcome_counts_as_is_said_once(asked: dict[str, Any], told: str) -> None:
    """And lies within the domain, so that its name is true."""
    given = {"outcome": "spent", "arm": "arm", "user": "who", "per_user": "mean", "epsilon": 1}
    with pytest.raises(InputError, match=told):
        shoal.effects(LOG, **given | asked, noise=shoal.Simulated(1))


def test_rows_without_a_user_are_refused_with_bounds() -> None:
    """They are left out only where everybody may know which."""
    who = pa.array([None, *LOG["who"].to_pylist()[1:]])
    log = LOG.set_column(0, "who", who)
    given = {"outcome": "spent", "arm": "arm", "user": "who", "per_user": "mean"}
    with pytest.raises(DataError, match="some rows have no 'who'"):
        trials.read(log, **given, domain="bins:0:3", missing="worst")


def test_users_are_charged_by_the_word_by_which_they_were_read(tmp_path: Path) -> None:
    """Sessions of a person are no persons, whatever word the release gives."""
    log = LOG.append_column("person", pa.array(np.arange(3000) // 30))
    given = {"outcome": "spent", "arm": "arm", "domain": "bins:0:3"}
    book = shoal.Ledger.create(
        tmp_path / "p.ledger", epsilon=3, privacy_unit="person", counts="public"
    )
    for more in ({"user": "who", "per_user": "sum"}, {"user": "each row", "missing_value": 0}):
        study, outcomes = trials.read(log, **given, **more)
        plan = study.ask().effect().plan("bins:0:3", 1)
        with pytest.raises(InputError, match=r"the users were read as .* would be for 'person'"):
            plan.release(outcomes, study, ledger=book, privacy_unit="person")
        with pytest.raises(DataError, match="values of 'person', the privacy unit, belong to"):
            trials.read(log, **given, **more, privacy_unit="person")
    assert not book.entries()
