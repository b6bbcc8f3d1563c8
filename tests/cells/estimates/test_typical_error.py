"""Errors to expect: simulated on a plan's counts, and about what is made on such data."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal.cells.comparisons.simulation import made_up
from shoal.cells.estimates.posterior import Values, values_of
from shoal.cells.estimates.typical_error import (
    CELLS,
    SD,
    USERS,
    typical_errors,
    typical_half_widths,
)
from shoal.cells.shown.plan_warnings import plan_warnings
from shoal.errors import InputError
from tests.support import draws

Floats = NDArray[np.float64]


@cache
def _crowd(seed: int = 1, users: int = 600, cells: int = 12) -> shoal.Counts:
    rng = np.random.default_rng(seed)
    degree = rng.integers(1, min(cells, 4) + 1, users)
    who = np.repeat(np.arange(users), degree)
    where = np.concatenate([rng.choice(cells, each, replace=False) for each in degree.tolist()])
    return shoal.Counts.from_counts(who, where, rng.geometric(0.2, len(who)))


def _releases(plan: shoal.Plan, spread: float, turns: int) -> Iterator[tuple[Values, Floats]]:
    """Values of releases on made-up data of this spread, and the true means."""
    counts = plan.counts
    for turn in range(turns):
        rng = np.random.default_rng([78, turn])
        places = rng.normal(0, CELLS**0.5, counts.n_cells)[counts.cell]
        users = rng.normal(0, USERS**0.5, counts.n_users)[counts.user]
        rest = rng.normal(0, (1 - CELLS - USERS) ** 0.5, len(counts.user)) / counts.count**0.5
        mean = np.clip(24 + spread * (places + users + rest), 0, 60)
        values, cell = np.repeat(mean, counts.count), np.repeat(counts.cell, counts.count)
        sums = made_up(counts, plan.lattice, values)
        found = values_of(draws.drawn(plan, sums, 2000 + turn), 0.95)
        yield found, np.bincount(cell, values) / counts.totals


@pytest.mark.parametrize(
    ("method", "spread", "within"),
    [
        ("user_clipped", 60 * SD, 0.2),
        ("adaptive", 60 * SD, 0.2),
        ("user_clipped", 0.1, 0.3),
        ("uniform", 20.0, 0.3),
    ],
)
def test_the_error_is_about_what_is_made_on_such_data(
    method: str, spread: float, within: float
) -> None:
    """Other draws of a population err as much, over all cells, whatever its spread."""
    plan = shoal.plan(_crowd(), bounds=(0, 60), epsilon=1, method=method, uninformative="keep")
    made = [np.abs(found.value - truth).mean() for found, truth in _releases(plan, spread, 40)]
    # Not their mean: one radius in fifty is far too large.
    assert abs(plan.typical_error(spread).mean() / np.median(made) - 1) < within


def test_cells_of_a_heavy_user_and_of_little_noise_have_errors_of_their_own() -> None:
    """Where one user has most records the bias decides, not the noise; cell by cell."""
    crowd = _crowd(users=2000)
    heavy = np.where(np.arange(len(crowd.user)) == np.flatnonzero(crowd.cell == 3)[0], 4000, 0)
    counts = shoal.Counts.from_counts(crowd.user, crowd.cell, crowd.count + heavy)
    plan = shoal.plan(counts, bounds=(0, 60), epsilon=2, uninformative="keep")
    made = [np.abs(found.value - truth) for found, truth in _releases(plan, 60 * SD, 30)]
    ratio = plan.typical_error(60 * SD) / np.mean(made, axis=0)
    assert 0.55 < ratio.min() < ratio.max() < 1.65


def test_the_error_is_a_public_number_of_the_plan() -> None:
    """The same for the same counts; less with more epsilon; in the unit of the spread."""
    plans = [shoal.plan(_crowd(), bounds=(0, 60), epsilon=epsilon) for epsilon in (1, 1, 4)]
    one, same, more = (typical_errors(plan) for plan in plans)
    assert np.array_equal(one, same)
    assert one.shape == (12,)
    assert more.mean() < 0.7 * one.mean()
    assert np.array_equal(plans[0].typical_error(60 * SD), 60 * SD * one)


@pytest.mark.parametrize(("method", "within"), [("user_clipped", 1.42), ("balanced", 1.15)])
def test_the_interval_to_expect_is_about_the_one_that_comes(method: str, within: float) -> None:
    """Half widths of releases of such data, in text and table."""
    plan = shoal.plan(_crowd(), bounds=(0, 60), epsilon=1, method=method, uninformative="keep")
    wide = typical_half_widths(plan) * 60 * SD
    made = [(found.high - found.low) / 2 for found, _ in _releases(plan, 10, 60)]
    typical = np.median(made, axis=0)
    assert 1 / within <= np.median(wide / typical) <= within
    assert bool((wide > plan.typical_error(10)).all())
    assert np.allclose(plan.table()["typical_half_width"].to_numpy(), wide, rtol=1e-12)
    assert (f"±{wide[0]:.3g}" in str(plan)) == (method == "user_clipped")


def test_other_statistics_and_spreads_are_refused() -> None:
    """With what is allowed."""
    asked = {"bounds": (0, 60), "epsilon": 1, "method": "balanced"}
    plan = shoal.plan(_crowd(), statistics=["mean", "variance"], **asked)
    with pytest.raises(InputError, match="only for plans of the mean"):
        plan.typical_error()
    for wrong in (0, -1, float("nan"), "far", 30.1):
        with pytest.raises(InputError, match="sd"):
            shoal.plan(_crowd(), **asked).typical_error(wrong)


def test_counts_that_speak_against_a_plan_are_told() -> None:
    """Nothing where nothing is wrong; frequent users, and few users or cells."""
    plan = shoal.plan(_crowd(cells=30), bounds=(0, 60), epsilon=4)
    assert plan_warnings(plan) == []
    assert "\n! " not in str(plan)
    [told] = plan_warnings(shoal.plan(_crowd(cells=2), bounds=(0, 60), epsilon=1))
    assert "in only 72% of releases" in told
    assert plan_warnings(shoal.plan(_crowd(cells=2), bounds=(0, 60), epsilon=5)) == []
    assert told.startswith("with fewer than 3 cells a private radius clips more users")
    [told] = shoal.mean.user_clipped(
        np.arange(100.0), np.arange(100), bounds=(0, 60), epsilon=4, noise=shoal.Simulated(1)
    ).warnings
    assert told.startswith("with fewer than 3 cells")
    for method, wanted in ((shoal.mean.adaptive, True), (shoal.mean.baseline, False)):
        found = method(
            np.arange(100.0), np.arange(100), bounds=(0, 60), epsilon=4, noise=shoal.Simulated(1)
        )
        assert any("the private range cuts off" in each for each in found.warnings) == wanted
    heavy = shoal.Counts.from_counts(
        np.arange(400), np.arange(400) % 3, np.where(np.arange(400) == 3, 500, 2)
    )
    [often] = plan_warnings(shoal.plan(heavy, bounds=(0, 60), epsilon=4))
    assert often.startswith("the 20 most frequent of 400 users have 4")
    few = shoal.Counts.from_counts(np.arange(19), np.arange(19) % 4, [*[1] * 18, 100])
    plan = shoal.plan(few, bounds=(0, 60), epsilon=8, method="user_clipped")
    assert not any("most frequent" in each for each in plan_warnings(plan))
    assert "Epsilon times the number of users is 30" in str(
        shoal.plan(_crowd(users=30), bounds=(0, 60), epsilon=1)
    )


def _few_own(part: float, share: float, users: int = 1200) -> shoal.Counts:
    """Counts of 40 cells in which a part of the users owns a share of the records."""
    rng = np.random.default_rng(2)
    heavy = np.arange(users) < part * users
    often = 6 * share / (1 - share) * (1 - part) / part
    own = np.where(heavy, rng.poisson(often, users) + 1, rng.poisson(5, users) + 1)
    pair = np.repeat(np.arange(users), own) * 40 + rng.integers(0, 40, own.sum())
    pairs, count = np.unique(pair, return_counts=True)
    return shoal.Counts.from_counts(pairs // 40, pairs % 40, count)


@pytest.mark.parametrize(
    ("part", "share", "told"),
    [(0.05, 0.47, "60 most"), (0.01, 0.4, ""), (0.1, 0.5, ""), (0.2, 0.4, "")],
)
def test_few_users_with_much_of_the_records_are_warned_of(
    part: float, share: float, told: str
) -> None:
    """Of no cell a quarter each, and together what decides means; not if none is reliable."""
    plan = shoal.plan(_few_own(part, share), bounds=(0, 120), epsilon=1)
    assert plan.method == "user_clipped"
    found = [each for each in plan_warnings(plan) if "most frequent of 1,200 users" in each]
    assert len(found) == bool(told)
    for sentence in found:
        assert sentence.startswith(f"the {told}")
        assert "in only 35% of releases" in sentence
        assert sentence in str(plan).replace("\n  ", " ")
        asked = {"objective": "worst_case", "uninformative": "keep"}
        certified = shoal.plan(plan.counts, bounds=(0, 120), epsilon=1, **asked)
        assert plan_warnings(certified) == []


def test_a_release_and_its_page_repeat_what_the_plan_warned_of(tmp_path: Path) -> None:
    """Where a reliable cell's interval may miss; not with so much budget that it does not."""
    counts = _few_own(0.05, 0.4)
    usual = np.random.default_rng(3).normal(0, 15, 1200)
    value = np.clip(40.0 + 10 * (counts.cell % 4) + usual[counts.user], 0, 120)
    rows = pa.table({
        "who": np.repeat(counts.user, counts.count), "at": np.repeat(counts.cell, counts.count),
        "v": np.repeat(value, counts.count),
    })  # fmt: skip
    records = shoal.Records(rows, user="who", value="v", bounds=(0, 120), by="at", counts="public")
    for epsilon, many in ((1, 1), (5, 0)):
        plan = shoal.plan(records, epsilon=epsilon)
        release = plan.release(records, noise=shoal.Simulated(2))
        assert "reliable" in release.table()["status"].to_pylist()
        assert release.warnings() == plan_warnings(plan)
        assert len(release.warnings()) == many
        assert str(release).count("\n! ") == many
        release.write_manifest(tmp_path / f"{epsilon}.json")
        shoal.report(tmp_path / f"{epsilon}.json", tmp_path / f"{epsilon}.html")
        page = (tmp_path / f"{epsilon}.html").read_text()
        assert page.count("<p>Warning: the 60 most frequent of 1,200 users") == many


