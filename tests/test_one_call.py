"""One call does what its steps do, and says the plan before."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import trials
from shoal.errors import InputError, ShoalError

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
