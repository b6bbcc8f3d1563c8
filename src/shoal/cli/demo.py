"""`shoal demo`: the main job on real flights, on one screen."""

from collections import Counter
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import Force, show, working

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shoal import Ledger, Plan, Records, Release
    from shoal.errors import ShoalError

# The default, every record with balanced noise, and the paper's noise; of all cells.
_PLANS: dict[str, dict[str, Any]] = {
    "default": {},
    "balanced": {"method": "balanced", "uninformative": "keep"},
    "uniform": {"method": "uniform", "uninformative": "keep"},
}
_BUDGET = "2"
_NAME = "2013"
_UNIT = "tailnum"
# No page tells anyone to make files of these names.
_LEDGER = "shoal-demo.ledger"
_SLUGS = ("demo-destination", "demo-origin-hour")


@dataclass(frozen=True)
class _Job:
    title: str
    slug: str
    records: "Records"
    rules: dict[str, Any]


def demo(
    folder: Annotated[
        Path, typer.Option(help="Where plans, results, pictures, manifests and the ledger go.")
    ] = Path("shoal-demo"),
    force: Force = False,
) -> None:
    """Plan and release mean speeds of flights out of New York; run it twice.

    It spends in a ledger of its own, and replaces files of its own alone.

    Example: shoal demo --folder shoal-demo
    """
    drawing = find_spec("matplotlib") is not None
    if drawing:  # one that cannot be imported is refused before any work
        from shoal.pictures import check_picture

        check_picture("demo.png")
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / _LEDGER
    book = _own_ledger(place)
    if book is None:
        _check_free(_SLUGS, folder, force=force)
    with as_file(files("shoal") / "datasets" / "flights_2013.parquet") as data:
        jobs = _jobs(data)
        show(
            "Mean speed of the flights out of New York in 2013. One aircraft flew up to hundreds of"
            "\ntimes; all its speeds are protected together. Public: bounds 0 to 700 mph, and which"
            "\naircraft flew how often where. Every plan below costs epsilon 1 in total.\n"
        )
        show(_line("cells", "plan", "typical error", "certified", "paper charges"))
        plans = [_compare(job) for job in jobs]
        show(
            "\nErrors of the median cell, before any speed is read. Typical: what is to be expected"
            "\nif aircraft are about alike, in standard deviations of all speeds. Certified: in mph"
            "\nfor every possible data set. Paper charges: the epsilon of the same noise by the"
            "\naccounting of Rameshwar and Tandon (arXiv:2405.06261)."
        )
        for plan, job in zip(plans, jobs, strict=True):
            _about(plan, job)
        show("")
        book = _ledger(place, book, plans, jobs, force=force)
        for plan, job in zip(plans, jobs, strict=True):
            _release(plan, job, book, folder, drawing=drawing, force=force)
    _close(book, folder)


def _own_ledger(place: Path) -> "Ledger | None":
    """The ledger of an earlier run, as far as can be told before there is a plan."""
    import os

    import shoal
    from shoal.privacy.budget import Budget

    if not os.path.lexists(place):
        return None
    book = shoal.Ledger(place)
    if (book.budget, book.unit) != (Budget.of(_BUDGET), _UNIT):
        raise _foreign(place)
    if any((entry.kind, entry.name) != ("cells", _NAME) for entry in book.entries()):
        raise _foreign(place)
    return book


def _ledger(
    place: Path, book: "Ledger | None", plans: "list[Plan]", jobs: list[_Job], *, force: bool
) -> "Ledger":
    """The demo's ledger, which holds the demo's questions alone; nothing is spent in another."""
    import shoal
    from shoal.cells.plan_file import question_of

    if book is None:
        return shoal.Ledger.create(place, epsilon=_BUDGET, unit=_UNIT)
    asked = {
        question_of(plan, job.records.describe(), _UNIT).key: job.slug
        for plan, job in zip(plans, jobs, strict=True)
    }
    found = {entry.question for entry in book.entries()}
    if not found <= asked.keys():
        raise _foreign(place)
    # What it has not released yet it has not written either.
    missing = tuple(slug for question, slug in asked.items() if question not in found)
    _check_free(missing, place.parent, force=force)
    return book


def _check_free(slugs: tuple[str, ...], folder: Path, *, force: bool) -> None:
    """Refuse to replace what this demo did not make."""
    from shoal.files import check_outputs

    places = {place.name: place for slug in slugs for place in _places(slug, folder)}
    check_outputs(places, {"ledger": folder / _LEDGER}, overwrite=force)


def _foreign(place: Path) -> "ShoalError":
    from shoal.errors import LedgerError

    return LedgerError(
        f"the ledger {str(place)!r} is not of this demo alone",
        "a folder without it, or with the ledger that this demo made: it spends in no other",
        "give another folder (--folder)",
    )


