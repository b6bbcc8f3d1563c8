"""Effects where whole groups were assigned: CR2, degrees, coverage, and what is refused."""

import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.data.assigned_groups import groups_of
from shoal.data.assignment import Assignment, enrol
from shoal.errors import DataError, InputError, ShoalWarning
from shoal.privacy.noise import Simulated
from shoal.trials import BestTable, ClusterDP, NoisyHistogram, PrivateTrial, Space, UniformPrior
from shoal.trials.effects import Effect
from shoal.trials.group_inference import effects_of_groups
from shoal.trials.inference import effects_of
from tests.trials.assigned_groups import DESIGNS, figures

Floats = NDArray[np.float64]
Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

RUNS = 3000 if os.environ.get("SHOAL_FULL") else 600
ALARM = 1e-9
SPACE = Space.counts(0, 10)
# Clusters, arms, groups in each arm of each cluster.
SHAPES = ((1, 2, 5), (3, 2, 2), (4, 3, 3), (6, 2, 1), (1, 4, 2))


def _groups(clusters: int, arms: int, per: int, most: int = 9) -> Columns:
    """Cluster, arm and group of each unit, with groups of unequal sizes, and outcomes."""
    rng = np.random.default_rng(clusters * arms * per)
    many = clusters * arms * per
    group = np.repeat(np.arange(many), rng.integers(1, most, many) if most > 1 else 1)
    cluster, arm = group // (arms * per), group // per % arms
    outcome = rng.normal(size=len(group)) + rng.normal(size=many)[group] + arm + 9 * cluster
    return cluster, arm, group, outcome


def _textbook(
    cluster: np.ndarray, arm: np.ndarray, group: np.ndarray, y: Floats, wanted: int
) -> tuple[float, float, float]:
    """Value, CR2 by Q and eigenvalues, and degrees, unit by unit: nothing of shoal is used."""
    n, dummies = len(y), np.unique(cluster)[:, None] == cluster
    x = np.column_stack([*dummies, *(arm == each for each in range(1, arm.max() + 1))]).astype(
        float
    )
    weights = np.zeros(n)
    for each in np.unique(cluster):
        for sign, own in ((1, wanted), (-1, 0)):
            cell = (cluster == each) & (arm == own)
            weights[cell] = sign * (cluster == each).sum() / n / cell.sum()
    rest = np.eye(n) - x @ np.linalg.pinv(x.T @ x) @ x.T
    rows = []
    for each in np.unique(group):
        members = np.flatnonzero(group == each)
        values, axes = np.linalg.eigh(rest[members][:, members])
        root = axes @ np.diag([value**-0.5 if value > 1e-9 else 0 for value in values]) @ axes.T
        rows.append(weights[members] @ root @ rest[members])
    factor = np.array(rows)
    roots = np.linalg.eigvalsh(factor @ factor.T)
    variance, degrees = ((factor @ y) ** 2).sum(), roots.sum() ** 2 / (roots**2).sum()
    return float(weights @ y), float(variance), float(degrees)


def _moments(assignment: Assignment, y: Floats) -> tuple[Floats, Floats]:
    cells = [y[assignment.group == each] for each in range(assignment.sizes.size)]
    spread = [each.var(ddof=1) if len(each) > 1 else math.nan for each in cells]
    shape = assignment.sizes.shape
    return np.array([each.mean() for each in cells]).reshape(shape), np.array(spread).reshape(shape)


def _effects(
    cluster: np.ndarray, arm: np.ndarray, group: np.ndarray, y: Floats
) -> tuple[list[Effect], list[Effect]]:
    """Of groups, and of units one by one."""
    found = enrol(arm, cluster, unit=np.arange(len(y)))
    groups = groups_of(found.assignment, group, np.arange(len(y)))
    moments, own = _moments(found.assignment, y[found.rows]), y[found.rows]
    whole = effects_of_groups(found.assignment, groups, moments, own, 0.95)
    return whole, effects_of(found.assignment, *moments)


