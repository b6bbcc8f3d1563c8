"""`shoal demo`: the main job on real flights, on one screen."""

from collections import Counter
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.cli import options as o
from shoal.cli.output import show
from shoal.errors import InputError
from shoal.progress import working

if TYPE_CHECKING:
    from shoal import Plan, Records, Release

# The plans that are compared: the default, and two of all cells in which every record counts, with
# balanced noise and with the paper's.
_PLANS: dict[str, dict[str, Any]] = {
    "default": {},
    "balanced": {"method": "balanced", "uninformative": "keep"},
    "uniform": {"method": "uniform", "uninformative": "keep"},
}
_BUDGET = "2"
_NAME = "2013"
_UNIT = "tailnum"
_LEDGER = "shoal-demo.ledger"
# No page of the documentation tells anyone to make other files with these names.
_ENDS = {"table": "csv", "manifest": "manifest.json", "plan": "plan.json", "picture": "png"}
_HEAD = """\
Mean speed of the flights out of New York in 2013. An aircraft has up to hundreds of
flights; all its speeds are protected together. The bounds, 0 to 700 mph, and the number of
flights of each aircraft in each cell are public. Each plan below costs epsilon 1 in total.
"""
_ERRORS = """
Errors of the median cell, computed before any speed is read. Typical: the error to expect,
in standard deviations of all speeds, if aircraft are about alike. Certified: a bound in mph
that holds for every data set. Paper charges: the epsilon of the same noise according to
the accounting of Rameshwar and Tandon (arXiv:2405.06261)."""
_NEXT = """
Ledger {ledger}: epsilon {spent} of {budget} is spent. A second run spends nothing.
Tables, pictures, plans and manifests are in {folder}. Look next at
  {folder}/demo-destination.csv: the table, with the cells that are not reliable, too
  shoal show {folder}/demo-destination.manifest.json --confidence 0.8
  shoal ledger show {ledger}
  shoal plan --help: how to plan for your own records"""
DEMO = Path("shoal-demo")


def demo(folder: o.Folder = DEMO, force: o.Force = False) -> None:
    """Plan and release mean speeds of flights out of New York.

    Name a folder that does not exist. If you run the demo again, it spends nothing more.

    Example: shoal demo --folder shoal-demo
    """
    import shoal
    from shoal.files import check_outputs
    from shoal.privacy.budget import show as shown

    ends = dict(_ENDS)
    if find_spec("matplotlib") is None:
        del ends["picture"]
    else:
        from shoal.pictures import check_picture

        # A Matplotlib that cannot be imported is refused before any work.
        check_picture("demo.png")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{str(folder)!r} exists and is no folder", "name a new folder") from None
    ledger = folder / _LEDGER
    # Beside the demo's ledger the files are those of an earlier run, and may be replaced.
    force = force or ledger.exists()
    with as_file(files("shoal") / "datasets" / "flights_2013.parquet") as data:
        jobs = jobs_of(data)
        names = [f"{slug}.{end}" for slug in jobs for end in ends.values()]
        check_outputs({name: folder / name for name in names}, {}, overwrite=force)
        show(_HEAD)
        show(_line("cells", "plan", "typical error", "certified", "paper charges"))
        plans = {slug: _compare(job) for slug, job in jobs.items()}
        show(_ERRORS)
        for slug, job in jobs.items():
            _about(plans[slug], job.title)
        show("")
        if not ledger.exists():
            shoal.Ledger.create(ledger, epsilon=_BUDGET, privacy_unit=_UNIT, counts="public")
        for slug, job in jobs.items():
            places = {kind: folder / f"{slug}.{end}" for kind, end in ends.items()}
            _release(plans[slug], job, ledger, places, force=force)
    book = shoal.Ledger(ledger)
    spent, budget = (shown(each.epsilon) for each in (book.spent, book.budget))
    show(_NEXT.format(ledger=ledger, folder=folder, spent=spent, budget=budget))


class Job(NamedTuple):
    """The title, the records and the rules of a release of the demo."""

    title: str
    records: "Records"
    rules: dict[str, Any]


