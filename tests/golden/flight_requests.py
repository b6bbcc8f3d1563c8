"""Requests for counts and sums of the bundled flights: cell rules, time zones, kinds of sources."""

import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

Request = dict[str, Any]

_SPEED = {"value": "speed", "bounds": [0, 700]}
_ZONE = "America/New_York"
# A tenth of the rows in several orders and kinds of sources: results must be the same.
_TENTH = {**_SPEED, "every": 10, "by": ["origin"], "statistics": ["mean", "share_above(400)"]}
REQUESTS: tuple[Request, ...] = (
    {**_SPEED, "by": ["origin", f"hour_of_day(time_hour,{_ZONE})"]},
    {**_SPEED, "by": ["dest"], "statistics": ["mean", "variance", "share_above(350.5)"]},
    {**_SPEED, "by": ["origin", "hour_of_day(time_hour)"]},
    {**_SPEED, "by": [f"timeslot(time_hour,6h,{_ZONE})"], "every": 3},
    {**_SPEED, "by": ["weekday(time_hour)", "origin"]},
    {**_SPEED, "by": ["month(time_hour,Asia/Kathmandu)", "origin"]},
    {**_SPEED, "by": [f"date(time_hour,{_ZONE})"]},
    {"value": "dep_delay", "bounds": [-30, 180], "by": ["bins(distance,500)"]},
    {"value": "dep_delay", "bounds": [-30, 180], "by": ["origin", "bins(distance,400,-50)"]},
    {**_SPEED, "by": ["hexagon(dest_lat,dest_lon,2)"]},
    {**_TENTH, "form": "arrow", "order": "backwards"},
    {**_TENTH, "form": "pandas", "order": "mixed"},
    {**_TENTH, "form": "polars", "order": "by value"},
    {**_TENTH, "form": "csv", "order": "mixed"},
    {**_SPEED, "form": "csv", "by": ["weekday(time_hour,Europe/London)", "origin"], "every": 2},
    {**_SPEED, "form": "csv.gz", "by": ["hour_of_day(time_hour,Australia/Lord_Howe)"], "every": 4},
    {**_SPEED, "form": "folder", "by": ["month(time_hour)", "dest"], "tick_bits": 24},
    {"value": "arr_delay", "bounds": [-60.5, 120.25], "by": ["timeslot(time_hour,1d)"],
     "form": "pandas", "every": 5, "tick_bits": 12},
    {"user": "dest", "value": "distance", "bounds": [0, 3000], "by": ["origin", "month(time_hour)"],
     "form": "polars", "every": 6},
    {**_SPEED, "by": ["origin"], "missing": "refuse"},
)  # fmt: skip


def source(request: Request, folder: Path) -> Any:
    """The flights in the form, and with the rows in the order, that a request is about."""
    place = files("shoal") / "datasets" / "flights_2013.parquet"
    form, every = request.get("form", "file"), request.get("every", 1)
    if form == "file" and every == 1:
        return str(place)
    table = pq.read_table(str(place)).replace_schema_metadata(None)
    table = _in_order(table.take(np.arange(0, table.num_rows, every)), request.get("order", ""))
    return _in_form(table, form, folder)


def _in_order(table: pa.Table, order: str) -> pa.Table:
    rows = np.arange(table.num_rows)
    if order == "mixed":
        step = next(n for n in range(7919, 2 * 7919) if math.gcd(n, len(rows)) == 1)
        rows = rows * step % len(rows)
    if order == "by value":
        return table.sort_by([("speed", "ascending"), ("tailnum", "descending")])
    return table.take(rows[::-1] if order == "backwards" else rows)


def _in_form(table: pa.Table, form: str, folder: Path) -> Any:
    if form == "arrow":
        return table
    if form == "pandas":
        return table.to_pandas()
    if form == "polars":
        import polars as pl

        return pl.from_arrow(table)
    if form in {"csv", "csv.gz"}:
        path = folder / f"flights.{form}"
        with pa.output_stream(str(path)) as stream:
            pa_csv.write_csv(table, stream)
        return path
    parts = 1 if form == "file" else 3
    size = -(-table.num_rows // parts)
    for part in range(parts):
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    return folder / "0.parquet" if form == "file" else folder
