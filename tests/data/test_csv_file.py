"""CSV files: no row decides how another is read."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import trials
from shoal.cells.draw_of_plan import drawing_of
from shoal.data.whole_columns import read_columns
from shoal.errors import DataError, ShoalError
from tests.support.tape import Tape, lost

pytestmark = pytest.mark.audit

# More rows than engines guess types from.
MANY = 21_000
HEAD = "who,place,at,lat,lon,v\n"
PLACE = "x,2013-01-01 05:00:00Z,40.5,-73.5"
CELLS = ["place", "hour_of_day(at)", "timeslot(at,6h)", "hexagon(lat,lon,3)"]
LATE = [f"q{at},{PLACE},0.5\n" for at in range(40)]


def written(path: Path, lines: list[str], head: str = HEAD) -> Path:
    """A file of these lines."""
    path.write_text(head + "".join(lines), encoding="utf-8")
    return path


def sample(value: str) -> list[str]:
    """One user's record, then as many whole numbers as engines look at."""
    first = [f"ann,{PLACE},{value}\n"]
    return first + [f"p{at % 50},{PLACE},1\n" for at in range(MANY)]


def sums(path: Path, **wanted: Any) -> list[int]:
    """Sum of ticks of each cell."""
    given = {"user": "who", "value": "v", "bounds": (0, 1), "cell": "place", **wanted}
    return shoal.Records(path, **given).aggregate().cell_sums()


@pytest.mark.parametrize("missing", ["refuse", "public"])
@pytest.mark.parametrize("cell", [*CELLS, CELLS], ids=str)
def test_one_value_moves_its_own_record_alone(tmp_path: Path, missing: str, cell: object) -> None:
    """A fraction among the first rows or none, in any order of rows: every rule."""
    exact = 2**20 * (MANY + 20)
    for value, rows in itertools.product(("1", "0.5"), (1, -1)):
        path = written(tmp_path / "r.csv", (sample(value) + LATE)[::rows])
        own = 2**20 // (2 if value == "0.5" else 1)
        assert sums(path, missing=missing, cell=cell) == [exact + own], (value, rows)


def test_neighbours_lose_what_is_accounted(tmp_path: Path) -> None:
    """One user's whole number or fraction moves no other user's values."""
    tapes = []
    for value in ("1", "0.5"):
        others = [f"u{at},{PLACE},{1 if at < MANY else 0.5}\n" for at in range(MANY + 2000)]
        path = written(tmp_path / "n.csv", [f"ann,{PLACE},{value}\n", *others])
        wanted: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 1), "cell": "place"}
        records = shoal.Records(path, missing="public", **wanted)
        plan = shoal.plan(records.occupancy(), method="balanced", bounds=(0, 1), epsilon=1)
        tapes.append(Tape())
        drawing_of(plan).draw(records.aggregate(), tapes[-1])
    assert lost(*tapes)[0] <= float(plan.exact_epsilon)


@pytest.mark.parametrize("value", ["1", "0.5", "true", "", "1e3"])
def test_whole_columns_are_read_cell_by_cell(tmp_path: Path, value: str) -> None:
    """Outcomes of trials and unbounded values: numbers for numbers, truths as 1, 0."""
    for rows in (1, -1):
        lines = [f"ann,{value}\n"] + ["p,1\n"] * MANY + ["q,0.5\n", "q,FALSE\n", "q, 7 \n"]
        path = written(tmp_path / "c.csv", lines[::rows], "who,v\n")
        table = read_columns(path, private={"outcome": "v"}, public={"unit": "who"})
        assert table.schema.field("v").type == pa.float64()
        numbers = table.column("v").to_pylist()[::rows]
        assert numbers[0] == {"1": 1.0, "0.5": 0.5, "true": 1.0, "": None, "1e3": 1e3}[value]
        assert numbers[1 : MANY + 1] == [1.0] * MANY
        assert numbers[-3:] == [0.5, 0.0, 7.0]


@pytest.mark.parametrize("late", ["1.0", "often", "2013-01-01", ""])
def test_labels_stay_texts(tmp_path: Path, late: str) -> None:
    """The space says that outcomes are texts, not what others answered."""
    path = written(tmp_path / "l.csv", ["1\n"] * MANY + [f'"{late}"\n'], "v\n")
    column = read_columns(path, private={"outcome": "v"}, public={}, texts=True).column("v")
    assert column.to_pylist() == ["1"] * MANY + [late or None]
    space = trials.Space.ordinal(["1", "1.0", "often", "2013-01-01"])
    assert space.numbers(column)[:MANY].tolist() == [0.0] * MANY


