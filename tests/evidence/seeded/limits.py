"""Faults in what keeps a release readable, and the second opinion from going on for ever."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_READABLE = ("tests/release/test_readable.py",)

FAULTS = (
    Fault(
        "releases are drawn without writing their manifest first",
        "G-READABLE",
        "release/carry_out.py",
        "        rehearse(lambda: make(way.blank()), SCHEMA, way.read)\n",
        "",
        _READABLE,
    ),
    Fault(
        "a release is loaded by the class of another kind",
        "G-READABLE",
        "release/release.py",
        'if found["kind"] != cls.kind:',
        'if found["kind"] == cls.kind + cls.kind:',
        ("tests/release/test_one_way.py",),
    ),
    Fault(
        "results that were drawn are not those that are written",
        "G-READABLE",
        "cells/release.py",
        "    results = staticmethod(to_results)",
        "    def results(self, _drawn):\n        return to_results(self.blank())",
        ("tests/release/test_one_way.py",),
    ),
    Fault(
        "a rehearsal does not ask the schema",
        "G-READABLE",
        "release/rehearsal.py",
        'read(documents.parse(documents.canonical_bytes(make()), schema, "manifest"))',
        "read(make())",
        _READABLE,
    ),
    Fault(
        "amounts have more digits than manifests",
        "G-READABLE",
        "checks/amounts.py",
        "MOST_DIGITS = 400\n",
        "MOST_DIGITS = 4000\n",
        _READABLE,
    ),
    Fault(
        "a day of any year is a key",
        "G-READABLE",
        "data/keys.py",
        "    return inside and not (",
        "    return not (",
        _READABLE,
    ),
    Fault(
        "the verifier's search for a quantile has no end",
        "G-FUZZ",
        "verification/trials/spread.py",
        "    for _ in range(_DOUBLINGS):\n",
        "    while True:\n",
        _READABLE,
    ),
    Fault(
        "keys move the cursor of who reads a table",
        "G-FUZZ",
        "errors.py",
        "each if each.isprintable() else ascii(each)[1:-1] for each in text",
        "each for each in text",
        _READABLE,
    ),
    Fault(
        "cell columns may have any name",
        "G-READABLE",
        "data/keys.py",
        "if len(columns) > MOST_COLUMNS or not all(is_name(str(name)) for name in columns):",
        "if len(columns) > MOST_COLUMNS:",
        _READABLE,
    ),
    Fault(
        "local times have a text on the first day",
        "G-READABLE",
        "data/keys.py",
        'away = 1 if getattr(kind, "tz", None) not in {None, "UTC"} else 0',
        "away = 0",
        _READABLE,
    ),
    Fault(
        "slots of time have no text on the last day",
        "G-READABLE",
        "data/keys.py",
        'not in {None, "UTC"}',
        "is not None",
        _READABLE,
    ),
    Fault(
        "plans show keys as they are",
        "G-FUZZ",
        "cells/text.py",
        "printable(labels[cell])",
        "labels[cell]",
        _READABLE,
    ),
    Fault(
        "names in pictures are read as formulas",
        "G-FUZZ",
        "pictures/names.py",
        r'[:most].replace("$", r"\$")',
        "[:most]",
        ("tests/pictures/test_names.py",),
    ),
    Fault(
        "a confidence that nothing is told from 0 by is found out after the charge",
        "G-REFUSE",
        "checks/__init__.py",
        "_LEAST_CONFIDENCE, _MOST_CONFIDENCE = 1e-12",
        "_LEAST_CONFIDENCE, _MOST_CONFIDENCE = 0",
        ("tests/cli/test_bad_input.py",),
    ),
)
