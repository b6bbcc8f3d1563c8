"""Faults in what files are: locks that a look drops, outputs that replace what is not ours."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_LOOKED = ("tests/privacy/ledger/test_looked_at.py",)
_FORKS = ("tests/documents/test_fork_gate.py",)
_SPILL = ("tests/data/test_spill.py",)
_FILES = ("tests/files/test_files.py",)
_OWN = ("tests/files/test_own.py",)
_DRAFTS = ("tests/files/test_drafts.py",)

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
        "a signal ends the wait of a fork for the ledgers",
        "G-LEDGER",
        "documents/fork_gate.py",
        "        with _signals_wait():\n            GATE.acquire()",
        "        GATE.acquire()",
        _FORKS,
    ),
    Fault(
        "a signal that came while a fork waited is lost",
        "G-LEDGER",
        "documents/fork_gate.py",
        "    while _LATE:",
        "    while _LATE and not _LATE:",
        _FORKS,
    ),
    Fault(
        "a child is left with a gate that nobody holds",
        "G-LEDGER",
        "documents/fork_gate.py",
        "        GATE._at_fork_reinit()",
        "        pass",
        _FORKS,
    ),
    Fault(
        "a fork lets go of the gate that its own thread holds",
        "G-LEDGER",
        "documents/fork_gate.py",
        "    if this in _FORKING:\n        if GATE",
        "    if this not in _FORKING:\n        if GATE",
        _FORKS,
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
        "an engine that is short of memory writes to the working folder",
        "G-SPILL",
        "data/source.py",
        "        temp_directory=spill_folder(),\n",
        "",
        _SPILL,
    ),
    Fault(
        "others can open what an engine could not hold in memory",
        "G-SPILL",
        "data/spill.py",
        'tempfile.mkdtemp(prefix="shoal-")',
        'os.path.join(tempfile.gettempdir(), f"shoal-{secrets.token_hex(8)}")\n'
        "                os.makedirs(_made)",
        _SPILL,
    ),
    Fault(
        "a child takes away what its parent's engine could not hold",
        "G-SPILL",
        "data/spill.py",
        "    if os.getpid() == maker:",
        "    if maker:",
        _SPILL,
    ),
    Fault(
        "what an engine could not hold in memory stays",
        "G-SPILL",
        "data/spill.py",
        "                atexit.register(_remove, _made, os.getpid())\n",
        "",
        _SPILL,
    ),
    Fault(
        "whatever is there is an earlier output",
        "G-OUTPUTS",
        "files/__init__.py",
        "is_database(target) or not is_own(target):",
        "is_database(target):",
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
        "names in _TRIALS:",
        "set(names) & {name for names in _TRIALS for name in names}:",
        _OWN,
    ),
    Fault(
        "a table of cells with columns of somebody's own among them is an earlier output",
        "G-OUTPUTS",
        "files/own.py",
        "names[-len(_CELLS) :] == _CELLS",
        "set(names) >= set(_CELLS)",
        _OWN,
    ),
    Fault(
        "the first row of a table in JSON speaks for all",
        "G-OUTPUTS",
        "files/own.py",
        "for row in found}",
        "for row in found[:1]}",
        _OWN,
    ),
    Fault(
        "a link that leads nowhere is an earlier output",
        "G-OUTPUTS",
        "files/__init__.py",
        "if not target.exists() or is_database(target) or not is_own(target):",
        "if target.exists() and (is_database(target) or not is_own(target)):",
        _OWN,
    ),
    Fault(
        "a draft lies in the folder that the text of a path tells",
        "G-OUTPUTS",
        "files/__init__.py",
        'draft = target.parent / f".{target.name}.{secrets.token_hex(8)}"',
        'draft = Path(os.path.abspath(target)).with_name(f".{secrets.token_hex(8)}")',
        _DRAFTS,
    ),
    Fault(
        "a draft is writable for all",
        "G-OUTPUTS",
        "files/__init__.py",
        "        return os.open(draft, flags, 0o666), draft",
        "        old = os.umask(0)\n        handle = os.open(draft, flags, 0o666)\n"
        "        os.umask(old)\n        return handle, draft",
        _DRAFTS,
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
