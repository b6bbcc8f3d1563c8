"""What a manifest states of its results follows from what was drawn, or it is not read."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal import documents, trials, unbiased
from shoal.errors import DocumentError
from tests.support import methods
from tests.support.releases import releases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from shoal.documents import Document

pytestmark = [pytest.mark.unit, pytest.mark.full]

KINDS: dict[str, Any] = {
    "cell mean": shoal.Release,
    "trial": trials.PrivateTrial,
    "unbiased mean": unbiased.UnbiasedEstimate,
}
METHODS = ("balanced", "balanced-joint", "balanced-gaussian-all", "quantile", "akmv", "levy")
ROWS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "one too few": lambda rows: rows[:-1],
    "one too many": lambda rows: [*rows, rows[-1]],
    "twice": lambda rows: rows * 2,
    "in another order": lambda rows: rows[::-1],
}


def _load(kind: Any, folder: Path, document: Document) -> Any:
    (folder / "m.json").write_bytes(documents.canonical_bytes(document))
    return kind.load(folder / "m.json")


def _cells(name: str) -> Document:
    table = methods.tied(3, 14, 3)
    made = methods.plan(table, methods.METHODS[name])
    return made.release(methods.records(table), noise=shoal.Simulated(2)).manifest


def _ways(part: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every leaf of a document lies."""
    if isinstance(part, dict | list):
        for name in part if isinstance(part, dict) else range(len(part)):
            yield from _ways(part[name], (*way, name))
    else:
        yield way


def _other(leaf: Any) -> Any:
    """Another leaf that the schema may allow, too."""
    if leaf is None or isinstance(leaf, bool):
        return False if leaf is None else None
    if isinstance(leaf, str):
        return f"9{leaf}"
    # One tick of a range moves nothing by more than another machine's rounding does.
    return 2 * leaf + 2**24 if isinstance(leaf, int) else leaf * 1.01 + 0.01


def _changed(document: Document, way: tuple[Any, ...], change: Callable[[Any], Any]) -> Document:
    made = copy.deepcopy(document)
    part = made
    for name in way[:-1]:
        part = part[name]
    part[way[-1]] = change(part[way[-1]])
    return made


def _check_every_leaf(kind: Any, folder: Path, document: Document, *within: str) -> None:
    part: Any = document
    for name in within:
        part = part[name]
    ways = [(*within, *way) for way in _ways(part)]
    assert ways
    for way in ways:
        with pytest.raises(DocumentError):
            _load(kind, folder, _changed(document, way, _other))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("method", METHODS)
def test_cells_have_one_row_each_in_their_order(method: str, rows: str, tmp_path: Path) -> None:
    """Rows too few, too many or in another order are refused, not mistaken."""
    document = _cells(method)
    _load(shoal.Release, tmp_path, document)
    document["results"] = ROWS[rows](document["results"])
    with pytest.raises(DocumentError, match="damaged"):
        _load(shoal.Release, tmp_path, document)


@pytest.mark.parametrize("rows", ROWS)
def test_recorded_rows_are_refused_when_they_are_read(rows: str, tmp_path: Path) -> None:
    """A ledger's document with such rows is delivered as it is, and read with an error."""
    table = methods.tied(3, 14, 3)
    made, records = methods.plan(table, {"method": "balanced"}), methods.records(table)
    first = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=100)
    document = json.loads(made.release(records, ledger=first, name="may").document)
    entry = first.entries()[0]
    document["results"] = ROWS[rows](document["results"])
    book = shoal.Ledger.create(tmp_path / "b.ledger", epsilon=100)
    unit = document["guarantee"]["unit"]["name"]
    book.record(
        entry.question,
        unit=unit,
        epsilon=4,
        name="may",
        document=documents.canonical_bytes(document),
    )
    found = made.release(records, ledger=book, name="may")
    assert found.from_ledger
    for read in (found.table, found.to_pandas):
        with pytest.raises(DocumentError, match="damaged"):
            read()


@pytest.mark.parametrize("method", METHODS)
def test_every_number_of_cells_follows(method: str, tmp_path: Path) -> None:
    """Key, cell, value and interval of a manifest are those of what was drawn."""
    document = _cells(method)
    _check_every_leaf(shoal.Release, tmp_path, document, "results")