@pytest.mark.oracle
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_those_of_the_textbook(shape: tuple[int, int, int]) -> None:
    """Value, variance and degrees are those of eigenvalues of all units, to 1e-9."""
    columns = _groups(*shape)
    for arm, effect in enumerate(_effects(*columns)[0], 1):
        value, variance, degrees = _textbook(*columns, arm)
        here = effect.finite_population
        assert effect.value == pytest.approx(value, abs=1e-9)
        assert here.standard_error**2 == pytest.approx(variance, rel=1e-9)
        assert here.degrees_of_freedom == pytest.approx(degrees, rel=1e-9)
        half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
        assert here.interval == pytest.approx((value - half, value + half), rel=1e-6)
        assert effect.groups == (shape[0] * shape[2],) * 2


@pytest.mark.oracle
def test_groups_of_one_are_units_one_by_one() -> None:
    """In one cluster: HC2 is Neyman's variance, of the effect and within the cluster."""
    whole, single = _effects(*_groups(1, 3, 20, most=1))
    for each, other in zip(whole, single, strict=True):
        error = other.finite_population.standard_error
        assert each.finite_population.standard_error == pytest.approx(error, rel=1e-12)
        assert each.super_population.standard_error == pytest.approx(error, rel=1e-12)
        assert each.clusters.standard_error[0] == pytest.approx(error, rel=1e-12)


