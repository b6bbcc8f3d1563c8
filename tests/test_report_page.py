"""A page about a release: all that is public, no script but the sorting, no file replaced."""

import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import report_page
from shoal.errors import DocumentError, InputError
from shoal.privacy.budget import Budget
from shoal.privacy.ledger import State
from shoal.privacy.unit import Unit

HOSTILE = "<script>alert(1)</script>"
PLACE = "at_which_of_the_many_crossings_in_town"


def _release(folder: Path, *, ledger: bool) -> Path:
    table = pa.table({
        "who": list(range(400)), PLACE: [HOSTILE, "b"] * 200, "speed": [30.0, 50.0] * 200
    })  # fmt: skip
    records = shoal.Records(
        table, user="who", value="speed", bounds=(0, 65), by=PLACE, counts="public"
    )
    book = shoal.Ledger.create(folder / "a.ledger", epsilon=3, privacy_unit="who", counts="public")
    how = {"ledger": book} if ledger else {"noise": shoal.Simulated(1)}
    shoal.plan(records, epsilon="1/3").release(records, **how).write_manifest(folder / "m.json")
    return folder / "m.json"


@pytest.mark.parametrize("ledger", [True, False])
def test_a_page_says_what_was_released(tmp_path: Path, ledger: bool) -> None:
    """Values, epsilon in words and rounded upwards, budget, verdict; names are texts alone."""
    manifest, page = _release(tmp_path, ledger=ledger), tmp_path / "page.html"
    shoal.report(manifest, page, ledger=tmp_path / "a.ledger" if ledger else None)
    text = page.read_text()
    assert text.count("<script>") == text.count("</script>") == 1
    assert "&lt;script&gt;" in text
    assert f"speed by {PLACE}" in text
    for row in shoal.Release.load(manifest).table().to_pylist():
        assert f"<td>{row['value']:.4g}</td>" in text
    # 1/(1 + exp(-1/3)) is 0.5826, and both figures are rounded upwards.
    assert "at most 59%" in text
    assert "epsilon 0.333334" in text
    assert ("<td>epsilon 2.66666</td>" in text) == ledger
    # The verdict beside the ledger is the custodian's: others do not have it.
    assert ("Anybody can run <code>shoal verify m.json</code>, which found" in text) != ledger
    assert ("shoal verify m.json --ledger a.ledger</code>, which found" in text) == ledger
    assert ("nobody is protected" in text) == (not ledger)
    assert "all values of one who" in text
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_a_withdrawn_release_says_so_first(tmp_path: Path) -> None:
    """Above all numbers."""
    manifest = _release(tmp_path, ledger=True)
    shoal.Ledger(tmp_path / "a.ledger").withdraw(number=1, reason=HOSTILE)
    shoal.report(manifest, tmp_path / "page.html", ledger=tmp_path / "a.ledger")
    text = (tmp_path / "page.html").read_text()
    before, after = text.split("Withdrawn numbers must not be used.")
    assert "WITHDRAWN: entry 1 was withdrawn on" in before
    assert "<p>Released with" in after
    assert HOSTILE not in text


def test_numbers_show_the_width_of_their_interval(tmp_path: Path) -> None:
    """Pressures near 1012: four digits would make all ends of intervals equal."""
    table = pa.table({"who": list(range(400)), "p": [1012.0, 1012.5] * 200})
    records = shoal.Records(table, user="who", value="p", bounds=(1000, 1050), counts="public")
    release = shoal.plan(records, epsilon=20).release(records, noise=shoal.Simulated(1))
    [row] = release.table().to_pylist()
    shown = [float(each.replace(",", "")) for each in str(release).split("\n")[-2].split()[-3:]]
    assert shown == pytest.approx([row[each] for each in ("value", "low", "high")], abs=0.02)
    assert row["high"] - row["low"] < 1


def test_a_page_has_the_title_and_the_word_that_were_given(tmp_path: Path) -> None:
    """As texts; the word heads the values. Stars and grey are explained."""
    manifest = _release(tmp_path, ledger=False)
    shoal.report(manifest, tmp_path / "a.html", title="Speed & <b>", label=HOSTILE)
    page = (tmp_path / "a.html").read_text()
    assert page.count("Speed &amp; &lt;b&gt;") == 2
    assert "<th>mean, &lt;script&gt;alert(1)&lt;/script&gt;</th><th>low</th>" in page
    assert "Values in brackets" not in page
    with pytest.raises(InputError, match="title"):
        shoal.report(manifest, tmp_path / "b.html", title=5)  # type: ignore[arg-type]
    rng = np.random.default_rng(5)
    rows = {"who": np.repeat(np.arange(400), 3), "at": rng.integers(0, 15, 1200)}
    table = pa.table({**rows, "v": 50 + rng.normal(0, 5, 1200)})
    records = shoal.Records(table, user="who", value="v", bounds=(0, 100), by="at", counts="public")
    release = shoal.plan(records, epsilon="0.3").release(records, noise=shoal.Simulated(1))
    release.write_manifest(tmp_path / "noise.json")
    shoal.report(tmp_path / "noise.json", tmp_path / "noise.html")
    page = (tmp_path / "noise.html").read_text()
    assert page.count(")</td>") == release.table()["source"].to_pylist().count("common") > 0
    assert "Values in brackets are grey in the picture: not reliable" in page