@pytest.mark.parametrize("missing", ["refuse", "public"])
@pytest.mark.parametrize("at", [0, -1])
def test_texts_are_no_numbers_wherever_they_are(tmp_path: Path, missing: str, at: int) -> None:
    """Refused in the first row and in the last, with and without other gaps."""
    for bad in ("fast 43156789", "NA", "1,5", "0x10", "1_0", "1e1_0", "+-5", "nan(1)", "+-inf"):
        lines = sample("1") + [f",{PLACE},0.5\n"] * (missing == "public")
        lines.insert(at % (len(lines) + 1), f'bob,{PLACE},"{bad}"\n')
        path = written(tmp_path / "t.csv", lines)
        with pytest.raises(DataError, match="'v' holds string; allowed: a number") as caught:
            sums(path, missing=missing)
        assert "43156789" not in str(caught.value)
        with pytest.raises(DataError, match="'v' holds string"):
            read_columns(path, private={"outcome": "v"}, public={})


@pytest.mark.parametrize("rows", [1, -1])
def test_keys_are_those_of_the_whole_column(tmp_path: Path, rows: int) -> None:
    """Users 0.4 to 49.4 stay apart from 0 to 49, before and after the whole numbers."""
    whole = [f"{at},x,0.5\n" for at in range(MANY)]
    lines = (whole + [f"{at}.4,x,0.5\n" for at in range(50)])[::rows]
    path = written(tmp_path / "k.csv", lines, "who,place,v\n")
    found = shoal.Records(path, user="who", value="v", bounds=(0, 1), cell="place").occupancy()
    assert found.n_users == MANY + 50
    numbers = read_columns(written(path, whole, "who,place,v\n"), private={}, public={"u": "who"})
    assert numbers.column("who").to_pylist() == list(range(MANY))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0", "-7", "123456789012345678"], pa.int64()),
        (["0", "007"], pa.string()),
        (["0", "-0"], pa.string()),
        (["1", "1.0"], pa.string()),
        (["1", "1234567890123456789"], pa.string()),
        (["1", " 2"], pa.string()),
        (["true", "False"], pa.bool_()),
        (["true", "1"], pa.string()),
        (["2013-01-01", "1969-12-31"], pa.date32()),
        (["2013-01-01", "2013-02-30"], pa.string()),
        (["2013-01-01", "2013-1-2"], pa.string()),
    ],
)
def test_a_key_has_the_type_that_every_cell_has(
    tmp_path: Path, cells: list[str], kind: pa.DataType
) -> None:
    """Whole numbers, truths and dates in their one form, else texts, in any order."""
    for order in (cells, cells[::-1]):
        path = written(tmp_path / "k.csv", [f"{each},1\n" for each in [*order, ""]], "k,v\n")
        column = read_columns(path, private={"value": "v"}, public={"user": "k"}).column("k")
        assert column.type == kind
        if kind == pa.string():
            assert column.to_pylist() == [*order, None]


def test_times_are_read_one_by_one(tmp_path: Path) -> None:
    """With and without a zone, dates, seconds or not: hours in UTC, or refused."""
    times = {
        "2013-01-01": 0,
        "2013-01-01 05:00": 5,
        "2013-01-01T05:00:00Z": 5,
        "2013-01-01 05:00:00 UTC": 5,
        "2013-01-01 05:00:00.123456789+02:00": 3,
        "2013-01-01T05:00:00-0530": 10,
        "1969-12-31 23:59:59.999999+00": 23,
    }
    for order in (list(times), list(times)[::-1]):
        path = written(tmp_path / "t.csv", [f"{at},{at},1\n" for at in order], "who,at,v\n")
        wanted: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 1)}
        wanted["cell"] = "hour_of_day(at)"
        found = shoal.Records(path, **wanted).occupancy()
        assert found.cells.column(0).to_pylist() == sorted(set(times.values()))
        for bad in (
            *("01/02/2013", "5:00", "2013-02-30", "2013-01-01 05:00:00 Europe/Paris"),
            *(f"2013-01-01 05:00:00{zone}" for zone in ("+99:99", "+24", "-23:60", "+0199", "+99")),
        ):
            path = written(path, [f"{at},{at},1\n" for at in (*order, bad)], "who,at,v\n")
            with pytest.raises(DataError, match="'at' holds string; allowed: a date or time"):
                shoal.Records(path, **wanted).occupancy()


def test_a_date_is_a_key_and_a_slot(tmp_path: Path) -> None:
    """One column in two rules, and no coordinates among texts."""
    path = written(tmp_path / "d.csv", ["a,2013-01-01,1\n", "b,2013-01-02,2\n"], "who,day,v\n")
    wanted: dict[str, Any] = {"user": "who", "value": "v", "bounds": (0, 2)}
    found = shoal.Records(path, cell=["day", "timeslot(day,1d)"], **wanted).occupancy()
    assert found.n_cells == 2
    with pytest.raises(DataError, match="'day' holds string"):
        shoal.Records(path, cell="hexagon(day,day,3)", **wanted).occupancy()