@pytest.mark.parametrize("users", [31, 74, 75])
def test_intervals_cover_however_few_users_there_are(users: int) -> None:
    """Of normal users about alike; where they are few no radius is selected."""
    found = []
    for data in range(4):
        rng = np.random.default_rng([5, users, data])
        # Of every user in one cell of three, and in most of six.
        who = np.repeat(np.arange(users), 20)
        cell = [who % 3, rng.integers(0, 6, 20 * users)][data % 2]
        middle = rng.uniform(15, 45) + rng.normal(0, 3, 6)[cell] + rng.normal(0, 3, users)[who]
        values = middle + rng.normal(0, 4, len(who))
        columns = {"who": who, "cell": cell, "v": values}
        table = pa.table({name: pa.array(found) for name, found in columns.items()})
        records = shoal.Records(
            table, user="who", value="v", bounds=(0, 60), by="cell", counts="public"
        )
        counts, sums = records.aggregate()
        plan = shoal.plan(counts, bounds=(0, 60), epsilon=1)
        means = np.bincount(cell, np.clip(values, 0, 60)) / np.bincount(cell)
        for turn in range(15):
            value = values_of(draws.drawn(plan, sums, turn), 0.95)
            found.append((value.low <= means) & (means <= value.high))
    assert np.concatenate(found).mean() > 0.94


def test_what_nobody_can_certify_is_a_dash() -> None:
    """No column of it; a certified error is in the value's unit."""
    counts = _crowd(users=200, cells=30)
    typical = shoal.plan(counts, bounds=(0, 60), epsilon=4)
    assert typical.table()["certified_error"].null_count == 30
    assert "certified error" not in str(typical)
    certified = shoal.plan(
        counts, bounds=(0, 60), epsilon=4, objective="worst_case", uninformative="keep"
    )
    found = certified.table()["certified_error"].to_numpy()
    assert np.array_equal(found, certified.worst_case_error)
    assert f"  {found.min():.3g}  planned" in str(certified)


def test_two_rounds_of_few_users_are_warned_of() -> None:
    """The second radius is found with half of the loss of the first."""
    for epsilon, told in ((0.2, True), (1, False)):
        plan = shoal.plan(
            _crowd(), bounds=(0, 60), epsilon=epsilon, method="user_clipped", settings={"rounds": 2}
        )
        assert plan.rounds == 2
        assert any("too little for two rounds" in each for each in plan_warnings(plan)) == told
