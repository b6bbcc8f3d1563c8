"""What is delivered again is read from its own manifest, whoever recorded it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal import trials
from shoal.trials.randomiser import PART, replaced_for
from tests.release.test_one_way import KINDS, said
from tests.support.releases import releases

_UNITS = 400
_ARM = np.arange(_UNITS) % 2
_BOUGHT = (np.arange(_UNITS) // 2 % 5 < 1 + _ARM).astype(int)


def _trial(book: shoal.Ledger) -> trials.Release:
    study = trials.Experiment(_ARM, unit=np.arange(_UNITS))
    plan = study.table(trials.Domain.binary(), epsilon=2, mechanism="uniform_prior")
    given = {"privacy_unit": "person", "outcome_name": "bought", "name": "May"}
    return plan.release(_BOUGHT, study, ledger=book, **given)


def _book(folder: Path) -> shoal.Ledger:
    return shoal.Ledger.create(
        folder / "a.ledger", epsilon=100, delta="1/2", privacy_unit="person", counts="public"
    )


def test_a_trial_of_another_version_is_read_with_its_own_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Effects, table and loss are those of the recorded bytes, not of today's choice."""
    book = _book(tmp_path)

    def older(*given: Any) -> Any:
        return min(3 * replaced_for(*given), PART - 2**20)

    with monkeypatch.context() as patched:
        patched.setattr("shoal.trials.randomiser.replaced_for", older)
        recorded = _trial(book)
    again = _trial(book)
    assert again.from_ledger
    assert again.document == recorded.document
    again.write_record(tmp_path / "m.json")
    loaded = trials.Release.load(tmp_path / "m.json")
    assert said(again) == said(loaded) == said(recorded)
    assert again.plan.loss == loaded.plan.loss == recorded.plan.loss
    # Today's choice is another one.
    (tmp_path / "other").mkdir()
    fresh = _trial(_book(tmp_path / "other"))
    assert fresh.plan.loss != again.plan.loss


@pytest.mark.parametrize("family", KINDS)
def test_what_is_delivered_again_is_read_from_its_manifest(family: str, tmp_path: Path) -> None:
    """Plan and numbers of any family are those of the recorded bytes."""
    release: Any = releases(_book(tmp_path))[family]
    first, again = release(), release()
    assert (first.from_ledger, again.from_ledger) == (False, True)
    assert first.known_plan is not None
    assert (again.known_plan, again.drawn) == (None, None)
    again.write_record(tmp_path / "m.json")
    assert said(again) == said(KINDS[family].load(tmp_path / "m.json")) == said(first)
    assert again.inputs == first.inputs
