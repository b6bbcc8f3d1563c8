"""Plans as files: the records that one is for, what fails after a charge, and the monthly job."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal import files
from shoal.cells.comparisons.advice import check_worth
from shoal.cells.public_counts import PublicPlan
from shoal.data import keys
from shoal.data.records import Records
from shoal.errors import DocumentError, InputError, ShoalError
from shoal.files.text_table import counted
from shoal.planning import load, plan
from shoal.presence import plan as presence
from shoal.privacy.ledger import Entry, Ledger, check_in_force
from shoal.progress import Progress
from shoal.release import plan as plans
from shoal.release.release import CellRelease
from shoal.verification.rederive import FAMILIES

if TYPE_CHECKING:
    from shoal.verification.verdict import Verdict


# Parts of a description of records that not all have.
_OPTIONAL = {"period", "times", "missing", "records_per_user"}


class Publication(NamedTuple):
    """A release, its verdict, cells unlike before, gaps in time, files, and what is left."""

    release: CellRelease[Any, Any]
    verdict: "Verdict"
    new_cells: int
    gone_cells: int
    gaps: tuple[str, ...]
    files: dict[str, Path]
    left: str

    @property
    def changes(self) -> str:
        """How cells differ from those of the earlier release."""
        if not self.new_cells and not self.gone_cells:
            return "the cells are the same"
        return f"{counted(self.new_cells, 'new cell')}, {self.gone_cells:,} gone"


def publish(
    data: files.Place,
    like: files.Place,
    *,
    ledger: files.Place,
    name: str,
    output: files.Place = ".",
    privacy_unit: str = "",
    periods: Any = None,
    overwrite: bool = False,
    anyway: bool = False,
    progress: Progress | None = None,
) -> Publication:
    """Asks new records what an earlier release or plan of cells asked, releases, writes, verifies.

    `like` is its manifest, or a plan that was made of a file; the plan is made anew from the counts
    of these records. Budget and names are as in `Plan.release`: the same records and name again
    deliver what is recorded, cost nothing, and write the same files again. Files go into a folder
    that is there, or their names begin with `output`. The privacy unit is that of the manifest
    unless given, and of private counts the `periods` of these records are given. What likely makes
    no cell reliable is refused unless `anyway`; `progress` shows how far advice is.

    Raises:
        ShoalError: As `shoal.plan`, `Plan.release` and `shoal.verify`, or files that are there.

    Guarantees: G-LOSS, G-LEDGER, G-REFUSE.
    """
    from shoal.pictures import picture
    from shoal.report_page import report
    from shoal.verification.verify import verify

    old, unit = _earlier(like)
    places = _places(Path(output), name)
    read = {"DATA": data, "--like": like, "--ledger": ledger}
    overwrite = overwrite or _is_ours(places["manifest"], ledger, name)
    files.check_outputs(places, read, overwrite=overwrite)
    records = records_of(data, old.request, old.source)
    options: dict[str, Any] = {
        "ledger": os.fspath(ledger),
        "name": name,
        "privacy_unit": privacy_unit or unit,
    }
    done: CellRelease[Any, Any]
    cells = old.cells
    gaps: tuple[str, ...] = ()
    charged_periods = None
    if isinstance(old.plan, presence.Plan):
        # The cells are public, and nothing of new records changes the plan.
        same = old.plan.of_periods(periods, records.period)
        if old.release is not None and same.request.like_last:
            same = same.like(old.release)
        done = same.release(records, **options)
        cells = set(keys.labels(done.cells))
        charged_periods = same.request.periods or None
    else:
        made: Any = plan(records, **old.request.model_dump(exclude={"bounds", "tick_bits"}))
        _check_name(ledger, made, records.describe(), name)
        before = None if anyway else partial(check_worth, progress=progress)
        done = made.release(records, **options, before=before)
        cells = set(keys.labels(made.shown_cells))
        gaps = made.counts.gaps
        charged_periods = None if made.periods is None else made.periods.names
    writers: dict[str, Callable[..., None]] = {
        "table": done.write,
        "manifest": done.write_manifest,
        "picture": partial(picture, done),
    }
    with delivering(done.entry, ledger):
        if "picture" in places:
            writers["report"] = partial(report, places["manifest"], ledger=ledger)
        write_all([(writers[kind], place) for kind, place in places.items()], overwrite=overwrite)
        verdict = verify(places["manifest"], ledger=ledger)
    new = len(cells - old.cells)
    gone = len(old.cells - cells)
    left = "\n".join(Ledger(os.fspath(ledger)).state().balance(charged_periods))
    return Publication(done, verdict, new, gone, gaps, places, left)


def _is_ours(manifest: Path, ledger: files.Place, name: str) -> bool:
    """Whether a file is the manifest of what the ledger holds under this name."""
    book = Ledger(os.fspath(ledger))
    with suppress(ShoalError):
        found: Any = load(manifest)
        sha256 = found.manifest["record_sha256"]
        return any((each.name, each.document_sha256) == (name, sha256) for each in book.entries())
    return False


def _check_name(
    ledger: files.Place, made: PublicPlan[Any], described: Mapping[str, Any], name: str
) -> None:
    """Refuse a name under which the same was released of other counts: two charges for one name."""
    book = Ledger(os.fspath(ledger))
    for each in book.entries():
        if each.name != name or each.kind != made.kind:
            continue
        known = book.find(each.question, name, withdrawn=True)
        if known is None:
            continue
        old = FAMILIES[made.kind](known.document, known)
        same_question = (old.plan.request, old.record["records"]) == (made.request, described)
        if same_question and not made.counts.same_as(old.plan.counts):
            check_in_force(known)
            raise InputError(
                f"the ledger holds a release named {name!r} of records with other counts",
                f"get it with `shoal show --ledger {ledger} --name {name}`, or give a correction a "
                "name of its own, which is charged again",
            )


def records_of(data: files.Place, request: Any, source: Mapping[str, Any] | None) -> Records:
    """Returns the records in a file that a plan of cells, or of private counts, is for."""
    if source is None or set(source) - _OPTIONAL != {"user", "value", "cell"}:
        raise no_source()
    # With private counts rows that lack something are always left out, so that nothing is said.
    is_public = "missing" in source
    return Records(
        data,
        user=source["user"],
        value=source["value"],
        bounds=None if source["value"] is None else request.bounds,
        tick_bits=request.tick_bits,
        by=source["cell"],
        missing=source.get("missing", "refuse"),
        counts="public" if is_public else "private",
        period=source.get("period"),
        times=source.get("times"),
    ).at_most(source.get("records_per_user"))


def no_source() -> InputError:
    """Returns the error of a plan that does not say for which columns it is."""
    return InputError(
        "the plan does not name the columns of a file",
        "make it from a file with `shoal plan`, `shoal trial` or `shoal mean plan`, or call "
        "plan.release in Python",
    )


@contextmanager
def delivering(entry: Entry | None, ledger: object) -> Iterator[None]:
    """Makes errors in the block say that the release is recorded, and how to have it again."""
    try:
        yield
    except Exception as error:
        # The text of another error could hold anything: only its kind is shown.
        got = f"an unexpected {type(error).__name__} was raised after the charge"
        if isinstance(error, ShoalError):
            got = error.got
        elif isinstance(error, OSError):
            got = f"the output cannot be written ({error.strerror or type(error).__name__})"
        raise DocumentError(
            got,
            f"the release is recorded as entry {entry and entry.number} of {ledger}: free space or "
            "choose another place, and repeat it with --force under the same name, at no cost",
        ) from None


def write_all(writers: list[tuple[Callable[..., None], Path | None]], *, overwrite: bool) -> None:
    """Writes all files that can be written, and only then fails."""
    failures = []
    for write, place in writers:
        try:
            if place is not None:
                write(place, overwrite=overwrite)
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


class _Earlier(NamedTuple):
    """An earlier request, its cells and columns; with private counts also its plan, and itself."""

    request: Any
    cells: set[str]
    source: Mapping[str, Any] | None
    plan: presence.Plan | None = None
    release: presence.Release | None = None


def _earlier(like: files.Place) -> tuple[_Earlier, str]:
    """Returns what a manifest, a record or a plan asked, and its privacy unit if it has one."""
    found: Any = load(like)
    unit = ""
    release = found if isinstance(found, presence.Release) else None
    if not isinstance(found, plans.Plan):
        unit = found.said.guarantee.unit.name
        if found.plan_model.family == "cells":
            # A manifest of public counts has no plan, but what was asked.
            cells = set(keys.labels(found.cells))
            request = found.published.request
            return _Earlier(request, cells, found.said.records.to_document()), unit
        found = found.plan
    if isinstance(found, presence.Plan):
        cells = set(keys.labels(found.request.keys if release is None else release.cells))
        return _Earlier(found.request, cells, found.source, found, release), unit
    if isinstance(found, PublicPlan):
        cells = set(keys.labels(found.shown_cells))
        return _Earlier(found.request, cells, found.source), unit
    raise InputError(
        f"{str(like)!r} is of a {found.family}, and cells are published",
        "give a manifest or a plan of cells",
    )


def _places(output: Path, name: str) -> dict[str, Path]:
    """Returns where table and manifest go, and picture and report if they can be drawn."""
    # Of a name only what all file systems take is kept.
    file_name = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "release"
    stem = output / file_name if output.is_dir() else output
    ends = {"table": "table.csv", "manifest": "manifest.json"}
    if find_spec("matplotlib") is not None:
        ends |= {"picture": "picture.png", "report": "report.html"}
    return {kind: stem.with_name(f"{stem.name}-{end}") for kind, end in ends.items()}