def test_every_effect_of_a_trial_follows(tmp_path: Path) -> None:
    """Arms, effects, errors and intervals are those of what was released."""
    made: Any = releases()["trial"]()
    _check_every_leaf(trials.PrivateTrial, tmp_path, made.manifest, "results", "effects")
    document = copy.deepcopy(made.manifest)
    document["results"]["effects"] *= 2
    with pytest.raises(DocumentError, match="damaged"):
        _load(trials.PrivateTrial, tmp_path, document)


def test_a_mean_follows_from_its_exact_number(tmp_path: Path) -> None:
    """Value, interval and what failed are those of the exact estimate."""
    made: Any = releases()["unbiased mean"]()
    _check_every_leaf(unbiased.UnbiasedEstimate, tmp_path, made.manifest, "results")


@pytest.mark.parametrize("exact", ["9" * 400, "-" + "9" * 400, f"{'9' * 4000}/7"])
def test_a_mean_beyond_floating_point_numbers_is_refused(exact: str, tmp_path: Path) -> None:
    """An exact estimate above 1e308 is damage, found where the manifest is loaded."""
    made: Any = releases()["unbiased mean"]()
    document = _changed(made.manifest, ("results", "exact"), lambda _: exact)
    with pytest.raises(DocumentError, match="damaged"):
        _load(unbiased.UnbiasedEstimate, tmp_path, document)


@pytest.mark.parametrize("family", KINDS)
def test_another_machines_last_digits_are_read(family: str, tmp_path: Path) -> None:
    """Numbers that differ by a part of 1e-12 are those of another machine."""
    made: Any = releases()[family]()
    document = made.manifest
    for way in _ways(document["results"]):
        document = _changed(
            document,
            ("results", *way),
            lambda leaf: leaf * (1 + 1e-12) if type(leaf) is float else leaf,
        )
    assert document["results"] != made.manifest["results"]
    _load(KINDS[family], tmp_path, document)


@pytest.mark.parametrize("family", KINDS)
def test_the_loss_is_that_of_the_plan(tmp_path: Path, family: str) -> None:
    """No other loss is read from the guarantee, nor from the plan's claims."""
    made: Any = releases()[family]()
    document = json.loads(made.document)
    assert _load(KINDS[family], tmp_path, document).epsilon == made.epsilon
    for part in (document["guarantee"], document["plan"]["claims"]):
        for name in {"epsilon", "delta", "epsilon_at_most", "delta_at_most"} & part.keys():
            true = part[name]
            part[name] = "1/1000" if isinstance(true, str) else 0.001
            with pytest.raises(DocumentError, match="damaged"):
                _load(KINDS[family], tmp_path, document)
            part[name] = true


@pytest.mark.parametrize(
    "mechanism", ["cluster_dp", "uniform_prior", "best_table", "noisy_histogram", "noisy_ht"]
)
def test_a_loss_that_is_stated_everywhere_is_computed_again(tmp_path: Path, mechanism: str) -> None:
    """Guarantee and claims may agree with each other and not with the mechanism."""
    made: dict[str, Any] = {
        "cluster_dp": trials.ClusterDP(epsilon=2),
        "uniform_prior": trials.UniformPrior(epsilon=2),
        "best_table": trials.BestTable(epsilon=2),
        "noisy_histogram": trials.NoisyHistogram(epsilon=2),
        "noisy_ht": trials.NoisyHorvitzThompson(epsilon=2),
    }
    arm = [0, 1] * 200
    release = made[mechanism].privatize([0, 1, 1, 0] * 100, arm, space=trials.Space.binary())
    document = json.loads(release.document)
    assert _load(trials.PrivateTrial, tmp_path, document).epsilon == release.epsilon
    document["plan"]["claims"]["epsilon"] = document["guarantee"]["epsilon"] = "1/100"
    document["guarantee"]["epsilon_at_most"] = 0.01
    with pytest.raises(DocumentError, match="damaged"):
        _load(trials.PrivateTrial, tmp_path, document)
    document = json.loads(release.document)
    document["plan"]["mechanism"]["asked"]["epsilon"] = "1/100"
    with pytest.raises(DocumentError, match="damaged"):
        _load(trials.PrivateTrial, tmp_path, document)