def test_without_a_line_of_names_no_record_is_told(tmp_path: Path) -> None:
    """The first record is no list of columns; nor is a header of another kind."""
    for text in ("ann,x,431.5\nbob,x,77\n", '"431.5";b;c\n', "431.5\n"):
        (tmp_path / "h.csv").write_text(text)
        with pytest.raises(ShoalError, match="first line names") as caught:
            sums(tmp_path / "h.csv")
        assert "431" not in str(caught.value)
    for raw in (b"", b'"431.5', b"431.5\xff\n", b"431.5," * 2**18, "431.5\n".encode("utf-16")):
        (tmp_path / "h.csv").write_bytes(raw)
        with pytest.raises(DataError, match="first line names") as caught:
            sums(tmp_path / "h.csv")
        assert "431" not in str(caught.value)


def test_forms_of_one_file_are_read_alike(tmp_path: Path) -> None:
    """A mark at the start, ends of lines, quotes; names that are no plain words."""
    plain = 'who,place,"an, ""odd"" name",V\na,x,0.5,9\nb,x,,9\n'
    expected = None
    for raw in (plain, "\ufeff" + plain, plain.replace("\n", "\r\n"), plain.replace("\n", "\r")):
        (tmp_path / "f.csv").write_bytes(raw.encode())
        found = sums(tmp_path / "f.csv", value='an, "odd" name', missing="public")
        expected = found if expected is None else expected
        assert found == expected == [2**19]
    (tmp_path / "f.csv").write_text("who,place,v,V\na,x,0.5,1\n")
    with pytest.raises(DataError, match="but for case"):
        sums(tmp_path / "f.csv")


def test_a_file_holds_what_a_table_holds(tmp_path: Path) -> None:
    """Numbers as Arrow writes them come back to the last bit."""
    rng = np.random.default_rng(4)
    table = pa.table({
        "who": rng.integers(-5, 5, 5000).tolist(), "place": ["x"] * 5000,
        "v": (rng.normal(0, 1, 5000) * 10.0 ** rng.integers(-300, 300, 5000)).tolist(),
    })  # fmt: skip
    pyarrow.csv.write_csv(table, tmp_path / "a.csv")
    pq.write_table(table, tmp_path / "a.parquet")
    one, two = (
        read_columns(tmp_path / name, private={"value": "v"}, public={"user": "who"})
        for name in ("a.csv", "a.parquet")
    )
    assert one.to_pydict() == two.to_pydict()


def test_a_name_like_an_address_is_the_local_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was looked at is the one that is read."""
    monkeypatch.chdir(tmp_path)
    Path("file:").mkdir()
    Path("file:/a.csv").write_text("user,v,c\n1,2,x\n")
    found = shoal.Records("file:/a.csv", user="user", value="v", bounds=(0, 9), cell=["c"])
    assert found.occupancy().count.tolist() == [1]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_lines_that_look_like_rows_are_none(tmp_path: Path, end: str) -> None:
    """A file that an engine would read in parts is read as one."""
    path, rows = tmp_path / "long.csv", 9000
    lines = "".join(f"{end}f{at},c,{at},x" for at in range(300))
    with path.open("w", newline="") as file:
        file.write(f"user,cell,value,comment{end}")
        for at in range(rows):
            said = lines if at % 3 else 'a ""word""'
            file.write(f'u{at},c{at % 3},{at % 700 + 0.25},"{said}"{end}')
    assert path.stat().st_size > 2**23
    found = read_columns(path, private={"value": "value"}, public={"user": "user"})
    assert found.column("user").to_pylist() == [f"u{at}" for at in range(rows)]
    assert found.column("value").to_pylist() == [at % 700 + 0.25 for at in range(rows)]


@pytest.mark.parametrize("name", ["self", "exprs", "rows"])
@pytest.mark.parametrize("role", ["user", "value", "cell", "slot"])
def test_a_column_may_have_the_name_of_a_parameter(tmp_path: Path, name: str, role: str) -> None:
    """Such as `self`: names are no arguments of a function of the engine's library."""
    columns = {"user": "who", "value": "v", "cell": "place", "slot": "at", role: name}
    head = ",".join(columns.values()) + "\n"
    path = written(tmp_path / "s.csv", ["a,0.5,x,2013-01-01\n", "b,1,y,2013-01-02\n"], head)
    cell = [columns["cell"], f"timeslot({columns['slot']},1d)"]
    wanted: dict[str, Any] = {"user": columns["user"], "value": columns["value"]}
    found = shoal.Records(path, bounds=(0, 1), cell=cell, **wanted).aggregate()
    assert found.cell_sums() == [2**19, 2**20]
