"""The papers: the registry's fields and no others, a page without a script, nothing of a user."""

import re
import subprocess
from datetime import date
from fractions import Fraction
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

import shoal
from shoal import dossiers, trials, unbiased
from shoal.documents import canonical_bytes
from shoal.dossiers.others import OTHERS
from shoal.errors import DocumentError, InputError, MissingPartError, ShoalError

HOSTILE = "<script>alert(1)</script>"
# The registry's form of July 2026: fields, and the values of those that are chosen from a list.
FORM: dict[str, Any] = {
    "url_slug": str,
    "status": ["Draft"],
    "tier": [1, 2, 3, None],
    "deployment": {
        "basic": {
            "name": str,
            "data_curators": list,
            "intended_use": str,
            "data_product_type": ["Summary statistics", "Dataset"],
            "data_product_region": str,
            "description": str,
            "publication_date": str,
            "data_product_sector": str,
        },
        "dp_variant": {
            "variant_name": ["Pure DP", "Approximate DP"],
            "data_domain": str,
            "unprotected_quantities": str,
        },
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "privacy_parameters": dict,
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": ["Central"],
            "actors": str,
            "release_type": ["One release", "Many releases"],
            "release_type_details": str,
            "data_source_type": ["Static", "Dynamic", ""],
            "access_type": ["Non-interactive"],
            "access_type_details": str,
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str,
            "mechanisms": str,
            "justification": str,
        },
        "administrative": {"sources": str, "notes": str, "registry_authors": list},
    },
}
FACTS: dict[str, Any] = {
    "name": f"Speed of buses {HOSTILE}",
    "curators": ["City of Bern"],
    "intended_use": "Timetables.",
    "region": "NO",
    "sector": "Government",
    "description": "Mean speed by line.",
    "publication_date": "2026-06-01",
    "data_source_type": "Dynamic",
    "preprocessing": "Bounds are the legal limit.",
    "justification": "Checked by the statistics office.",
    "sources": ["https://example.org/a", "https://example.org/b"],
    "notes": "007",
    "registry_authors": ["A. Author"],
    "purpose": "Statistics.",
    "legal_basis": "Statistics act.",
    "unit": "One bus.",
    "custody": "In the safe.",
}


def fits(entry: Any, form: Any) -> None:
    """An entry has the fields of a form in their order, with values that it allows."""
    if isinstance(form, dict):
        assert [*entry] == [*form]
        for name, each in form.items():
            fits(entry[name], each)
    elif isinstance(form, list):
        assert entry in form
    else:
        assert type(entry) is form


def released(folder: Path, epsilon: Any = 1, delta: Any = 0, *names: str) -> list[Path]:
    """Manifests of releases of cells, recorded in one ledger."""
    who = [f"somebody-{each}" for each in range(400)]
    table = pa.table({"bus": who, "line": [HOSTILE, "b"] * 200, "speed": [30.0, 50.0] * 200})
    known: dict[str, Any] = {"bounds": (0, 65), "by": "line", "counts": "public"}
    records = shoal.Records(table, user="bus", value="speed", **known)
    place = folder / "city.ledger"
    facts: dict[str, Any] = {"privacy_unit": "bus", "counts": "public"}
    book = shoal.Ledger.create(place, epsilon=4, delta="0.001" if delta else 0, **facts)
    plan = shoal.plan(records, epsilon=epsilon, delta=delta)
    found = []
    for name in names or ("May",):
        release = plan.release(records, ledger=book, name=name)
        release.write_manifest(folder / f"{name}.json")
        found.append(folder / f"{name}.json")
    return found


def papers(manifests: Any, folder: Path, **facts: Any) -> tuple[Any, str, dossiers.Dossier]:
    """The entry, the page, and what is said of them."""
    known = folder / "known.yaml"
    known.write_text(yaml.safe_dump(facts))
    output = folder / "papers"
    book = folder / "city.ledger"
    made = shoal.dossier(manifests, output, ledger=book, facts=known, overwrite=True)
    text = (output / "entry.yaml").read_text()
    entry = yaml.safe_load(text)
    # The registry wants no text that is folded.
    assert not re.search(r": [>|]", text)
    fits(entry, FORM)
    assert entry["tier"] == made.tier
    return entry, (output / "officer.html").read_text(), made