@pytest.mark.oracle
def test_pairs_of_equal_groups_are_matched_pairs() -> None:
    """The sum of (D_p - D)^2/(P (P - 1)) with P - 1 degrees; nothing is known within a pair."""
    pairs = 12
    group = np.repeat(np.arange(2 * pairs), 5)
    y = np.random.default_rng(2).normal(size=2 * pairs)[group]
    (effect,) = _effects(group // 2, group % 2, group, y)[0]
    mean = y[::5].reshape(pairs, 2)
    found = stats.sem(mean[:, 1] - mean[:, 0])
    assert effect.finite_population.standard_error == pytest.approx(found, rel=1e-9)
    assert effect.finite_population.degrees_of_freedom == pytest.approx(pairs - 1, rel=1e-9)
    assert np.isnan(effect.clusters.standard_error).all()


@pytest.mark.oracle
def test_errors_within_clusters_are_those_of_their_groups() -> None:
    """CR2 of each cluster by itself."""
    cluster, arm, group, y = _groups(3, 2, 4)
    (effect,) = _effects(cluster, arm, group, y)[0]
    for each in range(3):
        own = cluster == each
        value, variance, _ = _textbook(cluster[own], arm[own], group[own], y[own], 1)
        assert effect.clusters.value[each] == pytest.approx(value)
        assert effect.clusters.standard_error[each] ** 2 == pytest.approx(variance, rel=1e-9)


@pytest.mark.full
@pytest.mark.statistics
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_cover_where_groups_were_assigned(name: str) -> None:
    """94% to 97% of assignments of unequal groups with a correlation of 0.3."""
    whole, single, _ = figures(name, RUNS)
    least, most = stats.binom.ppf(ALARM, RUNS, 0.94), stats.binom.isf(ALARM, RUNS, 0.97)
    assert least <= whole <= most
    assert single < least


def _released(space: Space = SPACE, mechanism: Any = None, **options: Any) -> PrivateTrial:
    cluster, arm, _, outcome = _groups(2, 2, 12)
    numbers = np.clip(np.rint(outcome / 2), 0, 10)
    chosen = mechanism or UniformPrior(epsilon=4)
    given = {"space": space, "noise": Simulated(3), **options}
    return chosen.privatize(numbers, arm, cluster, **given)


# With priors that differ between arms and clusters.
PRIORS = ClusterDP(4, floor=0.05, histogram_scale=4, levels=3)
NAMES = np.array([f"unit {at}" for at in np.random.default_rng(5).permutation(300)])


@pytest.mark.unit
@pytest.mark.parametrize("mechanism", [UniformPrior(4), PRIORS, BestTable(4)])
def test_releases_know_their_groups(mechanism: Any, tmp_path: Path) -> None:
    """CR2 of the table's debiased outcomes, for any order of names; from manifests."""
    cluster, arm, group, _ = _groups(2, 2, 12)
    names = NAMES[: len(group)]
    found = _released(mechanism=mechanism, unit=names)
    rows = found.table().to_pandas().set_index("unit").loc[names]
    expected = _textbook(cluster, arm, group, rows["debiased"].to_numpy(), 1)
    order = np.random.default_rng(0).permutation(len(group))
    more = np.r_[names[order], ["not in the release"]], np.r_[group[order], [99]]
    found.write_manifest(tmp_path / "trial.json")
    in_order = dict(zip(names, group, strict=True))
    table = [in_order[each] for each in found.table().column("unit").to_pylist()]
    for each in (
        found.estimate(assigned=more[1], unit=more[0]),
        found.estimate(assigned=table),
        PrivateTrial.load(tmp_path / "trial.json").estimate(assigned=group, unit=names),
    ):
        here = each.finite_population
        assert each.value == pytest.approx(expected[0], rel=1e-9)
        assert here.standard_error**2 == pytest.approx(expected[1], rel=1e-9)
        assert here.degrees_of_freedom == pytest.approx(expected[2], rel=1e-9)
        assert each.groups == (24, 24)
        assert "24 and 24 groups assigned whole" in str(each)
        assert each.to_document()["groups"] == [24, 24]
        assert "assigned groups" not in each.warning
    plain = found.estimate(assigned="units")
    assert plain.groups is None
    assert plain.to_document()["groups"] is None
    other = plain.finite_population.standard_error
    assert other != pytest.approx(math.sqrt(expected[1]), rel=1e-3)
    assert str(plain) == str(found.estimate())


@pytest.mark.unit
def test_units_without_names_are_in_groups_that_are_cells() -> None:
    """Where each arm of a cluster is one group, no order of rows is needed; else it is refused."""
    cluster, arm, group, outcome = _groups(12, 2, 1)
    numbers = np.clip(np.rint(outcome / 12), 0, 10)
    made = UniformPrior(epsilon=4)
    noise = Simulated(1)
    found = made.privatize(numbers, arm, cluster, space=SPACE, noise=noise)
    rows = found.table().to_pandas()
    cell = rows["cluster"].to_numpy() * 2 + rows["arm"].to_numpy()
    effect = found.estimate(assigned=cell)
    columns = rows["cluster"].to_numpy(), rows["arm"].to_numpy(), cell
    expected = _textbook(*columns, rows["debiased"].to_numpy(), 1)
    assert effect.finite_population.standard_error**2 == pytest.approx(expected[1], rel=1e-9)
    with pytest.raises(InputError, match="names of units for a release whose units have none"):
        found.estimate(assigned=group, unit=np.arange(len(group)))
    with pytest.raises(DataError, match="several assigned groups among units of one cluster"):
        found.estimate(assigned=np.arange(len(group)))


@pytest.mark.unit
def test_few_groups_warn_with_their_degrees() -> None:
    """Below ten groups in an arm, and where one of many groups is most of an arm."""
    (few,) = _few(np.repeat(np.arange(18), 20), 18)
    assert "9 assigned groups in arm 1, and 16 degrees of freedom" in few.warning
    (many,) = _few(np.repeat(np.arange(40), 20), 40)
    assert not many.warning
    (uneven,) = _few(np.repeat(np.arange(40), [400, 400, *[5] * 38]), 40)
    assert "20 assigned groups in arm 1" in uneven.warning
    assert uneven.finite_population.degrees_of_freedom < 5
    assert str(uneven).count("warning: ") == 1


def _few(group: np.ndarray, many: int) -> tuple[Effect, ...]:
    rng = np.random.default_rng(1)
    outcome = rng.random(len(group)) < rng.uniform(0.3, 0.7, many)[group]
    made = UniformPrior(epsilon=4)
    names = np.arange(len(group))
    given: dict[str, Any] = {"unit": names, "space": Space.binary(), "noise": Simulated(1)}
    return made.privatize(outcome, group % 2, **given).effects(assigned=group, unit=names)


@pytest.mark.unit
def test_what_shows_groups_is_asked_about() -> None:
    """Where most clusters have one arm `estimate` warns, unless it is told."""
    cluster = np.repeat(np.arange(40), 10)
    arm = np.where(cluster < 15, np.arange(400) % 2, cluster % 2)
    made = UniformPrior(epsilon=4)
    given: dict[str, Any] = {"space": Space.binary(), "noise": Simulated(1)}
    found = made.privatize(np.arange(400) % 3 == 0, arm, cluster, single_arm="drop", **given)
    with pytest.warns(
        ShoalWarning, match="25 of 40 clusters were left out because an arm had"
    ) as w:
        found.estimate()
    assert w[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.estimate(assigned="units")
        made.privatize(np.arange(400) % 3 == 0, arm, cluster // 8, **given).estimate()


CLUSTER, ARM, GROUP, _ = _groups(2, 2, 12)
UNITS = NAMES[: len(GROUP)]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"assigned": GROUP[:-1]}, DataError, "groups of [0-9]+ rows for [0-9]+ units"),
        ({"assigned": GROUP[:-1], "unit": UNITS}, DataError, "rows and names of"),
        ({"assigned": GROUP[1:], "unit": UNITS[1:]}, DataError, "1 of [0-9]+ units of the release"),
        ({"assigned": GROUP, "unit": np.arange(len(GROUP))}, DataError, "names of units of type"),
        ({"assigned": GROUP, "unit": np.r_[UNITS[:1], UNITS[:-1]]}, DataError, "named twice"),
        ({"assigned": GROUP // 24, "unit": UNITS}, DataError, "'0' with units of several arms"),
        ({"assigned": ARM, "unit": UNITS}, DataError, "'0' with units of several clusters"),
        ({"assigned": GROUP / 2, "unit": UNITS}, DataError, "assigned holds double"),
        ({"assigned": [None] * len(GROUP), "unit": UNITS}, DataError, "assigned"),
        ({"assigned": "class"}, InputError, "assigned='class'"),
        ({"assigned": "units", "unit": UNITS}, InputError, "names of units without groups"),
        ({"unit": UNITS}, InputError, "names of units without groups"),
    ],
)
def test_unusable_groups_are_refused(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Two arms or clusters in a group, other lengths, names and types: in words."""
    with pytest.raises(error, match=words):
        _released(unit=UNITS).estimate(**given)


@pytest.mark.unit
def test_an_arm_of_one_group_has_no_error() -> None:
    """Refused, as nothing tells how groups differ; sums of clusters know no groups."""
    group = np.repeat([0, 1, 2], 50)
    found = enrol(np.minimum(group, 1), unit=np.arange(150)).assignment
    with pytest.raises(InputError, match="one assigned group in the arm '0'"):
        groups_of(found, group, np.arange(150))
    summed = _released(mechanism=NoisyHistogram(1), unit=UNITS)
    with pytest.raises(InputError, match="assigned groups with noisy_histogram"):
        summed.estimate(assigned=GROUP, unit=UNITS)


@pytest.mark.unit
def test_where_nothing_differs_nothing_is_known() -> None:
    """No interval of no width, and a warning without degrees where groups are few."""
    group = np.repeat(np.arange(8), 5)
    for effect in _effects(np.zeros(40, dtype=int), group % 2, group, np.full(40, 3.0))[0]:
        assert math.isnan(effect.finite_population.standard_error)
        assert "no outcomes differ" in effect.finite_population.about
