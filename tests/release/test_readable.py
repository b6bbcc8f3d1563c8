"""What is charged can be read: odd public inputs are refused, or read back and verified."""

from __future__ import annotations

import datetime as dt
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import documents, trials, unbiased
from shoal.checks import MOST_DIGITS
from shoal.data.keys import as_table
from shoal.documents import canonical_bytes
from shoal.errors import DataError, DocumentError, InputError

pytestmark = pytest.mark.unit

_TOTAL = 1000
_USERS, _ROWS, _UNITS = 20, 40, 60
_SECONDS = 20


def _digits(number: int) -> Fraction:
    return Fraction(10 ** (number - 1) + 1, 10 ** (number - 1))


def _ledger(folder: Path) -> shoal.Ledger:
    return shoal.Ledger.create(folder / "a.ledger", epsilon=_TOTAL, delta="1/2", unit="who")


def _judge(book: shoal.Ledger, release: Callable[[], Any], folder: Path) -> str:
    """`refused` at no cost, or `read` in every way that there is."""
    try:
        found = release()
    except (InputError, DataError):
        assert book.state().left.epsilon == _TOTAL
        return "refused"
    assert book.state().left.epsilon < _TOTAL
    assert str(found)
    manifest = folder / "manifest.json"
    found.write_manifest(manifest)
    if isinstance(found, shoal.Release):
        assert found.table().num_rows
        assert str(found.plan)
        (folder / "plan.json").write_bytes(canonical_bytes(found.manifest["plan"]))
        shoal.Plan.load(folder / "plan.json")
    elif isinstance(found, trials.PrivateTrial):
        assert trials.PrivateTrial.load(manifest).table().num_rows
        assert found.effects()
    assert shoal.verify(manifest, ledger=book).holds
    assert str(release().document) == str(found.document)
    return "read"


