"""Effects where whole groups were assigned: CR2 and degrees of the textbook, coverage, refusals."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.errors import DataError, InputError, ShoalWarning
from shoal.privacy.noise import Simulated
from shoal.trials import ClusterPrior, Domain, Experiment, Release

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

pytestmark = pytest.mark.oracle

DOMAIN = Domain.counts(0, 10)
# Clusters, arms, groups in each arm of each cluster.
SHAPES = ((1, 2, 5), (3, 2, 2), (4, 3, 3), (6, 2, 1))


def columns(clusters: int, arms: int, per: int, most: int = 9) -> tuple[Ints, Ints, Ints, Floats]:
    """Cluster, arm and group of each unit, with groups of unequal sizes, and outcomes."""
    rng = np.random.default_rng(clusters * arms * per)
    many = clusters * arms * per
    group = np.repeat(np.arange(many), rng.integers(1, most, many) if most > 1 else 1)
    cluster, arm = group // (arms * per), group // per % arms
    outcome = rng.normal(size=len(group)) + rng.normal(size=many)[group] + arm + 2 * cluster
    return cluster, arm, group, np.clip(outcome + 2, 0, 10)


def textbook(x: Floats, group: Ints, row: Floats, y: Floats) -> tuple[float, float, float]:
    """Value, CR2 and degrees (of 0 or 0.3 in groups) of a weighted sum, by matrices of units."""
    rest, rows = np.eye(len(row)) - x @ np.linalg.pinv(x.T @ x) @ x.T, []
    for each in np.unique(group):
        own = np.flatnonzero(group == each)
        values, axes = np.linalg.eigh(rest[own][:, own])
        root = axes @ np.diag([value**-0.5 if value > 1e-9 else 0 for value in values]) @ axes.T
        rows.append(row[own] @ root @ rest[own])
    factor = np.array(rows)
    together, degrees = (group[:, None] == group).astype(float), []
    for phi in (np.eye(len(y)), 0.7 * np.eye(len(y)) + 0.3 * together):
        roots = np.linalg.eigvalsh(factor @ phi @ factor.T)
        degrees.append(roots.sum() ** 2 / (roots**2).sum())
    return float(row @ y), float(((factor @ y) ** 2).sum()), float(min(degrees))


def of_effect(
    cluster: Ints, arm: Ints, group: Ints, y: Floats, wanted: int = 1
) -> tuple[float, float, float]:
    """The textbook's numbers of an arm's effect: a regression on clusters and arms."""
    dummies = np.unique(cluster)[:, None] == cluster
    x = np.column_stack([*dummies, *(arm == each for each in range(1, arm.max() + 1))])
    row = np.zeros(len(y))
    for each in np.unique(cluster):
        for sign, own in ((1, wanted), (-1, 0)):
            cell = (cluster == each) & (arm == own)
            row[cell] = sign * (cluster == each).sum() / len(y) / cell.sum()
    return textbook(x.astype(float), group, row, y)


def released(
    shape: tuple[int, ...], mechanism: Any = "uniform_prior", most: int = 9, **more: Any
) -> tuple[Release, Ints]:
    """A table of named units, and the group of each name."""
    cluster, arm, group, outcome = columns(*shape, most=most)  # type: ignore[misc]
    study = Experiment(arm, cluster, unit=np.arange(len(arm)), control=0, **more)
    plan = study.table(DOMAIN, 4, mechanism=mechanism)
    return plan.release(outcome, study, noise=Simulated(3)), group


def told(release: Release) -> tuple[Ints, Ints, Ints, Floats]:
    """Cluster, arm, name and debiased outcome of each unit of the table."""
    table = release.table().to_pydict()
    return tuple(np.array(table[each]) for each in ("cluster", "arm", "unit", "debiased"))  # type: ignore[return-value]


@pytest.mark.parametrize("mechanism", ["uniform_prior", "best_table", ClusterPrior(0.02, noise=4)])
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_those_of_the_textbook(
    shape: tuple[int, int, int], mechanism: Any, tmp_path: Path
) -> None:
    """Of the table's debiased outcomes, for any order of names; from manifests and designs."""
    release, group = released(shape, mechanism)
    cluster, arm, unit, debiased = told(release)
    order = np.random.default_rng(0).permutation(len(group))
    more = np.r_[order, 10**6], np.r_[group[order], 99]
    release.write_record(tmp_path / "trial.json")
    known = released(shape, mechanism, assigned=group)[0]
    assert told(known)[3] == pytest.approx(debiased[np.argsort(unit)][told(known)[2]])
    for effects in (
        release.estimate(assigned=more[1], unit=more[0]),
        release.estimate(assigned=group[unit]),
        Release.load(tmp_path / "trial.json").estimate(assigned=group[unit]),
        known.estimate(),
    ):
        for at, effect in enumerate(effects, 1):
            value, variance, degrees = of_effect(cluster, arm, group[unit], debiased, at)
            here = effect.finite_population
            assert effect.value == pytest.approx(value, abs=1e-9)
            assert here.standard_error**2 == pytest.approx(variance, rel=1e-9)
            assert here.degrees_of_freedom == pytest.approx(degrees, rel=1e-9)
            half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
            assert here.interval == pytest.approx((value - half, value + half), rel=1e-6)
            assert effect.groups == (shape[0] * shape[2],) * 2
            assert effect.to_document()["groups"] == list(effect.groups)
    assert release.estimate(assigned="units")[0].groups is None


