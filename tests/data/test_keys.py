"""Keys that are Python objects: of one kind, or refused."""

from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.data import keys
from shoal.errors import DataError


def test_missing_keys_are_said_to_be() -> None:
    """A null is told as such, in texts of a frame too, where it is NaN."""
    import pandas as pd

    for column in (["a", None], [1, None], pd.Series(["a", float("nan")], dtype=object)):
        with pytest.raises(DataError, match="the user column has a null"):
            keys.as_array(column, "user")


@pytest.mark.parametrize("role", ["user", "cell"])
def test_text_of_arrow_that_is_not_utf8_is_refused(role: str) -> None:
    """Before anything is counted, not when a plan is shown."""
    for text in (b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"a\xe2\x82"):
        ends = np.array([0, len(text), len(text) + 1, len(text) + 2], np.int32)
        buffers = pa.py_buffer(ends.tobytes()), pa.py_buffer(text + b"ab")
        column = pa.StringArray.from_buffers(3, *buffers)
        with pytest.raises(DataError, match="text that is not UTF-8"):
            keys.as_array(column, role)
        large = pa.array([text, b"a", b"b"]).view(pa.string()).cast(pa.large_string())
        for each in (column, column.dictionary_encode(), pa.chunked_array([column]), large):
            given: dict[str, Any] = {"user": ["u", "v", "w"], "cell": ["x", "y", "z"], role: each}
            with pytest.raises(DataError):
                shoal.Counts.from_counts(given["user"], given["cell"], [1, 1, 1])
            table = pa.table({**given, "v": [1.0, 2.0, 3.0]})
            records = shoal.Records(
                table, user="user", value="v", bounds=(0, 4), by="cell", counts="public"
            )
            with pytest.raises(DataError):
                records.counts()
    source = ibis.memtable(table).mutate(more=1)
    with pytest.raises(DataError):
        shoal.Records(
            source, user="user", value="v", bounds=(0, 4), by="cell", counts="public"
        ).counts()