def _cells(book: shoal.Ledger, **odd: Any) -> Callable[[], Any]:
    user, value, cell = odd.pop("user", "who"), odd.pop("value", "value"), odd.pop("cell", "place")
    keys, columns = odd.pop("keys", ["x", "y"] * (_ROWS // 2)), odd.pop("columns", 1)
    rule = odd.pop("rule", None)
    names = [cell] if columns == 1 else [f"{cell}{at}" for at in range(columns)]
    table = pa.table(
        {
            user: [f"u{at // 2}" for at in range(_ROWS)],
            **dict.fromkeys(names, keys),
            value: [0.0, 50.0] * (_ROWS // 2),
        }
    )

    def release() -> Any:
        records = shoal.Records(table, user=user, value=value, by=rule or names, bounds=(0, 100))
        wanted = {"epsilon": 1, "uninformative": "keep", **odd}
        plan = shoal.plan(records.counts(), bounds=(0, 100), **{"method": "balanced", **wanted})
        return plan.release(records, ledger=book, name="n", privacy_unit="who")

    return release


_HOURS = pa.array([1_577_836_800 + 3600 * (at % 5) for at in range(_ROWS)], pa.timestamp("s"))
_FAR = pa.array([-800_000, 19_000] * (_ROWS // 2), pa.int32()).cast(pa.date32())
_LAST_TIMES = pa.array([253_402_300_799, 10**9] * (_ROWS // 2), pa.timestamp("s"))
_FAR_TIMES = pa.array([316 * 10**9, 10**9] * (_ROWS // 2), pa.timestamp("s"))
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing odd": ("read", {}),
    "a cell column of 200 letters": ("read", {"cell": "c" * 200}),
    "a cell column of 201 letters": ("refused", {"cell": "c" * 201}),
    "a cell column on two lines": ("refused", {"cell": "a\nb"}),
    "a cell column that turns its reader": ("refused", {"cell": "a\u202eb"}),
    "64 cell columns": ("read", {"columns": 64}),
    "65 cell columns": ("refused", {"columns": 65}),
    "a slot's name of 200 letters": (
        "read",
        {"cell": "t" * 197, "keys": _HOURS, "rule": shoal.timeslot("t" * 197, "1h")},
    ),
    "a slot's name of 201 letters": (
        "refused",
        {"cell": "t" * 198, "keys": _HOURS, "rule": shoal.timeslot("t" * 198, "1h")},
    ),
    "an hour's name of 201 letters": (
        "refused",
        {"cell": "t" * 196, "keys": _HOURS, "rule": shoal.hour_of_day("t" * 196)},
    ),
    "epsilon of 390 digits": ("read", {"epsilon": _digits(390)}),
    "epsilon of 401 digits": ("refused", {"epsilon": _digits(401)}),
    "delta of 100 digits": ("read", {"delta": _digits(100) / 10**6}),
    "delta of 401 digits": ("refused", {"delta": _digits(395) / 10**6}),
    "days before year 1": ("refused", {"keys": _FAR}),
    **{
        f"slots of {width} on the last day": (
            "read",
            {"keys": _LAST_TIMES, "rule": shoal.timeslot("place", width)},
        )
        for width in ("1s", "90min", "1d", "7d")
    },
    "slots after year 9999": (
        "refused",
        {"keys": _FAR_TIMES, "rule": shoal.timeslot("place", "1h")},
    ),
    "a key on two lines": ("read", {"keys": ["x\ny", "z"] * (_ROWS // 2)}),
    "a key of 100,000 letters": ("read", {"keys": ["x" * 100_000, "z"] * (_ROWS // 2)}),
    "joint moments": ("read", {"statistics": ["mean", "variance"]}),
    "selected ranges": ("read", {"method": "levy"}),
}


@pytest.mark.parametrize("odd", CELLS)
def test_cells_are_refused_or_read(tmp_path: Path, odd: str) -> None:
    """No release of cells is charged that cannot be read and verified."""
    wanted, options = CELLS[odd]
    book = _ledger(tmp_path)
    assert _judge(book, _cells(book, **options), tmp_path) == wanted


def _trial(book: shoal.Ledger, **odd: Any) -> Callable[[], Any]:
    def release() -> Any:
        given = dict(odd)
        kind = getattr(trials, given.pop("kind", "UniformPrior"))
        made = {name: given.pop(name) for name in ("delta", "spread_share") if name in given}
        mechanism = kind(given.pop("epsilon", 1), **made)
        arm = given.pop("treatment", np.arange(_UNITS) % 2)
        cluster = given.pop("cluster", np.arange(_UNITS) // 2 % 3)
        usual = {"outcome_name": "b", "privacy_unit": "who", "name": "n"}
        space = trials.Space.binary()
        outcomes = np.arange(_UNITS) % 2
        return mechanism.privatize(
            outcomes, arm, cluster, space=space, ledger=book, **{**usual, **given}
        )

    return release


_LIMA = pa.timestamp("s", "America/Lima")
_FINE = np.array(["2020-01-01T00:00:00.123456789", "2021-01-01"], "M8[ns]")
_WHOLE = np.array(["2020-01-01T00:00:00.123456", "2021-01-01"], "M8[us]").astype("M8[ns]")
TRIALS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"nothing odd of {kind}": ("read", {"kind": kind})
        for kind in (
            "UniformPrior", "ClusterDP", "ClusterFree", "NoisyHistogram", "NoisyHorvitzThompson"
        )
    },
    "clusters in nanoseconds": ("refused", {"cluster": np.repeat(_FINE, 30)}),
    "clusters in microseconds": ("read", {"cluster": np.repeat(_WHOLE, 30)}),
    "arms in nanoseconds": ("refused", {"treatment": np.tile(_FINE, 30)}),
    "units in nanoseconds": ("refused", {"unit": np.arange(_UNITS).astype("M8[ns]")}),
    "units in microseconds": ("read", {"unit": np.arange(_UNITS).astype("M8[us]")}),
    "clusters after year 9999": (
        "refused",
        {"cluster": pa.array([0] * 30 + [10**12] * 30, pa.timestamp("s"))},
    ),
    "clusters on the first and last day": (
        "read",
        {"cluster": [dt.date.min] * 30 + [dt.date.max] * 30},
    ),
    "a local time on the first day": (
        "refused",
        {
            "cluster": pa.array([0] * 30 + [-62_135_596_800] * 30, _LIMA)
        },
    ),
    "epsilon of 390 digits": ("read", {"epsilon": _digits(390)}),
    "epsilon of 401 digits": ("refused", {"epsilon": _digits(401)}),
    "clusters that cost 390 digits, and epsilon as well": (
        "refused",
        {"epsilon": _digits(389), "clustering_epsilon": Fraction(10**389 + 1, 3**800)},
    ),
    "clusters that cost 45 digits": ("read", {"clustering_epsilon": _digits(45)}),
    "delta of 401 digits": ("refused", {"delta": _digits(395) / 10**6}),
    "a share of 100 digits": (
        "refused",
        {"kind": "NoisyHorvitzThompson", "spread_share": _digits(100) / 3},
    ),
    "a share of 40 digits": (
        "read",
        {"kind": "NoisyHorvitzThompson", "spread_share": _digits(40) / 3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("odd", TRIALS)
def test_trials_are_refused_or_read(tmp_path: Path, odd: str) -> None:
    """No trial is charged that cannot be read and verified."""
    wanted, options = TRIALS[odd]
    book = _ledger(tmp_path)
    assert _judge(book, _trial(book, **options), tmp_path) == wanted


def _mean(book: shoal.Ledger, **odd: Any) -> Callable[[], Any]:
    def release() -> Any:
        wanted: dict[str, Any] = {"epsilon": 4, "delta": "1/4", **odd}
        moment = wanted.pop("moment", unbiased.Moment(2, 1.0))
        plan = unbiased.plan("symmetric_mean", 300, moment=moment, **wanted)
        values = np.arange(300) / 300
        return plan.release(values, ledger=book, name="n", values_name="h", privacy_unit="who")

    return release


MEANS: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing odd": ("read", {}),
    "a source of texts": ("read", {"source": {"a": "b", "c": 3, "d": None, "e": True}}),
    "a source with a fraction": ("refused", {"source": {"a": 1.5}}),
    "a source with a list": ("refused", {"source": {"a": [1]}}),
    "a source with a mapping": ("refused", {"source": {"a": {"b": 1}}}),
    "a source with a long number": ("refused", {"source": {"a": 10**50}}),
    "a source on 40 levels": ("refused", {"source": {"a": json.loads("[" * 40 + "]" * 40)}}),
    "delta of 390 digits": ("read", {"delta": _digits(390) / 4}),
    "delta of 3,990 digits": ("refused", {"delta": _digits(3990) / 4}),
    "21 moments": (
        "refused",
        {"moment": [unbiased.Moment(2 + at / 10, 1 + at / 100) for at in range(21)]},
    ),
}


@pytest.mark.parametrize("odd", MEANS)
def test_means_are_refused_or_read(tmp_path: Path, odd: str) -> None:
    """No unbiased mean is charged that cannot be read and verified."""
    wanted, options = MEANS[odd]
    book = _ledger(tmp_path)
    assert _judge(book, _mean(book, **options), tmp_path) == wanted


def test_amounts_schemas_and_verifier_have_one_limit() -> None:
    """A fraction that is taken is one that the schemas and the second opinion read."""
    folder = Path(documents.__file__).parent / "schemas"
    patterns = {
        part["pattern"]
        for path in folder.glob("*.json")
        for name, part in json.loads(path.read_text())["$defs"].items()
        if name == "fraction"
    }
    most = MOST_DIGITS - 1
    assert patterns == {f"^(0|[1-9][0-9]{{0,{most}}})(/[1-9][0-9]{{0,{most}}})?$"}


@contextmanager
def _ends() -> Iterator[None]:
    """Fail, and do not wait, where something never ends."""

    def late(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"no answer in {_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


EXTREME = (5e-324, 1e-300, 1e-16, 0.9, 1 - 1e-12, 1 - 1e-15, 0.9999999999999999)
FAMILIES: dict[str, tuple[Callable[..., Callable[[], Any]], dict[str, Any]]] = {
    "cells": (_cells, {}),
    "cells, gaussian": (_cells, {"delta": "1e-6"}),
    "a joint variance": (_cells, {"statistics": ["mean", "variance"]}),
    "units": (_trial, {}),
    "a histogram": (_trial, {"kind": "NoisyHistogram"}),
    "differences": (_trial, {"kind": "NoisyHorvitzThompson"}),
    "a mean": (_mean, {}),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_no_confidence_keeps_the_second_opinion_busy(tmp_path: Path, kind: str) -> None:
    """`verify` answers for any confidence, and that of a manifest is 0.95."""
    family, options = FAMILIES[kind]
    manifest = json.loads(family(_ledger(tmp_path), **options)().document)
    part = manifest
    for confidence in EXTREME:
        part["confidence"] = confidence
        with _ends():
            try:
                assert not shoal.verify(manifest).holds
            except DocumentError:
                continue


@pytest.mark.parametrize("kind", FAMILIES)
def test_no_confidence_keeps_a_result_busy(tmp_path: Path, kind: str) -> None:
    """Intervals of any confidence are given, or refused in one line."""
    family, options = FAMILIES[kind]
    found = family(_ledger(tmp_path), **options)()
    for confidence in EXTREME:
        with _ends():
            try:
                if isinstance(found, shoal.Release):
                    found.table(confidence)
                elif isinstance(found, trials.PrivateTrial):
                    found.estimate(confidence=confidence)
                trials.detectable(1.0, power=0.999999, confidence=confidence)
            except InputError:
                continue


@pytest.mark.parametrize("confidence", EXTREME)
def test_the_verifiers_quantile_ends(confidence: float) -> None:
    """A probability that floating-point sums never reach is refused, not looked for."""
    from shoal.verification.trials.spread import normal_laplace

    # For some of these numbers of terms probabilities add up to less than 1.
    for terms in (1.0, 1.8, 6.9, 12.0, 13.0, 25.0):
        with _ends():
            try:
                assert normal_laplace(confidence, 1.0, 2.0, terms) >= 0
            except ArithmeticError:
                assert confidence > EXTREME[-3]


@pytest.mark.parametrize("name", ["", "a\nb", "a\u202eb", "c" * 201])
def test_columns_of_a_table_have_names_that_manifests_hold(name: str) -> None:
    """So do cells that are given as a table, not as columns of records."""
    with pytest.raises(DataError):
        as_table({name: [1, 2]})
    assert as_table({"c" * 200: [1, 2]}).num_rows


def test_keys_are_shown_on_their_line(tmp_path: Path) -> None:
    """No key of a cell or cluster moves the cursor of who reads a plan or release."""
    odd = ["x\ny\x1b[2J", "\u202ez"]
    book = _ledger(tmp_path)
    release = _cells(book, keys=odd * (_ROWS // 2))()
    for text in (str(release.plan), str(release)):
        assert all(line.isprintable() for line in text.split("\n"))
    assert "x\\ny\\x1b[2J" in str(release.plan)
    assert len(str(release.plan).split("\n")) == len(str(release.plan).splitlines())
    arms = ["a\u202e", "b\n"] * (_UNITS // 2)
    effects = _trial(book, cluster=[odd[at // 2 % 2] for at in range(_UNITS)], treatment=arms)()
    (effect,) = effects.effects()
    for text, lines in ((str(effect), 2 + bool(effect.warning)), (effect.clusters_text(), 2)):
        assert all(line.isprintable() for line in text.split("\n"))
        assert len(text.split("\n")) == lines
