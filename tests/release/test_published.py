"""G-VERIFY: what everybody may have tells nothing about a single user, in any family or method."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal import trials, unbiased
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.mechanisms.methods import METHODS
from shoal.cells.mechanisms.private_sums import Interval
from shoal.cells.mechanisms.user_vectors import excess_of
from shoal.data.counts import Counts
from shoal.documents import canonical_bytes
from tests.support import methods

NOISE = shoal.Simulated(1)


def _lengths(entry: Any) -> Iterator[int]:
    """Lengths of all lists and packed columns in a document."""
    if isinstance(entry, dict):
        if entry.keys() == {"type", "length", "data"}:
            yield entry["length"]
        for each in entry.values():
            yield from _lengths(each)
    elif isinstance(entry, list):
        yield len(entry)
        for each in entry:
            yield from _lengths(each)


def _counts(rows: list[tuple[int, int]]) -> Counts:
    """Users with these numbers of records in two cells."""
    users = [at for at in range(len(rows)) for _ in range(2)]
    return Counts.from_counts(users, [0, 1] * len(rows), [many for row in rows for many in row])


OF_CELLS = [name for name in methods.METHODS if name in METHODS]
# Weights by memberships, and caps, that cut the user with most records.
LESS = {"part": np.array([30_000] * 2 + [65_536] * 28), "cap": np.full(2, 30)}


@pytest.mark.parametrize("name", OF_CELLS)
def test_a_user_of_other_rows_and_equal_totals_changes_no_byte(name: str) -> None:
    """Two users exchange what they have in one cell: each cell has the same records as before."""
    # Somebody else has more, and decides over the noise.
    others = [(40, 40), *[(3, 5), (4, 4), (6, 2)] * 4]
    before = _counts([*others, (17, 23), (23, 17)])
    after = _counts([*others, (17, 17), (23, 23)])
    asked = {"bounds": (0, 10), "epsilon": 8, "uninformative": "keep", "min_users": 1}
    wishes = {key: each for key, each in methods.METHODS[name].items() if key != "statistics"}
    first = shoal.plan(before, **asked, **wishes)
    if name in methods.BOUNDINGS:
        cut = {each: LESS.get(each, found) for each, found in first.parameters.items()}
        first = replace(first, decision=replace(first.decision, parameters=cut))
    second = replace(first, counts=after)
    chosen = None
    if first.decision.method.selects:
        high = np.full(2, first.lattice.bits << 10)
        chosen = Interval(high // 2, high)
    excess = (1, 2) if excess_of(first.parameters)[0] else None
    published = [
        each.published(Estimates.of(each, [1000, 1001], chosen, excess)) for each in (first, second)
    ]
    one, other = (canonical_bytes(each.to_document()) for each in published)
    assert first.counts.fingerprint != second.counts.fingerprint
    assert one == other


@pytest.mark.parametrize("name", methods.METHODS)
def test_no_list_of_a_manifest_is_as_long_as_the_users(name: str) -> None:
    """Sixty users in four cells: lists are as long as the numbers, or shorter."""
    table = methods.tied()
    plan = methods.plan(table, methods.METHODS[name])
    release = plan.release(methods.records(table), noise=NOISE)
    found = [*_lengths(json.loads(canonical_bytes(release.manifest)))]
    assert max(found) == len(plan.planned) * len(plan.statistics)
    assert max(_lengths(json.loads(release.document))) >= 60


@pytest.mark.parametrize("units", [60, 600])
def test_a_trial_publishes_no_unit(units: int) -> None:
    """Neither names nor lists of units; few of a kind have no row of their own either."""
    rng = np.random.default_rng(2)
    arm = np.arange(units) % 2
    age = np.arange(units) // 2 % 5
    names = [f"somebody-{at}" for at in range(units)]
    study = trials.Experiment(arm, None, {"age": age.astype(float)}, unit=names)
    bought = rng.random(units) < 0.4
    domain = trials.Domain.binary()
    asked = study.ask().effect().plan(domain, epsilon=2)
    for plan in (asked, study.table(domain, 2), study.histogram(domain, 2)):
        release = plan.release(bought, study, noise=NOISE)
        manifest = canonical_bytes(release.manifest)
        assert b"somebody" not in manifest
        assert max(_lengths(json.loads(manifest))) <= units // 10
        whole = int(plan.design.many.min()) >= 10
        assert (release.published.plan is None) != whole
        assert whole or b'"age"' not in manifest


def test_a_mean_publishes_no_user() -> None:
    """Numbers of records that few users have are totals alone."""
    moment = unbiased.Moment(2, 1)
    known: dict[str, Any] = {
        "method": "clipped_mean",
        "moment": moment,
        "epsilon": 2,
        "bias": 0.1,
        "interval": (0, 1),
    }
    for counts, whole in ((np.repeat([1, 2], 100), True), (np.arange(1, 200), False)):
        plan = unbiased.plan(counts=counts, **known)
        users = np.repeat(np.arange(len(counts)), counts)
        release = plan.release(users % 7 / 7, users, noise=NOISE)
        assert max(_lengths(json.loads(canonical_bytes(release.manifest)))) <= 4
        assert (release.published.plan is not None) == whole
        assert release.published.users == len(counts)


MEANS: dict[str, dict[str, Any]] = {
    "clipped_mean": {"bias": 0.1, "interval": (0, 1)},
    "symmetric_mean": {"delta": "1e-6"},
}


@pytest.mark.parametrize("method", MEANS)
def test_users_of_other_counts_and_equal_totals_change_no_byte_of_a_mean(method: str) -> None:
    """11, 15 and 16 records, or 12, 13 and 17: their sums and sums of squares are the same."""
    found = []
    for three in ([11, 15, 16], [12, 13, 17]):
        counts = np.concatenate([[60], np.full(400, 4), [9], three])
        moment = unbiased.Moment(2, 1)
        plan = unbiased.plan(
            counts=counts, method=method, moment=moment, epsilon=2, **MEANS[method]
        )
        users = np.repeat(np.arange(len(counts)), counts)
        manifest = plan.release(np.full(len(users), 0.5), users, noise=NOISE).manifest
        found.append(canonical_bytes({**manifest, "record_sha256": ""}))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_another_unit_in_the_same_group_changes_no_byte_of_a_trial() -> None:
    """One unit has another name, and another age, of which nothing was asked."""
    found = []
    for age in (37.0, 52.0):
        ages = 20.0 + np.arange(100) % 4
        ages[7] = age
        names = [f"unit {each}" for each in ages + np.arange(100) / 1000]
        town = np.where(np.arange(100) % 3, "Ulm", "Jena")
        covariates = {"age": ages, "town": town}
        study = trials.Experiment(np.arange(100) % 2, None, covariates, unit=names)
        domain = trials.Domain.binary()
        plans = [
            study.ask().effect().plan(domain, epsilon=2),
            study.ask().effect(by="town").plan(domain, epsilon=2),
            study.table(domain, 2),
            study.histogram(domain, 2),
        ]
        outcomes = np.arange(100) % 5 < 2
        manifests = [each.release(outcomes, study, noise=NOISE).manifest for each in plans]
        found.append([canonical_bytes({**each, "record_sha256": ""}) for each in manifests])
    assert found[0] == found[1]


def test_report_picture_and_table_follow_from_the_manifest(tmp_path: Path) -> None:
    """They are the same of a manifest and of its record."""
    counts = methods.records(methods.tied())
    release = shoal.plan(counts, epsilon=4, min_users=3).release(counts, noise=NOISE)
    made = []
    for kind in ("manifest", "record"):
        folder = tmp_path / kind
        folder.mkdir()
        getattr(release, f"write_{kind}")(folder / "m.json")
        shoal.report(folder / "m.json", folder / "m.html")
        loaded = shoal.Release.load(folder / "m.json")
        shoal.picture(loaded, folder / "m.png")
        loaded.write(folder / "m.csv")
        made.append([(folder / f"m.{end}").read_bytes() for end in ("png", "csv")])
        made[-1].append(str(loaded).encode())
    assert made[0] == made[1]
    page = (tmp_path / "manifest" / "m.html").read_text()
    table = page[page.index("<h2>Results") : page.index("<h2>How to verify")]
    assert table in (tmp_path / "record" / "m.html").read_text()
    with pytest.raises(shoal.errors.DocumentError, match="no rows of users"):
        _ = shoal.Release.load(tmp_path / "manifest" / "m.json").plan


@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_what_rests_on_few_units_is_in_no_manifest() -> None:
    """Neither the level that one unit has nor its answer, as many others as there are stay."""
    rng = np.random.default_rng(0)
    town = np.array(["Ulm"] * 200 + ["Jena"] * 199 + ["Zwettl"])
    age = rng.integers(20, 60, 400).astype(float)
    study = trials.Experiment(np.arange(400) % 2, None, {"town": town, "age": age})
    plan = study.ask().regression(["arm", "C(town)"]).plan(trials.Domain.binary(), epsilon=4)
    release = plan.release(rng.random(400) < 0.3, study, noise=NOISE)
    manifest = canonical_bytes(release.manifest)
    assert b"Zwettl" in release.document
    assert b"Zwettl" not in manifest
    assert b"1 of 4 estimates rest on fewer than 10 units" in manifest
    assert len(release.published.found().every) == 3


@pytest.mark.parametrize("users", [3, 7])
@pytest.mark.parametrize("method", ["user_clipped", "worst_case_optimal"])
def test_counts_of_a_small_cell_do_not_follow(users: int, method: str) -> None:
    """Cells of few users with the same totals and other counts say the same, in few steps."""
    rng = np.random.default_rng(users)
    said = set()
    for _ in range(40):
        # As many records in all, shared out in another way.
        own = 1 + rng.multinomial(40, rng.dirichlet(np.ones(users)))
        rows = [(5, int(each)) for each in own] + [(6, 0)] * 30
        users_of = [at for at, row in enumerate(rows) for each in row if each]
        cells = [cell for row in rows for cell, each in enumerate(row) if each]
        many = [each for row in rows for each in row if each]
        counts = Counts.from_counts(users_of, cells, many)
        plan = shoal.plan(counts, bounds=(0, 10), epsilon=2, method=method, min_users=1)
        chosen = None
        if plan.decision.method.selects:
            chosen = Interval(np.zeros(2, dtype=np.int64), np.full(2, plan.lattice.bits << 10))
        excess = (1, 2) if excess_of(plan.parameters)[0] else None
        basis = plan.published(Estimates.of(plan, [0, 0], chosen, excess)).basis
        said.add((basis.moved[1], basis.lead[1], basis.deviation[1], basis.bias_bound[1]))
    # In full, nearly every one of the forty would say something else.
    assert len(said) <= 12
