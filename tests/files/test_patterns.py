"""Patterns of file names: what they stand for is what is there, and what would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.files.patterns import fixed_part, is_pattern, matches, would_match

pytestmark = [pytest.mark.unit, pytest.mark.full]


def test_a_file_with_brackets_is_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no pattern while it is there, or a link of that name is."""
    monkeypatch.chdir(tmp_path)
    assert is_pattern("a[1].csv")
    assert would_match(Path("a[1].csv"), Path("a1.csv"))
    Path("a[1].csv").symlink_to("nowhere")
    assert not is_pattern("a[1].csv")
    assert not would_match(Path("a[1].csv"), Path("a1.csv"))


def test_matches_come_in_the_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of bytes, whatever the system lists first; a broken name finds nothing."""
    monkeypatch.chdir(tmp_path)
    for name in ("b.csv", "Z.csv", "é.csv", "a.csv", ".hidden.csv", "x/c.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    assert matches("*.csv") == ["Z.csv", "a.csv", "b.csv", "é.csv"]
    assert matches("**/*.csv") == ["Z.csv", "a.csv", "b.csv", "x/c.csv", "é.csv"]
    assert matches("\0*.csv") == []
    assert [fixed_part(each) for each in ("*.csv", "x/*", "/x/a[1]/b", "x/y")] == [
        "",
        "x",
        "/x",
        "x",
    ]


@pytest.mark.parametrize(
    ("pattern", "target", "taken"),
    [
        ("*.csv", "new.csv", True),
        ("*.csv", "NEW.CSV", True),
        ("*.csv", "new.json", False),
        ("*.csv", "x/new.csv", False),
        ("x/*.csv", "new.csv", False),
        ("x/*.csv", "x/../x/new.csv", True),
        ("*/*.csv", "x/new.csv", True),
        ("*/*.csv", "link/new.csv", True),
        ("x/*.csv", "link/new.csv", True),
        ("**/*.csv", "x/y/new.csv", True),
        ("**/*.csv", "new.csv", True),
        ("[ab].csv", "a.csv", True),
        ("[ab].csv", "c.csv", False),
        ("x/[o]ld.csv", "elsewhere.json", True),
        ("x/[n]ew.csv", "leads.json", True),
        ("gone/*.csv", "gone/new.csv", False),
    ],
)
def test_a_new_file_is_told_by_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, target: str, *, taken: bool
) -> None:
    """Through links of folders and files, and whether case is folded."""
    monkeypatch.chdir(tmp_path)
    Path("x/y").mkdir(parents=True)
    Path("x/old.csv").touch()
    Path("link").symlink_to("x")
    Path("elsewhere.json").hardlink_to("x/old.csv")
    Path("leads.json").symlink_to("x/new.csv")
    assert would_match(Path(pattern), Path(target)) is taken
    assert would_match(tmp_path / pattern, Path(target)) is taken