def test_groups_of_one_are_units_one_by_one() -> None:
    """In one cluster: HC2 is Neyman's variance, of the effect and within the cluster."""
    release, group = released((1, 3, 20), most=1)
    unit = told(release)[2]
    for each, other in zip(release.estimate(assigned=group[unit]), release.estimate(), strict=True):
        error = other.finite_population.standard_error
        assert each.finite_population.standard_error == pytest.approx(error, rel=1e-12)
        assert each.super_population.standard_error == pytest.approx(error, rel=1e-12)
        assert each.clusters.standard_error[0] == pytest.approx(error, rel=1e-12)


def test_errors_within_clusters_are_those_of_their_groups() -> None:
    """CR2 of each cluster by itself; nothing is known within a pair of groups."""
    release, group = released((3, 2, 4))
    cluster, arm, unit, y = told(release)
    (effect,) = release.estimate(assigned=group[unit])
    for each in range(3):
        own = cluster == each
        value, variance, _ = of_effect(cluster[own], arm[own], group[unit][own], y[own])
        assert effect.clusters.value[each] == pytest.approx(value)
        assert effect.clusters.standard_error[each] ** 2 == pytest.approx(variance, rel=1e-9)
    pairs, group = released((12, 2, 1))
    (effect,) = pairs.estimate(assigned=group[told(pairs)[2]])
    assert np.isnan(effect.clusters.standard_error).all()


def test_few_groups_warn_with_their_degrees() -> None:
    """Below ten groups in an arm, and where one of many groups is most of an arm."""

    def warning(group: Ints) -> str:
        study = Experiment(group % 2, assigned=group)
        outcome = np.random.default_rng(1).random(len(group)) < 0.5
        plan = study.table(Domain.binary(), 4, mechanism="uniform_prior")
        return str(plan.release(outcome, study, noise=Simulated(1)).estimate()[0].warning)

    assert "9 assigned groups in arm 1, and 16 degrees" in warning(np.repeat(np.arange(18), 20))
    assert not warning(np.repeat(np.arange(40), 20))
    assert "20 assigned groups in arm" in warning(np.repeat(np.arange(40), [400, 400, *[5] * 38]))


def test_what_shows_groups_is_asked_about() -> None:
    """Where most clusters have one arm `estimate` warns, unless it is told."""
    cluster = np.repeat(np.arange(40), 10)
    arm = np.where(cluster < 15, np.arange(400) % 2, cluster % 2)
    study = Experiment(arm, cluster, single_arm="drop")
    plan = study.table(Domain.binary(), 4)
    found = plan.release(np.arange(400) % 3 == 0, study, noise=Simulated(1))
    with pytest.warns(ShoalWarning, match="25 of 40 clusters were left out because an arm had"):
        found.estimate()
    found.estimate(assigned="units")


CLUSTER, ARM, GROUP, _ = columns(2, 2, 12)
UNITS = np.arange(len(GROUP))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"assigned": GROUP[:-1]}, "groups of [0-9]+ rows for [0-9]+ units"),
        ({"assigned": GROUP[:-1], "unit": UNITS}, "names of"),
        ({"assigned": GROUP[1:], "unit": UNITS[1:]}, "1 of [0-9]+ units of the release"),
        ({"assigned": GROUP, "unit": UNITS.astype(str)}, "names of units have the type"),
        ({"assigned": GROUP, "unit": np.r_[UNITS[:1], UNITS[:-1]]}, "a name occurs twice"),
        ({"assigned": GROUP // 24, "unit": UNITS}, "'0' has units of several arms"),
        ({"assigned": ARM, "unit": UNITS}, "'0' has units of several clusters"),
        ({"assigned": GROUP / 2, "unit": UNITS}, "assigned holds double"),
        ({"assigned": "class"}, "assigned is 'class'"),
        ({"assigned": "units", "unit": UNITS}, "unit= is given without assigned="),
        ({"unit": UNITS}, "unit= is given without assigned="),
    ],
)
def test_unusable_groups_are_refused(given: dict[str, Any], words: str) -> None:
    """Two arms or clusters in a group, other lengths, names and types: in words."""
    with pytest.raises((DataError, InputError), match=words):
        released((2, 2, 12))[0].estimate(**given)


def test_units_without_names_are_in_groups_that_are_cells() -> None:
    """Else it is refused: no order of rows says who is in which group."""
    study = Experiment(ARM, CLUSTER, control=0)
    release = study.table(DOMAIN, 4).release(ARM * 3, study, noise=Simulated(2))
    with pytest.raises(DataError, match="one cluster and arm are in several assigned groups"):
        release.estimate(assigned=UNITS)
    with pytest.raises(InputError, match="units of the release have no names"):
        release.estimate(assigned=UNITS, unit=UNITS)
    cluster, arm, _, y = columns(12, 2, 1)
    study = Experiment(arm, cluster)
    plan = study.table(DOMAIN, 4, mechanism="uniform_prior")
    release = plan.release(y, study, noise=Simulated(2))
    table = release.table().to_pydict()
    home, arms, says = (np.array(table[each]) for each in ("cluster", "arm", "debiased"))
    cell = home * 2 + arms
    (effect,) = release.estimate(assigned=cell)
    _, variance, _ = of_effect(home, arms, cell, says)
    assert effect.finite_population.standard_error**2 == pytest.approx(variance, rel=1e-9)
    histogram = study.histogram(DOMAIN, 1).release(y, study, noise=Simulated(2))
    with pytest.raises(InputError, match="histogram gives no effects of assigned groups"):
        histogram.estimate(assigned=cell)
