"""The papers of releases: an entry for the public registry, and a page for an officer to sign."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from shoal import checks, files
from shoal.dossiers.case import case_of
from shoal.dossiers.entry import entry_of
from shoal.dossiers.facts import MOST_TIER, missing_for, questions, read_facts, tier_of
from shoal.dossiers.officer import page
from shoal.errors import InputError, MissingPartError
from shoal.files.text_table import Shown, TextTable
from shoal.privacy.ledger import Ledger
from shoal.progress import said


@dataclass(frozen=True)
class Dossier(Shown):
    """What was written, and how complete the entry is.

    Attributes:
        files: What was written, by kind: the entry, the page, and the facts if they were missing.
        tier: The tier of the registry that the entry reaches, 1 to 3; None if not even the first.
        missing: The facts that the next tier needs.
    """

    files: Mapping[str, Path]
    tier: int | None
    missing: tuple[str, ...]

    def _text(self) -> TextTable:
        """Which tier the entry reaches, and what the next one needs."""
        reached = f"the entry reaches tier {self.tier} of {MOST_TIER}"
        if self.tier is None:
            reached = f"the entry reaches none of {MOST_TIER} tiers"
        if self.missing:
            needed = ", ".join(self.missing)
            reached += f"; for tier {(self.tier or 0) + 1} fill in the facts {needed}"
        return TextTable(reached, (), ())


def dossier(
    manifests: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | Ledger,
    facts: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Dossier:
    """Write the papers of releases: `entry.yaml` for the public registry, and `officer.html`.

    The entry has the fields of the OpenDP registry of deployments of differential privacy. The page
    is for a data protection officer: at most two printed pages, with lines to sign. Both are made
    from manifests and the public part of the ledger, and nothing in them is about a single user.
    What only a person knows stands in a file of facts; if there is none, one with the questions is
    written, and the papers say what is not stated yet.

    Source: docs/nightly.md#the-papers.

    Args:
        manifests: One manifest, or several of one ledger.
        output: A folder; it is made if it is missing.
        ledger: The ledger that recorded these releases, or its path.
        facts: The file of facts; by default `facts.yaml` in the folder. One that is there is never
            replaced.
        overwrite: Replace an entry and a page that are there.

    Returns:
        Where the files are, and which tier of the registry the entry reaches.

    Raises:
        InputError: A fact that nobody asks for, or a release that the ledger does not hold.
        DocumentError: Not a manifest, one that does not hold, or there is a file already.
        LedgerError: The ledger cannot be read.
        MissingPartError: PyYAML is not installed.

    Guarantees: G-REFUSE.

    Example:
        >>> import tempfile, pyarrow as pa, shoal
        >>> trips = pa.table({"bus": [*range(400)], "line": [1, 2] * 200, "speed": [30.0] * 400})
        >>> known = {"bounds": (0, 65), "by": "line", "counts": "public"}
        >>> records = shoal.Records(trips, user="bus", value="speed", **known)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     place = f"{folder}/city.ledger"
        ...     book = shoal.Ledger.create(place, epsilon=4, privacy_unit="bus", counts="public")
        ...     release = shoal.plan(records, epsilon=1).release(records, ledger=book, name="May")
        ...     release.write_manifest(f"{folder}/may.json")
        ...     made = shoal.dossier(f"{folder}/may.json", f"{folder}/dossier", ledger=book)
        ...     sorted(each.name for each in made.files.values()), made.tier
        (['entry.yaml', 'facts.yaml', 'officer.html'], None)
    """
    if find_spec("yaml") is None:
        raise MissingPartError(
            "PyYAML, which reads and writes the papers, is not installed",
            'run pip install "shoal[dossier]"',
        )
    folder = Path(checks.path(output, "the output"))
    listed = [manifests] if isinstance(manifests, str | os.PathLike) else [*manifests]
    if not listed:
        raise InputError("there is no manifest", "give one or several")
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    facts_file = folder / "facts.yaml"
    if facts is not None:
        facts_file = Path(checks.path(facts, "the facts"))
    written = {"entry": folder / "entry.yaml", "page": folder / "officer.html"}
    read: dict[str, files.Place | None] = {f"manifest {at}": each for at, each in enumerate(listed)}
    read["ledger"] = book.path
    with said("verifying, writing"):
        told = read_facts(facts_file if facts_file.exists() else None)
        case = case_of(listed, book)
        if case.unit.period is not None and not told["data_source_type"]:
            # A budget in each period is for records that come in.
            told["data_source_type"] = "Dynamic"
        texts = {"entry": entry_of(case, told), "page": page(case, told)}
        # If there is no folder after this, `check_outputs` refuses all that cannot be written.
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
        if facts_file.exists():
            # A file that is read is never replaced.
            read["facts"] = facts_file
        else:
            written["facts"] = facts_file
            texts["facts"] = questions()
        files.check_outputs(written, read, overwrite=overwrite)
        for kind, place in written.items():
            files.write_bytes(place, texts[kind].encode(), read, overwrite=overwrite)
    tier = tier_of(told)
    return Dossier(written, tier, tuple(missing_for((tier or 0) + 1, told)))
