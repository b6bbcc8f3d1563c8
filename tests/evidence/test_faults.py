"""The list of seeded faults is as long as it is said to be, and is not behind the library."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.evidence.faults import of_part, spread
from tests.evidence.running import pieces
from tests.evidence.seeded.catalogue import FAULTS, LAYERS
from tests.evidence.seeded.fault import LIBRARY, Fault, NoSuchLineError
from tests.evidence.seeded.runner import ROOT

pytestmark = pytest.mark.audit

SOURCE = "def f(x):\n    return x + 1\n\n\ndef g(x):\n    return x + 1\n"


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_every_fault_has_its_place(fault: Fault) -> None:
    """The original text is there once, what replaces it compiles, and its tests exist."""
    source = (LIBRARY / fault.file).read_text(encoding="utf-8")
    changed = fault.seeded(source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    assert fault.tests
    for test in fault.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists(), test
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / path).read_text("utf-8")


def test_there_are_enough_of_every_layer() -> None:
    """At least 120, each with a name of its own and a promise that is stated."""
    assert len(FAULTS) >= 120
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(len(layer.FAULTS) >= 10 for layer in LAYERS)
    page = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    stated = set(re.findall(r"^\| (G-[A-Z-]+) ", page, re.MULTILINE))
    assert {fault.promise for fault in FAULTS} <= stated
    files = {path.stem for path in Path(__file__).with_name("seeded").glob("*.py")}
    assert files - {"__main__", "catalogue", "fault", "runner"} == {
        layer.__name__.rpartition(".")[2] for layer in LAYERS
    }


def test_a_text_that_is_not_there_once_is_no_place() -> None:
    """Twice, or never; a function's name tells two places apart."""

    def fault(original: str, inside: str = "") -> Fault:
        return Fault("one", "G-REACH", "a.py", original, "x", (), inside)

    for original, inside in (("x + 1", ""), ("x + 2", "g"), ("x + 1", "h")):
        with pytest.raises(NoSuchLineError):
            fault(original, inside).seeded(SOURCE)
    assert fault("x + 1", "g").seeded(SOURCE) == SOURCE[:-6] + "x\n"


def test_a_reduced_run_looks_at_several_layers() -> None:
    """Different faults, far apart in the list, at every size and seed."""
    for size in (1, 4, 50, len(FAULTS)):
        for seed in (0, 7, 10**6):
            assert len({fault.name for fault in spread(FAULTS, size, seed)}) == size
    assert len({fault.file for fault in spread(FAULTS, 4, 7)}) == 4


def test_the_parts_of_a_full_run_are_all_faults() -> None:
    """Each fault in one of them; a reduced run is no part."""
    parts = [of_part(piece.size, piece.seed) for piece in pieces("faults", len(FAULTS), 13)]
    assert [fault.name for part in parts for fault in part] == [fault.name for fault in FAULTS]
    assert min(map(len, parts)) > 4
    assert not of_part(4, 13)
