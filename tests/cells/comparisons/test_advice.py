"""What would make more cells reliable: the forecast of other plans, on counts by fewer labels."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cells.comparisons.advice import Advice, Alternative, check_worth
from shoal.cells.estimates.typical_error import CELLS, often_reliable
from shoal.errors import InputError, ShoalWarning

HEXAGON = shoal.hexagon("lat", "lon", 6)


def made_up() -> pa.Table:
    """Users at eight places at many times."""
    rng = np.random.default_rng(1)
    at, time = rng.integers(0, 8, 2400), rng.integers(0, 12, 2400)
    table = {"who": rng.integers(0, 400, 2400), "v": rng.uniform(20, 40, 2400)}
    table |= {"lat": 48 + 0.1 * at, "lon": 11 + 0.3 * at}
    table["time"] = np.datetime64("2024-03-01T00", "s") + 14400 * time
    return pa.table(table)


TABLE = made_up()


def records(*by: object) -> shoal.Records:
    """The same by columns and rules."""
    return shoal.Records(TABLE, user="who", value="v", bounds=(0, 100), by=[*by], counts="public")


def reliable(plan: shoal.Plan) -> int:
    """Of how many cells the first lines of a plan speak."""
    return round(float(often_reliable(plan, CELLS).sum()))


def test_choices_are_plans_of_the_records_by_other_labels() -> None:
    """As of records that were counted anew. Advice takes seconds: it simulates many plans."""
    plan = shoal.plan(records(HEXAGON, shoal.timeslot("time", "1h")), epsilon=1)
    advice = plan.advise(lambda work, total: list(work)[:total])
    found = {each.change: each for each in advice.choices}
    days = shoal.timeslot("time", "1d")
    for change, by in (
        ("without time_1h", [HEXAGON]),
        ("hexagon_4 for hexagon_6, days for time_1h", [shoal.hexagon("lat", "lon", 4), days]),
        ("without hexagon_6, days for time_1h", [days]),
    ):
        other = shoal.plan(records(*by), epsilon=1)
        assert (found[change].cells, found[change].reliable) == (
            len(other.planned),
            reliable(other),
        )
    twice = shoal.plan(plan.counts, bounds=(0, 100), epsilon=2)
    assert found["epsilon=2"] == Alternative("epsilon=2", "2", len(twice.planned), reliable(twice))
    assert advice.now == Alternative("this plan", "1", len(plan.planned), reliable(plan))
    assert f"{advice.best[0].change}: about {advice.best[0].reliable} of" in str(advice)


def test_the_best_two_are_for_the_same_budget_and_for_more() -> None:
    """Only what makes more reliable than the plan; if nothing does, that is said."""
    now, same = Alternative("this plan", "1", 9, 2), Alternative("a", "1", 5, 4)
    more, less = Alternative("b", "2", 9, 8), Alternative("c", "1", 4, 2)
    assert Advice(now, (more, same, less)).best == (same, more)
    assert Advice(now, (less,)).best == ()
    assert "none of these makes more cells" in str(Advice(now, (less,)))


def test_this_plan_is_the_plan_itself() -> None:
    """Also where another of its request would leave out cells, or all of them."""
    asked = {"bounds": (0, 100), "method": "balanced", "uninformative": "keep"}
    plan = shoal.plan(records(HEXAGON).counts(), epsilon="0.01", **asked)
    assert plan.advise().now == Alternative("this plan", "0.01", len(plan.planned), 0)


def test_nothing_worth_having_is_drawn_unasked(tmp_path: Path) -> None:
    """A call stops with (slow) advice and charges nothing; what is recorded is free."""
    known = records(HEXAGON, shoal.timeslot("time", "1h"))
    ledger = shoal.Ledger.create(
        tmp_path / "a.ledger", epsilon=1, privacy_unit="who", counts="public"
    )
    asked: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 100), "epsilon": "0.1"}
    asked |= {"by": [HEXAGON, shoal.timeslot("time", "1h")], "ledger": ledger}
    with pytest.raises(InputError, match=r"none of 96 cells .*without time_1h \(about 8 of 8 cel"):
        shoal.summarize(TABLE, **asked, counts="public")
    assert ledger.spent.epsilon == 0
    found = shoal.summarize(TABLE, **asked, anyway=True, counts="public")
    assert shoal.summarize(TABLE, **asked, counts="public").document == found.document
    plan = shoal.plan(known, epsilon="0.1")
    with pytest.warns(ShoalWarning, match="none of 96 cells") as caught:
        plan.release(known, ledger=ledger, name="warned")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan.release(known, noise=shoal.Simulated(1))
        plan.release(known, ledger=ledger, name="warned")


def test_a_plan_without_a_word_of_reliable_cells_is_carried_out() -> None:
    """Few cells, and cells that are kept for the asking, are reliable whatever they err."""
    few = shoal.plan(records(HEXAGON), epsilon="0.01")
    kept = shoal.plan(
        records(HEXAGON, shoal.timeslot("time", "1h")), epsilon="0.1", uninformative="keep"
    )
    check_worth(few)
    check_worth(kept)