def test_an_entry_has_what_shoal_knows_and_what_a_person_says(tmp_path: Path) -> None:
    """All facts make tier 3; a loss of two releases is the ledger's budget, with a delta."""
    [one] = released(tmp_path, "1/3")
    entry, page, made = papers(one, tmp_path, **FACTS)
    assert (str(made), made.missing) == ("the entry reaches tier 3 of 3", ())
    assert entry["url_slug"] == "speed-of-buses-script-alert-1-script"
    deployment = entry["deployment"]
    basic = deployment["basic"]
    # As they were written: no country is false, no number loses its zeros, no date is another type.
    assert (basic["data_product_region"], basic["data_curators"]) == ("NO", ["City of Bern"])
    assert basic["publication_date"] == "2026-06-01"
    assert deployment["administrative"]["notes"].startswith("007. SHA-256 of records: May ")
    loss = deployment["privacy_loss"]
    assert loss["privacy_unit"] == "bus"
    [epsilon] = loss["privacy_parameters"].values()
    spent = shoal.Ledger(tmp_path / "city.ledger").spent.epsilon
    assert 0 <= Fraction(epsilon) - spent < Fraction(1, 10**15)
    assert "What one bus is: One bus. In neighbouring" in loss["privacy_unit_details"]
    assert "at most epsilon 4, for each bus" in loss["privacy_parameters_details"]
    model = deployment["deployment_model"]
    assert (model["release_type"], model["data_source_type"]) == ("One release", "Dynamic")
    said = "all releases so far: epsilon 0.333334, epsilon 3.66666 is left;"
    assert said in model["release_type_details"]
    for said in ("values of speed from 0 to 65", "discrete laplace noise", "OpenDP"):
        assert said in str(deployment)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>0.333334</b>" in page
    assert "<td>59%</td>" in page
    assert "2026-06-01 (before these releases" in page or date.today() < date(2026, 6, 2)
    for fact in ("In the safe.", "Bounds are the legal limit.", "Checked by the statistics"):
        assert fact in page


def test_several_releases_lose_what_the_ledger_allows(tmp_path: Path) -> None:
    """The budget is the deployment's loss, as any release may follow."""
    both = released(tmp_path, 1, "1e-9", "May", "June")
    entry, page, _ = papers(both, tmp_path)
    deployment = entry["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 4.0, "delta": 0.001}
    assert deployment["deployment_model"]["release_type"] == "Many releases"
    assert "(May to June)" in deployment["deployment_model"]["release_type_details"]
    assert "<b>4 (0.001)</b>" in page
    assert "(not stated yet: the fact purpose)" in page
    epsilons = [float(each) for each in re.findall(r"<tr><td>(?:<b>)?([\d.]+)[ <]", page)]
    assert epsilons[: len(OTHERS) + 1] == sorted([4.0, *(each.epsilon for each in OTHERS)])


@pytest.mark.parametrize(
    ("without", "tier"), [("justification", 2), ("data_source_type", 1), ("registry_authors", None)]
)
def test_a_tier_needs_its_fields(tmp_path: Path, without: str, tier: int | None) -> None:
    """And those of lower tiers; what the next one needs is named."""
    [one] = released(tmp_path)
    entry, _, made = papers(one, tmp_path, **{**FACTS, without: ""})
    assert (entry["tier"], made.missing) == (tier, (without,))
    assert f"for tier {(tier or 0) + 1} fill in the facts {without}" in str(made)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nam: a", r"no option 'nam' \(did you mean 'name'\?\); allowed: name, curators"),
        ("name: a\nname: b", "the fact 'name' is twice in "),
        ("name: a\nname b", "is no YAML in line "),
        ("- name", "is no list of facts"),
        ("name: {a: b}", "the fact 'name' in .* is neither a text nor a list of texts"),
        ("name: [a, b]", "the fact 'name' in .* is a list"),
        ("sources: [[a]]", "the fact 'sources' in .* is neither a text nor a list"),
        ("publication_date: 2026-13-01", "publication_date in .* is '2026-13-01'"),
        ("data_source_type: static", "data_source_type in .* is 'static'"),
        ("custody: " + "a" * 301, "the fact 'custody' in .* is longer than 300 characters"),
    ],
)
def test_wrong_facts_are_refused(tmp_path: Path, text: str, said: str) -> None:
    """File and fact are named, and nothing is written."""
    [one] = released(tmp_path)
    known = tmp_path / "known.yaml"
    known.write_text(text)
    with pytest.raises(ShoalError, match=said) as caught:
        shoal.dossier(one, tmp_path / "papers", ledger=tmp_path / "city.ledger", facts=known)
    assert "known.yaml" in str(caught.value)
    assert not (tmp_path / "papers").exists()
    assert known.read_text() == text


