"""What every release has, whatever its family: fresh, delivered again, and loaded from a file."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import shoal
from shoal import trials, unbiased
from shoal.errors import DocumentError
from tests.support.releases import releases

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

KINDS: dict[str, Any] = {
    "cell mean": shoal.Release,
    "trial": trials.PrivateTrial,
    "unbiased mean": unbiased.UnbiasedEstimate,
}


def said(found: Any) -> list[object]:
    """All that a release tells its reader, besides where it is booked."""
    if isinstance(found, shoal.Release):
        own: list[object] = [found.table().to_pylist()]
    elif isinstance(found, trials.PrivateTrial):
        own = [found.table().to_pylist(), str(found.effects())]
    else:
        own = [found.value, found.interval, found.sentence]
    return [found.manifest, found.epsilon, found.delta, found.simulated, own]


@pytest.mark.parametrize("family", KINDS)
def test_a_loaded_release_says_what_the_fresh_one_said(family: str, tmp_path: Path) -> None:
    """Results that were drawn just now are those that its manifest is read as."""
    fresh: Any = releases()[family]()
    assert fresh.drawn is not None
    path = tmp_path / "manifest.json"
    fresh.write_manifest(path)
    loaded = KINDS[family].load(path)
    assert (loaded.drawn, loaded.known_plan, loaded.loaded) == (None, None, True)
    assert said(loaded) == said(fresh)
    assert shoal.verify(path).holds


@pytest.mark.parametrize("family", KINDS)
def test_a_manifest_is_loaded_by_the_class_of_its_kind(family: str, tmp_path: Path) -> None:
    """Another family's manifest is refused in one line."""
    path = tmp_path / "manifest.json"
    made: Any = releases()[family]()
    made.write_manifest(path)
    for other, kind in KINDS.items():
        if other != family:
            with pytest.raises(DocumentError, match="a manifest of the kind"):
                kind.load(path)


@pytest.mark.parametrize("family", KINDS)
def test_a_manifest_that_states_too_little_is_not_loaded(family: str, tmp_path: Path) -> None:
    """Less than its plan loses, in one place or in all of them."""
    made: Any = releases()[family]()
    path, exact = tmp_path / "manifest.json", made.manifest["guarantee"]["epsilon"]
    made.write_manifest(path)
    text, less = path.read_text(encoding="utf-8"), str(Fraction(exact) * Fraction(999_999, 10**6))
    for number in (1, 2):
        path.write_text(text.replace(f'"epsilon":"{exact}"', f'"epsilon":"{less}"', number))
        with pytest.raises(DocumentError, match="damaged"):
            KINDS[family].load(path)
