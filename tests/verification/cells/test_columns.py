"""Cell rules in the second opinion: those that records take, and no others."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.data.cell_rules import parse as rules
from shoal.data.cell_rules.column import Column
from shoal.data.cell_rules.rule import CellRule
from shoal.errors import InputError
from shoal.verification.cells.columns import read_rule
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.audit

IN_TIME = ("hour_of_day", "weekday", "date", "month")
TAKEN = [
    *("dest", "(dest)", "dest(", "a b", "Å", "weekday"),
    *(f"{name}(at{zone})" for name in IN_TIME for zone in ("", ",Europe/Berlin", ",Etc/GMT+5")),
    *("timeslot(at,90s)", "timeslot(at,15min)", "timeslot(at,2d)", "timeslot(at,999999999d)"),
    *("timeslot(at,1h,America/Port-au-Prince)", "timeslot(at,900s,UTC)", "weekday(weekday(at))"),
    *("bins(far,1)", "bins(far,500)", "bins(far,500,-3)", f"bins(far,{2**52 - 1},{1 - 2**52})"),
    *("hexagon(lat,lon,0)", "hexagon(lat,lon,9)", "hexagon(lat,lon,15)"),
]
# Another name, number or unit, no zone, or one argument too few or too many.
REFUSED = [
    *("median(v)", "Weekday(v)", "BINS(v,1)", "f()", "speed (km/h)", "column(dest)"),
    *(f"{name}({given})" for name in IN_TIME for given in ("", "at,", ",UTC", "at,UTC,x", "at,,")),
    *(f"hour_of_day(at,{zone})" for zone in ("localtime", "right/Europe/Berlin", "..", "/etc")),
    *("date(at,posix/UTC)", "month(at,posixrules)", "weekday(at,Factory)", "date(at,tzdata.zi)"),
    *("timeslot(at)", "timeslot(at,1.5h)", "timeslot(at,0h)", "timeslot(at,01h)", "timeslot(at,h)"),
    *("timeslot(at,10min,UTC)", "timeslot(at,1w)", "timeslot(at,1h,UTC,x)"),
    *("bins(far)", "bins(far,0)", "bins(far,-1)", "bins(far,1.5)", "bins(far,1e3)", "bins(far,)"),
    *("bins(far,1,2,3)", f"bins(far,{2**52})", f"bins(far,1,{2**52})", f"bins(far,1,{-(2**52)})"),
    *("hexagon(lat,lon,16)", "hexagon(lat,7)", "hexagon(lat,lon,x)", "hexagon(lat,lon,1,2)"),
]
# Read as rules, and written otherwise in a manifest.
SPACED = ("weekday (at)", " weekday(at)", "weekday( at)", "bins(far,007)", "bins(far,5,0)")


def made(text: str) -> CellRule | Column | None:
    """What records make of a text."""
    try:
        return rules.rules_of(text)[0]
    except InputError:
        return None


@pytest.mark.parametrize("text", [*TAKEN, *REFUSED])
def test_the_second_opinion_knows_the_rules_of_records(text: str) -> None:
    """G-VERIFY: the same texts, names of columns and columns; a call of no rule is none."""
    rule, read = made(text), read_rule(text)
    assert (rule is None) == (read is None) == (text in REFUSED)
    if rule is not None and read is not None:
        assert (read.name, read.columns) == (rule.name, rule.columns)
        assert str(rule) == text


@pytest.mark.parametrize("text", SPACED)
def test_what_a_manifest_has_is_what_a_rule_writes(text: str) -> None:
    """G-VERIFY: one text a rule."""
    rule = made(text)
    assert rule is not None
    assert read_rule(str(rule)) is not None
    assert read_rule(text) is None


def test_no_rule_is_forgotten() -> None:
    """G-VERIFY: every class of rules that records know is among the texts that are compared."""
    assert {type(made(text)) for text in TAKEN} == {Column, *_concrete(CellRule)}


def _concrete(kind: type) -> set[type]:
    """Classes of rules that a text makes."""
    below: list[type] = kind.__subclasses__()
    return {kind} if not below else set().union(*map(_concrete, below))


def test_every_zone_is_read() -> None:
    """G-VERIFY: whatever the database calls it, and whether or not the verifier has one."""
    for zone in available_timezones():
        text = f"date(at,{zone})"
        assert (made(text) is None) == (read_rule(text) is None), zone


@pytest.mark.parametrize("name", ["bins(v,10)", "weekday(v)", "speed (km/h)", "f(v)"])
def test_a_column_that_is_called_as_a_rule_is_refused(name: str) -> None:
    """G-ROLES: nobody could tell whether it is the column or a rule over the value."""
    source = pa.table({"u": [1], name: [0], "v": [1.0]})
    with pytest.raises(InputError, match="cell rule"):
        shoal.Records(source, user="u", value="v", bounds=(0, 1), cell=Column(name))


@pytest.mark.parametrize(
    "rule",
    [shoal.bins("far,1", 5), shoal.hour_of_day("at,UTC"), shoal.date(" at"), shoal.month("at,b")],
    ids=str,
)
def test_a_rule_is_what_its_text_says(rule: CellRule) -> None:
    """G-VERIFY: a name with a comma or a blank in front makes another rule of it, or none."""
    source = pa.table({"u": [1], "at": [0], "v": [1.0]})
    with pytest.raises(InputError, match=r"cell rule|time zone"):
        shoal.Records(source, user="u", value="v", bounds=(0, 1), cell=rule)


@pytest.mark.parametrize("pair", [("bins(far,1)", "bins(far,2)"), ("date(at)", "date(at,UTC)")])
def test_rules_that_call_their_keys_alike_are_told_apart(pair: tuple[str, str]) -> None:
    """Whoever wants both is told how."""
    source = pa.table({"u": [1], "at": [0], "far": [0], "v": [1.0]})
    with pytest.raises(InputError, match="a copy of its column under another name"):
        shoal.Records(source, user="u", value="v", bounds=(0, 1), cell=list(pair))


@pytest.fixture(scope="module")
def source() -> pa.Table:
    """Records with times, numbers and places."""
    rng = np.random.default_rng(1)
    size = 900
    start = datetime(2020, 1, 1)  # noqa: DTZ001
    at = [start + timedelta(minutes=int(minute)) for minute in rng.integers(0, 90 * 1440, size)]
    columns: dict[str, Any] = {
        "u": rng.integers(0, 60, size),
        "at": pa.array(at, pa.timestamp("us")),
        "far": rng.normal(0, 20, size),
        "lat": rng.uniform(0, 20, size),
        "lon": rng.uniform(0, 20, size),
        "v": rng.random(size),
    }
    return pa.table(columns)


def released(source: pa.Table, cell: list[str], folder: Path) -> tuple[dict[str, Any], Path]:
    """A manifest, and its ledger."""
    made_of = shoal.Records(source, user="u", value="v", bounds=(0, 1), cell=cell)
    plan = shoal.plan(
        made_of.occupancy(), bounds=(0, 1), epsilon=50, uninformative="keep",
        source=made_of.describe(),
    )  # fmt: skip
    path = folder / "r.ledger"
    ledger = shoal.Ledger.create(path, epsilon=100, unit="u")
    return plan.release(made_of, ledger=ledger).manifest, path


HONEST = [
    *(f"{name}(at{zone})" for name, zone in product(IN_TIME, ("", ",America/St_Johns"))),
    *("timeslot(at,30d)", "timeslot(at,1d,Asia/Kathmandu)", "bins(far,25)", "bins(far,25,-3)"),
]


@pytest.mark.parametrize("text", HONEST)
@pytest.mark.parametrize("beside", [[], ["hexagon(lat,lon,0)"]], ids=["alone", "in hexagons"])
def test_honest_releases_by_every_rule_verify(
    source: pa.Table, beside: list[str], text: str, tmp_path: Path
) -> None:
    """G-VERIFY: nobody's budget is spent on what a second opinion calls a lie."""
    manifest, ledger = released(source, [*beside, text], tmp_path)
    assert shoal.verify(manifest, ledger=ledger).holds


LIES = {
    "weekday(at)": ["weekday(v)", "weekday(V)", "month(at)", "weekday(u,v,v)", "weekday(at,..)"],
    "bins(far,25)": ["bins(v,25)", "bins(far)", "bins(far,0)", "median(far)", "far_from(v)"],
}


@pytest.mark.parametrize("text", LIES)
def test_no_other_rule_verifies(source: pa.Table, text: str, tmp_path: Path) -> None:
    """G-ROLES: none over the value, by whatever case of letters, and no call of what is no rule."""
    manifest, _ = released(source, [text], tmp_path)
    kept = manifest["plan"]["occupancy"]["cells"]["columns"][0]["name"]
    for lie, name in product(LIES[text], (kept, "", "v_weekday", "V_weekday", "v_from")):
        changed = copy.deepcopy(manifest)
        changed["records"]["cell"] = [lie]
        changed["plan"]["occupancy"]["cells"]["columns"][0]["name"] = name or lie
        rekey(changed)
        assert "columns" in failed_claims(changed), (lie, name)