def _jobs(data: Path) -> list[_Job]:
    import shoal

    def records(cell: list[Any]) -> "Records":
        return shoal.Records(
            data, user=_UNIT, value="speed", bounds=(0, 700), by=cell, missing="public"
        )

    hour = shoal.hour_of_day("time_hour")
    return [
        _Job("by destination", _SLUGS[0], records(["dest"]), {}),
        _Job(
            "by origin and hour (UTC)", _SLUGS[1], records(["origin", hour]), {"min_records": 200}
        ),
    ]


def _compare(job: _Job) -> "Plan":
    import shoal

    with working(f"planning {job.title}"):
        occupancy = job.records.counts()
        plans = {
            name: shoal.plan(
                occupancy,
                bounds=(0, 700),
                epsilon=1,
                source=job.records.describe(),
                **wanted,
                **job.rules,
            )
            for name, wanted in _PLANS.items()
        }
        likely = {name: plan.typical_error() for name, plan in plans.items()}
    for name, plan in plans.items():
        show(
            _line(
                f"{len(plan.released)} {job.title}" if name == "default" else "",
                name,
                f"{_middle(likely[name]):.2f}",
                f"{_middle(plan.worst_case_error):,.1f}" if plan.certified else "-",
                f"{plan.paper_epsilon:.3g}" if plan.certified else "-",
            )
        )
    return plans["default"]


def _middle(numbers: "NDArray[np.float64]") -> float:
    return float(sorted(numbers.tolist())[len(numbers) // 2])


def _about(plan: "Plan", job: _Job) -> None:
    from shoal.cells.plan_warnings import plan_warnings
    from shoal.cells.text import forecast

    for sentence in (forecast(plan), *plan_warnings(plan)):
        text = f"{job.title}: {sentence}"
        show(fill(text, 96, initial_indent="  ", subsequent_indent="    "))


def _release(
    plan: "Plan", job: _Job, book: "Ledger", folder: Path, *, drawing: bool, force: bool
) -> None:
    import shoal

    with working(f"releasing {job.title}"):
        release = plan.release(job.records, ledger=book, name=_NAME)
        places = _places(job.slug, folder)
        with TemporaryDirectory() as made:
            drafts = [Path(made) / place.name for place in places]
            for write, draft in zip(
                (release.write, release.write_manifest, plan.save), drafts, strict=True
            ):
                write(draft)
            for draft, place in zip(drafts, places, strict=True):
                _keep(place, draft.read_bytes(), force=force)
        verdict = shoal.verify(places[1])
        drawn = folder / f"{job.slug}.png"
        if drawing and (force or not drawn.exists()):
            shoal.picture(release, drawn, overwrite=force)
    how = "from the ledger, at no cost" if release.from_ledger else "drawn now and recorded"
    verified = "verified" if verdict.holds else "NOT verified"
    show(f"Released {job.title}: {how}; manifest {verified}")
    show(f"  {_statuses(release)}")
    show("  " + "   ".join(_best(release)))


def _keep(place: Path, data: bytes, *, force: bool) -> None:
    """Write a file that is not there yet, or not like this: what somebody changed is kept."""
    from shoal.files import write_bytes

    if not place.is_file() or place.read_bytes() != data:
        write_bytes(place, data, overwrite=force)


def _places(slug: str, folder: Path) -> tuple[Path, Path, Path]:
    """Where table, manifest and plan go."""
    table, manifest, planned = (
        folder / f"{slug}.{end}" for end in ("csv", "manifest.json", "plan.json")
    )
    return table, manifest, planned


def _statuses(release: "Release") -> str:
    status = Counter(release.table()["status"].to_pylist())
    others = [f"{number} {name}" for name, number in status.items() if name != "released"]
    return f"{status['released']} cells told; not told: {', '.join(others) or 'none'}"


def _best(release: "Release") -> list[str]:
    rows = zip(release.plan.counts.labels, release.table().to_pylist(), strict=True)
    told = [each for each in rows if each[1]["status"] == "released"]
    return [
        f"{label} {row['value']:.0f} mph [{row['low']:.0f}, {row['high']:.0f}]"
        for label, row in sorted(told, key=lambda each: each[1]["noise_scale"])[:3]
    ]


def _close(book: "Ledger", folder: Path) -> None:
    from shoal.privacy.budget import show as shown

    show(
        f"\nLedger {folder / _LEDGER}: spent epsilon {shown(book.spent.epsilon)} of "
        f"{shown(book.budget.epsilon)}.\nTables, pictures, plans and manifests are in {folder}; "
        "run it again: same numbers, nothing spent."
    )


def _line(*parts: str) -> str:
    first, second, *rest = parts
    return f"{first:<29}{second:<10}" + "".join(f"{part:>14}" for part in rest)
