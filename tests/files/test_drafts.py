"""Drafts lie where the system finds the target's folder, and have the mode that it gives them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from shoal import files
from shoal.errors import DocumentError
from shoal.files import outputs

pytestmark = [pytest.mark.unit, pytest.mark.full]


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_mask_of_the_process_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    """Whoever makes a file meanwhile, also a ledger, makes it with the user's mode."""
    old = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("the mask was changed for a moment"))
            files.write_bytes(tmp_path / "a.json", b"{}")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("missing", [True, False])
def test_a_folder_is_the_one_that_the_system_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, missing: bool
) -> None:
    """Of `x/..` the text says one folder and a link another; refused before any work."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (there / "sub").mkdir(parents=True)
    monkeypatch.chdir(here)
    if not missing:
        Path("x").symlink_to(there / "sub")
    target = "x/../o.csv"
    if missing:
        with pytest.raises(DocumentError, match="cannot be written"):
            outputs.check_outputs({"--output": target}, {}, overwrite=False)
        return
    outputs.check_outputs({"--output": target}, {}, overwrite=False)
    files.write_bytes(target, b"new")
    assert (there / "o.csv").read_bytes() == b"new"
    assert sorted(path.name for path in there.iterdir()) == ["o.csv", "sub"]
    assert [path.name for path in here.iterdir()] == ["x"]