def test_questions_are_asked_once(tmp_path: Path) -> None:
    """Their file can be read as it is; nothing that is there is replaced unless forced."""
    [one] = released(tmp_path)
    book = tmp_path / "city.ledger"
    output = tmp_path / "papers"
    assert [*shoal.dossier([one], output, ledger=book).files] == ["entry", "page", "facts"]
    asked = output / "facts.yaml"
    assert [*yaml.safe_load(asked.read_text())] == [*FACTS]
    asked.write_text(asked.read_text().replace("region: ''", "region: 'Bern'"))
    before = {each: each.read_bytes() for each in output.iterdir()}
    with pytest.raises(DocumentError, match="exists already"):
        shoal.dossier(one, output, ledger=book)
    assert before == {each: each.read_bytes() for each in output.iterdir()}
    assert [*shoal.dossier(one, output, ledger=book, overwrite=True).files] == ["entry", "page"]
    assert asked.read_bytes() == before[asked]
    assert "data_product_region: Bern" in (output / "entry.yaml").read_text()


def test_other_ledgers_and_false_manifests_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As is a folder without its parent, or Python without PyYAML."""
    [one] = released(tmp_path)
    facts: dict[str, Any] = {"epsilon": 1, "privacy_unit": "bus", "counts": "public"}
    other = shoal.Ledger.create(tmp_path / "other.ledger", **facts)
    with pytest.raises(InputError, match=r"other.ledger' did not record the release in .*May.json"):
        shoal.dossier(one, tmp_path / "papers", ledger=other)
    book = tmp_path / "city.ledger"
    false = shoal.Release.load(one).manifest
    false["results"]["value"][0] += 1
    (tmp_path / "false.json").write_bytes(canonical_bytes(false))
    with pytest.raises(DocumentError, match=r"false.json' does not hold: the entry value"):
        shoal.dossier([one, tmp_path / "false.json"], tmp_path / "papers", ledger=book)
    with pytest.raises(DocumentError, match="no folder"):
        shoal.dossier(one, tmp_path / "a" / "b", ledger=book)
    monkeypatch.setattr(dossiers, "find_spec", lambda name: None)
    with pytest.raises(MissingPartError, match=r"shoal\[dossier\]"):
        shoal.dossier(one, tmp_path / "papers", ledger=book)
    assert not (tmp_path / "papers").exists()


def test_papers_of_all_families_name_nobody(tmp_path: Path) -> None:
    """Neither a unit nor a row, in any of the three files."""
    rng = np.random.default_rng(1)
    arm = np.arange(60) % 2
    names = [f"somebody-{at}" for at in range(60)]
    study = trials.Experiment(arm, None, {"age": np.arange(60) // 2 % 5}, unit=names)
    bought = rng.random(60) < 0.4
    facts: dict[str, Any] = {"epsilon": 20, "privacy_unit": "person", "counts": "public"}
    book = shoal.Ledger.create(tmp_path / "city.ledger", **facts)
    domain = trials.Domain.binary()
    named = {"ledger": book, "privacy_unit": "person", "outcome_name": "bought"}
    plans = [study.table(domain, 4), study.ask().effect().plan(domain, epsilon=4)]
    done: list[Any] = [plan.release(bought, study, name="a", **named) for plan in plans]
    kept = {"ledger": book, "privacy_unit": "person", "values_name": "height", "name": "a"}
    known: dict[str, Any] = {"moment": unbiased.Moment(2, 1), "epsilon": 2, "bias": 0.1}
    heights = rng.random(600)
    done.append(unbiased.clipped_mean(heights, interval=(0, 1), **known, **kept))
    manifests = []
    for at, each in enumerate(done):
        each.write_manifest(tmp_path / f"{at}.json")
        manifests.append(tmp_path / f"{at}.json")
    entry, page, _ = papers(manifests, tmp_path, **FACTS)
    assert entry["deployment"]["basic"]["data_product_type"] == "Dataset"
    for said in ("bought", "values of height", "best_table", "clipped_mean"):
        assert said in str(entry)
    assert "standard error of height at most" in page
    assert page.count(" of bought ±") == 2
    for each in (tmp_path / "papers").iterdir():
        assert "somebody" not in each.read_text()


@pytest.mark.skipif(which("chromium") is None, reason="Chromium prints the page")
def test_the_page_prints_on_two(tmp_path: Path) -> None:
    """With the longest facts and more releases than it shows. Chromium needs seconds."""
    names = [f"{date(2026, month, 1)} {'and a longer name ' * 10}".strip() for month in range(1, 9)]
    manifests = released(tmp_path, "0.4", 0, *names)
    ours = ("purpose", "legal_basis", "unit", "custody")
    theirs = ("intended_use", "description", "preprocessing", "justification")
    longest = dict.fromkeys([*ours, *theirs], "many words " * 27)
    for number in range(1, 9):
        reason = ("for a reason " * 15).strip()
        shoal.Ledger(tmp_path / "city.ledger").withdraw(number=number, reason=reason)
    papers(manifests, tmp_path, **FACTS | longest)
    printed = tmp_path / "page.pdf"
    page = (tmp_path / "papers" / "officer.html").as_uri()
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    command = ["chromium", *quiet, f"--print-to-pdf={printed}", page]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 2


def test_the_page_on_privacy_has_the_same_table() -> None:
    """What others published."""
    page = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text()
    for each in OTHERS:
        delta = f" ({each.delta})" if each.delta else ""
        assert f"| {each.epsilon:g}{delta} | {each.unit} | {each.name} |" in page


def test_a_withdrawn_release_is_named(tmp_path: Path) -> None:
    """With the day and the reason, also in the papers of another release; it counts as one."""
    both = released(tmp_path, 1, 0, "May", "June")
    shoal.Ledger(tmp_path / "city.ledger").withdraw(name="May", reason="wrong <file>")
    for manifest in both:
        entry, page, _ = papers(manifest, tmp_path)
        said = entry["deployment"]["deployment_model"]["release_type_details"]
        assert re.search(r"Releases so far: 2 \(May to June\)", said)
        assert re.search(r"so far: epsilon 2, .* May was withdrawn on [\d-]+: wrong <file>\.", said)
        assert "<td>2 releases, 1 withdrawn</td><td>epsilon 2</td>" in page
        assert re.search(r"withdrawn on [\d-]+: wrong &lt;file&gt;</td>", page)
        warned = re.findall(r"WITHDRAWN: (\w+) was withdrawn on [\d-]+: wrong &lt;file&gt;\.", page)
        assert warned == (["May"] if manifest.stem == "May" else [])
    _, page, _ = papers(both, tmp_path)
    assert "shoal verify June.json" in page
    assert "shoal verify May.json" not in page
    assert "<td>1 (withdrawn)</td>" in page
    head = shoal.Ledger(tmp_path / "city.ledger").state().head
    assert f"shoal ledger verify city.ledger --head {head}" in page


def test_rows_of_the_dossier_and_withdrawn_ones_are_kept(tmp_path: Path) -> None:
    """However many releases are newer; of the others the newest."""
    names = [f"day {at}" for at in range(9)]
    manifests = released(tmp_path, "0.3", 0, *names)
    shoal.Ledger(tmp_path / "city.ledger").withdraw(name="day 2", reason="wrong")
    _, page, _ = papers(manifests[0], tmp_path)
    assert re.findall(r"<td>day (\d)</td>", page) == ["0", "2", "5", "6", "7", "8"]
    assert "3 more releases, 0 of them withdrawn." in page


@pytest.mark.parametrize("total", [None, 5])
def test_a_budget_that_comes_back_says_when(tmp_path: Path, total: int | None) -> None:
    """Each month says what it lost, beside all of them and what may come; and whose clocks."""
    at = np.repeat(np.array(["2026-04-30T09", "2026-05-01T09"], "M8[s]"), 402)
    line = ["a", "b"] * 402
    line[0] = "c"
    table = pa.table({"bus": [*range(402)] * 2, "at": at, "line": line, "speed": [3.0, 5.0] * 402})
    known: dict[str, Any] = {"bounds": (0, 65), "by": "line", "counts": "public"}
    how = {**known, "period": "month(at,Asia/Kolkata)"}
    both = shoal.Records(table, user="bus", value="speed", **how)
    may = shoal.Records(table.slice(402), user="bus", value="speed", **how)
    facts: dict[str, Any] = {"privacy_unit": "bus", "counts": "public", "period": "month"}
    book = shoal.Ledger.create(tmp_path / "city.ledger", epsilon=2, total=total, **facts)
    release = shoal.plan(both, epsilon=1, min_users=1).release(both, ledger=book, name="spring")
    release.write_manifest(tmp_path / "spring.json")
    shoal.plan(may, epsilon="0.9999").release(may, ledger=book, name="May")
    book.withdraw(name="May", reason="wrong")
    entry, page, _ = papers(tmp_path / "spring.json", tmp_path)
    deployment = entry["deployment"]
    assert deployment["privacy_loss"]["privacy_unit"] == "bus-month"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 2.0}
    model = deployment["deployment_model"]
    assert (model["release_type"], model["data_source_type"]) == ("Many releases", "Dynamic")
    for said in (model["release_type_details"], page):
        assert "psilon 2, for each bus in each month" in said
        assert "spent of a month never comes back" in said
    for said in (deployment["privacy_loss"]["privacy_unit_details"], page):
        assert "Periods are months by the clocks of Asia/Kolkata; times without a zone" in said
    ever = "12 months (the ledger has no limit over all)</td><td></td><td>epsilon 24"
    if total:
        ever = "all months, whatever the ledger will allow</td><td></td><td>epsilon 5"
    shoal.report(tmp_path / "spring.json", tmp_path / "spring.html", ledger=book)
    shoal.report(tmp_path / "spring.json", tmp_path / "alone.html")
    assert "Periods are month(at,Asia/Kolkata)." in (tmp_path / "alone.html").read_text()
    # 1/(1 + exp(-epsilon)) of 1, 1.9999, 2.9999 and 2 is 0.7311, 0.88079, 0.9526 and 0.8808.
    for rows in (page, (tmp_path / "spring.html").read_text()):
        for said in (
            "2026-05</td><td>2 releases, 1 withdrawn</td><td>epsilon 1.9999</td>"
            "<td>next to nothing</td><td>89%",
            "2026-04</td><td>1 release</td><td>epsilon 1</td><td>epsilon 1</td><td>74%",
            "all 2 months</td><td>2 releases, 1 withdrawn</td><td>epsilon 2.9999</td><td></td>"
            "<td>96%",
            ever,
        ):
            assert said in rows
    assert "bus, month" in page
    assert "2026-04, 2026-05" in page
    for said in ("804 records", "at least 1 user in", "1 cell shown with fewer"):
        assert said in page