def test_large_values_have_separators_and_keys_have_none(tmp_path: Path) -> None:
    """Incomes by a key of numbers; the only statistic heads its values."""
    table = pa.table({"who": range(900), "zip": [80001] * 900, "pay": [1_234_567.0] * 900})
    records = shoal.Records(
        table, user="who", value="pay", bounds=(0, 2_468_642), by="zip", counts="public"
    )
    plan = shoal.plan(records, epsilon=20, statistics=["median"])
    release = plan.release(records, noise=shoal.Simulated(1))
    release.write_manifest(tmp_path / "m.json")
    shoal.report(tmp_path / "m.json", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<th>median</th><th>low</th>" in page
    assert re.search(r"<tr><td>80001</td><td>1,2\d\d,\d{3}</td>", page)
    assert page.count("values above 2,468,642 as 2,468,642") == 1
    assert "from 0 to 2,468,642" in page


def test_no_page_replaces_what_it_is_made_of(tmp_path: Path) -> None:
    """Another ending, a file that is there, and something else than a manifest."""
    manifest = _release(tmp_path, ledger=False)
    with pytest.raises(InputError, match=r"\.html"):
        shoal.report(manifest, tmp_path / "m.json", overwrite=True)
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(DocumentError, match="already"):
        shoal.report(manifest, tmp_path / "page.html")
    (tmp_path / "x.json").write_text('{"schema":"another"}')
    with pytest.raises(DocumentError, match="schema"):
        shoal.report(tmp_path / "x.json", tmp_path / "new.html")
    assert not (tmp_path / "new.html").exists()


# A window of its own can be no narrower than 500 pixels.
FRAME = """<iframe src="page.html" width="390" height="844" onload="const page = contentDocument;
const title = page.querySelectorAll('.wide th')[1];
const { scrollWidth, clientWidth } = page.documentElement;
title.click(); title.click();
document.title = [scrollWidth <= clientWidth, page.querySelector('td').textContent]"></iframe>
"""


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs the browser chromium")
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    """Light, dark and on a phone, where nothing is cut: pictures in build/report. A click sorts."""
    folder = Path("build/report").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    shoal.report(_release(tmp_path, ledger=True), folder / "page.html", overwrite=True)
    (folder / "frame.html").write_text(FRAME)
    dark = "--blink-settings=preferredColorScheme=0"
    looks = {"light": "page", "dark": "page", "phone": "frame"}
    for look, page in looks.items():
        how = ["--headless", "--no-sandbox", "--allow-file-access-from-files"]
        how += [f"--user-data-dir={tmp_path}", "--dump-dom", f"--screenshot={folder / look}.png"]
        how += [dark] if look == "dark" else []
        address = (folder / f"{page}.html").as_uri()
        done = subprocess.run(["chromium", *how, address], capture_output=True, text=True)
        assert done.returncode == 0
    assert "<title>true,b</title>" in done.stdout


def test_a_table_of_many_rows_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells with numbers of their own come first, in their order; words say where the rest is."""
    rng = np.random.default_rng(1)
    cell = np.repeat(np.arange(40), [3, 300] * 20)
    values = rng.uniform(10, 50, 40)[cell] + rng.normal(0, 3, len(cell))
    table = pa.table({"who": np.arange(len(cell)), "at": cell, "speed": values})
    records = shoal.Records(
        table, user="who", value="speed", bounds=(0, 65), by="at", counts="public"
    )
    release = shoal.plan(records, epsilon=2).release(records, noise=shoal.Simulated(1))
    release.write_manifest(tmp_path / "m.json")
    monkeypatch.setattr(report_page, "_MOST_ROWS", 15)
    shoal.report(tmp_path / "m.json", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    own = [row["at"] for row in release.table().to_pylist() if row["source"] == "own"]
    assert len(own) == 20
    assert re.findall(r"<tr><td>(\d+)</td>", text) == [str(each) for each in own[:15]]
    assert "The table has 15 of 40 rows, first those without brackets" in text


def test_periods_that_share_a_row_are_never_understated() -> None:
    """Their row has the largest epsilon and the largest delta of any of them."""
    unit = Unit("bus", "public", "day")
    losses = [Budget(Fraction(20 - at), Fraction(at, 1000)) for at in range(8)]
    booked = {f"2026-05-0{at}": each for at, each in enumerate(losses, 1)}
    total = Budget(Fraction(100), Fraction(1, 10))
    state = State(unit, total, total, 0, "", booked=booked, rule="date(at)")
    [row] = [each for each in report_page.losses(state, []) if each[0] == "4 other days"]
    assert row[2] == "epsilon 16, delta 0.007"
