"""Faults in what files are: locks that a look drops, outputs that replace what is not ours."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_LOOKED = ("tests/privacy/ledger/test_looked_at.py",)
_FILES = ("tests/files/test_files.py",)

FAULTS = (
    Fault(
        "a look at a ledger waits for nobody who charges it",
        "G-LEDGER",
        "documents/opened.py",
        "    with GATE:\n        handle",
        "    if GATE:\n        handle",
        _LOOKED,
    ),
    Fault(
        "a process forks while a ledger is looked at",
        "G-LEDGER",
        "files/__init__.py",
        "with GATE, closing(sqlite3.connect(",
        "with closing(sqlite3.connect(",
        _LOOKED,
    ),
    Fault(
        "an engine opens a ledger as records",
        "G-LEDGER",
        "data/source.py",
        "    if is_database(path):",
        "    if path.suffix == '.ledger' and is_database(path):",
        _LOOKED,
    ),
    Fault(
        "whatever is there is an earlier output",
        "G-OUTPUTS",
        "files/__init__.py",
        "(is_database(target) or not is_own(target))",
        "is_database(target)",
        _FILES,
    ),
    Fault(
        "a document of any schema is an earlier output",
        "G-OUTPUTS",
        "files/own.py",
        'str(found.get("schema", "")).startswith("shoal.")',
        "bool(found)",
        _FILES,
    ),
    Fault(
        "a table made from ours is ours",
        "G-OUTPUTS",
        "files/own.py",
        "    return mark == shape_mark(",
        "    return mark is not None or mark == shape_mark(",
        _FILES,
    ),
    Fault(
        "a table with one column of ours is an earlier output",
        "G-OUTPUTS",
        "files/own.py",
        "any(columns <= _header(start) for columns in _TABLES)",
        "any(columns & _header(start) for columns in _TABLES)",
        _FILES,
    ),
    Fault(
        "a link to a device is an output",
        "G-OUTPUTS",
        "files/__init__.py",
        "if _leads_to_a_device(target) or (target.exists()",
        "if (target.exists()",
        _FILES,
    ),
    Fault(
        "a text that is no label is told of",
        "G-CANARY",
        "data/outcome_space.py",
        "        codes = place.fill_null(0)",
        "        if place.null_count != array.null_count:\n            raise TypeError\n"
        "        codes = place.fill_null(0)",
        ("tests/data/test_labels.py",),
    ),
    Fault(
        "a cell column may be called like a typical interval",
        "G-REFUSE",
        "data/records.py",
        '"typical_low", ',
        "",
        ("tests/cells/test_reserved.py",),
    ),
    Fault(
        "a typical interval is a point where the estimate lies far outside",
        "G-TYPICAL",
        "cells/estimates.py",
        "outside = (upper <= bounds.lo) | (lower >= bounds.hi)",
        "outside = upper < lower",
        ("tests/cells/test_one_cell.py",),
    ),
    Fault(
        "the table of unbiased means is of equal weights",
        "G-ERROR",
        "means/recommend.py",
        '"weights": weights, "cap": cap}',
        '"weights": "equal", "cap": None}',
        ("tests/means/test_recommend.py",),
    ),
)
