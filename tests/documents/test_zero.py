"""Zero has one spelling: in documents, and so in what a ledger knows a question by."""

from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal import documents, unbiased
from shoal.documents.strict_json import plain, strict
from shoal.errors import DocumentError
from tests.support import flights


@pytest.mark.parametrize("text", [b'{"a":-0.0}', b"[-0.0,1]", b"[[-0.0]]", b"[-0]", b"[1,-0.0]"])
def test_minus_zero_is_not_read(text: bytes) -> None:
    """A number has one spelling."""
    with pytest.raises(DocumentError, match="not written as shoal writes it"):
        strict(text, "a document")


def test_minus_zero_is_written_as_zero() -> None:
    """What is written can be read; numbers near zero keep their signs."""
    written = documents.canonical_bytes({"a": [-0.0, -0.01, (1, -0.0)], "b": "-0.0", "c": -1e-9})
    assert written == b'{"a":[0.0,-0.01,[1,0.0]],"b":"-0.0","c":-1e-09}'
    assert strict(written, "a document") == plain({"a": [0.0, -0.01, [1, 0.0]], "b": "-0.0",
                                                   "c": -1e-9}, "another")  # fmt: skip


def test_the_same_bounds_are_charged_once(tmp_path: Path) -> None:
    """Bounds from 0 and from -0.0 are one question, and so is an interval."""
    ledger = flights.ledger(tmp_path, 5)
    for low in (0, 0.0, -0.0, float(np.float32(-0.0))):
        records = flights.records(bounds=(low, 700))
        shoal.plan(records, method="balanced", epsilon=1).release(
            records, ledger=ledger, name="May"
        )
    assert len(ledger.entries()) == 1
    books = shoal.Ledger.create(
        tmp_path / "other.ledger", epsilon=5, privacy_unit="each row", counts="public"
    )
    for low in (0, -0.0):
        plan = unbiased.plan(
            "clipped_mean", 2000, moment=unbiased.Moment(2, 1), epsilon=1, interval=(low, 1),
            bias=0.3,
        )  # fmt: skip
        plan.release(np.zeros(2000), ledger=books, values_name="hours", name="May")
    assert len(books.entries()) == 1


def test_thresholds_weights_and_settings_have_one_zero() -> None:
    """A threshold of -0.0 asks the same question."""
    for one, other in (("0", "-0.0"), ("0", "-0")):
        first, second = (
            flights.plan(statistics=[f"share_above({each})"]).to_document() for each in (one, other)
        )
        assert first == second