def _release(plan: "Plan", job: Job, ledger: Path, places: dict[str, Path], *, force: bool) -> None:
    """Release by a plan, write all files, verify the manifest, and show what came out."""
    import shoal

    with working(f"releasing {job.title}"):
        release = plan.release(job.records, ledger=ledger, name=_NAME)
        release.write(places["table"], overwrite=force)
        release.write_manifest(places["manifest"], overwrite=force)
        plan.save(places["plan"], overwrite=force)
        # A picture takes its time, and is the same again.
        if "picture" in places and not (force and places["picture"].exists()):
            shoal.picture(release, places["picture"])
        holds = shoal.verify(places["manifest"]).holds
    _report(release, job.title, holds=holds)


def jobs_of(data: Path) -> dict[str, Job]:
    """Return the releases of the demo, by how the names of their files begin."""
    import shoal

    def records(cell: list[Any]) -> "Records":
        return shoal.Records(
            data,
            user=_UNIT,
            value="speed",
            bounds=(0, 700),
            by=cell,
            missing="public",
            counts="public",
        )

    hours = records(["origin", shoal.hour_of_day("time_hour")])
    return {
        "demo-destination": Job("by destination", records(["dest"]), {}),
        "demo-origin-hour": Job("by origin and hour (UTC)", hours, {"min_records": 200}),
    }


def _compare(job: Job) -> "Plan":
    """Show the errors of three plans of the records, and return the default one."""
    import shoal

    with working(f"planning {job.title}"):
        counts = job.records.counts()
        source = job.records.describe()
        known: dict[str, Any] = {"bounds": (0, 700), "epsilon": 1, "source": source, **job.rules}
        plans = {name: shoal.plan(counts, **wanted, **known) for name, wanted in _PLANS.items()}
        typical = {name: plan.typical_error() for name, plan in plans.items()}
    for name, plan in plans.items():
        cells = f"{len(plan.planned)} {job.title}" if name == "default" else ""
        errors = [f"{_middle(typical[name]):.2f}", "-", "-"]
        if plan.certified:
            errors[1:] = [f"{_middle(plan.worst_case_error):,.1f}", f"{plan.paper_epsilon:.3g}"]
        show(_line(cells, name, *errors))
    return plans["default"]


def _middle(numbers: Any) -> float:
    """The median, the upper one of two."""
    return float(sorted(numbers.tolist())[len(numbers) // 2])


def _about(plan: "Plan", title: str) -> None:
    """Show how many cells will be reliable, and the plan's warnings."""
    from shoal.cells.shown.plan_text import verdict

    for sentence in (verdict(plan), *plan.warnings()):
        text = f"{title}: {sentence}"
        show(fill(text, 96, initial_indent="  ", subsequent_indent="    "))


def _report(release: "Release", title: str, *, holds: bool) -> None:
    """Show how many released cells are reliable, and the three with the least noise."""
    from shoal.data import keys

    how = "from the ledger, at no cost" if release.from_ledger else "drawn now and recorded"
    rows = release.table().to_pylist()
    status = Counter(row["status"] for row in rows)
    others = [f"{name} ({number})" for name, number in status.items() if name != "reliable"]
    reliable = []
    for label, row in zip(keys.labels(release.published.basis.cells), rows, strict=True):
        if row["status"] == "reliable":
            text = f"{label} {row['value']:.0f} mph [{row['low']:.0f}, {row['high']:.0f}]"
            reliable.append((row["noise_scale"], text))
    show(f"Released {title}: {how}; manifest {'verified' if holds else 'NOT verified'}")
    show(f"  {status['reliable']} cells reliable; not reliable: {', '.join(others) or 'none'}")
    show("  " + "   ".join(text for _, text in sorted(reliable)[:3]))


def _line(*parts: str) -> str:
    """One line of the table of plans."""
    first, second, *rest = parts
    return f"{first:<29}{second:<10}" + "".join(f"{part:>14}" for part in rest)
