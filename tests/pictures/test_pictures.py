"""Pictures of public facts."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import shoal
from shoal import trials
from shoal.cells.typical_error import SPREAD
from shoal.errors import InputError
from shoal.pictures import cells, pictures, questions
from tests.support import occupancies

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

OCCUPANCY = occupancies.sparse(6)


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_occupancies_and_plans_are_drawn(tmp_path: Path, ending: str, start: bytes) -> None:
    """The ending chooses the format."""
    plan = shoal.plan(OCCUPANCY, method="balanced", bounds=(0, 9), epsilon=5)
    for subject in (OCCUPANCY, plan):
        shoal.picture(subject, tmp_path / f"p.{ending}", overwrite=True)
        assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)


def test_a_default_plan_shows_the_errors_to_expect() -> None:
    """Its typical errors in the value's unit, best first, named if there is room."""
    plan = shoal.plan(OCCUPANCY, bounds=(0, 9), epsilon=5)
    assert not plan.certified
    [axis] = pictures._plan(plan).axes
    drawn = np.asarray(axis.lines[0].get_ydata())
    assert np.allclose(drawn, np.sort(plan.typical_error(9 * SPREAD)))
    names = {each.get_text() for each in axis.get_xticklabels()}
    assert names <= set(plan.occupancy.labels)
    assert (len(names) == len(drawn)) == (len(drawn) <= 40)


def _table(*columns: np.ndarray) -> pa.Table:
    return pa.table([pa.array(each) for each in columns], names=["u", "c", "v"])


def _released(cells: int, least: int) -> shoal.Release:
    """A simulated release of means; the first cell has fewer records than the others."""
    cell = np.repeat(np.arange(cells), 100)[50:]
    table = _table(np.arange(len(cell)) % 97, cell, cell % 5 + 2.0)
    records = shoal.Records(table, user="u", cell="c", value="v", bounds=(0, 9))
    plan = shoal.plan(records.occupancy(), bounds=(0, 9), epsilon=5, min_records=least)
    return plan.release(records, noise=shoal.Simulated(1))


@pytest.mark.parametrize("least", [1, 60])
def test_few_released_cells_are_drawn_with_their_names(least: int) -> None:
    """Values and intervals in the cells' order; those that are left out are told apart."""
    release = _released(12, least)
    figure = cells.draw_release(release, 0.5)
    [axis] = figure.axes
    table = release.table(0.5)
    assert [each.get_text() for each in axis.get_yticklabels()] == [str(n) for n in range(12)]
    own = axis.lines[0].get_xdata()
    left_out = 0 if least == 1 else 1
    assert np.array_equal(own, table["value"].to_numpy()[left_out:])
    assert len(axis.lines) == 1 + left_out
    assert len(figure.legends) == left_out
    assert "simulated, not private" in figure.get_suptitle()
    assert ("1 left out" in figure.get_suptitle()) == (left_out == 1)
    [lines, *_] = [each for each in axis.collections if isinstance(each, LineCollection)]
    ends = np.array([line[:, 0] for line in lines.get_segments()])
    assert np.allclose(ends, np.column_stack([table["low"], table["high"]])[left_out:])


def test_many_released_cells_are_drawn_by_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the smallest to the largest, without what is pooled; at the confidence asked for."""
    release = _released(90, 60)
    [axis] = cells.draw_release(release, 0.5).axes
    values = release.table()["value"].to_numpy()[1:]
    assert np.array_equal(axis.lines[0].get_ydata(), np.sort(values))
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    for confidence, told in ((None, "mean (95%)"), (0.5, "mean (50%)")):
        shoal.picture(release, tmp_path / "r.png", confidence=confidence, overwrite=True)
        assert drawn[-1].axes[0].get_ylabel() == told


def test_every_statistic_has_a_panel() -> None:
    """Variances come with standard deviations."""
    rows = np.repeat(np.arange(len(OCCUPANCY.cell)), OCCUPANCY.count)
    table = _table(OCCUPANCY.user[rows], OCCUPANCY.cell[rows], rows % 9)
    records = shoal.Records(table, user="u", cell="c", value="v", bounds=(0, 9))
    plan = shoal.plan(
        records.occupancy(), bounds=(0, 9), epsilon=5, statistics=["mean", "variance"]
    )
    release = plan.release(records, noise=shoal.Simulated(1))
    panels = cells.draw_release(release, 0.95).axes
    told = [f"{name} (95%)" for name in ("mean", "variance", "std")]
    assert [each.get_xlabel() or each.get_ylabel() for each in panels] == told


def test_effects_are_drawn_at_the_confidence_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intervals of all units and of clusters, and the label that says which they are."""
    bought, arm = np.tile([0, 1, 1, 1], 200), np.tile([0, 1], 400)
    city = np.repeat([0, 1], 400)
    trial = trials.UniformPrior(epsilon=4).privatize(bought, arm, city, space=trials.Space.binary())
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    for confidence, asked in ((0.5, 0.5), (0.95, None)):
        shoal.picture(trial, tmp_path / f"{confidence}.png", confidence=asked)
        [axis] = drawn.pop().axes
        effect = trial.estimate(confidence=confidence)
        ends = [np.asarray(line.get_xdata()).tolist() for line in axis.lines]
        assert list(effect.finite_population.interval) in ends
        assert f"({100 * confidence:g}%)" in axis.get_xlabel()
        normal = NormalDist().inv_cdf((1 + confidence) / 2)
        [bars] = [each for each in axis.collections if isinstance(each, LineCollection)]
        halves = [float(np.ptp(np.asarray(bar)[:, 0])) / 2 for bar in bars.get_segments()]
        assert np.allclose(halves, normal * effect.clusters.standard_error)


def test_bad_pictures_are_refused(tmp_path: Path) -> None:
    """Another subject, another ending, a place that is not there."""
    with pytest.raises(InputError, match="a subject of type int"):
        shoal.picture(3, tmp_path / "p.png")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a confidence with a subject of type Occupancy"):
        shoal.picture(OCCUPANCY, tmp_path / "p.png", confidence=0.9)
    with pytest.raises(InputError, match=r"allowed: a name that ends in \.png"):
        shoal.picture(OCCUPANCY, tmp_path / "p.gif")
    with pytest.raises(InputError, match="cannot be written"):
        shoal.picture(OCCUPANCY, tmp_path / "no" / "p.png")


def test_questions_are_drawn_with_noise_and_without(tmp_path: Path) -> None:
    """Widths of a plan in pairs; answers with their intervals; each question by its name."""
    arm, age = np.arange(800) % 2, np.arange(800) // 2 % 30
    asked = trials.Questions(arm, covariates={"age": age}).effect().regression(["arm", "age"])
    plan = asked.plan(trials.Space.binary(), epsilon=1)
    [axis] = questions.draw_widths(plan).axes
    with_noise, without = (np.asarray(line.get_xdata(), float) for line in axis.lines[:2])
    assert np.allclose(with_noise, [each.half_width for each in plan.predicted])
    assert bool((without < with_noise).all())
    assert [each.get_text() for each in axis.get_yticklabels()] == list(plan.names)
    release = plan.release(arm, np.arange(800) % 2, covariates={"age": age})
    [axis] = questions.draw_answers(release, 0.9).axes
    drawn = np.asarray(axis.lines[0].get_xdata(), float)
    assert np.allclose(drawn, release.estimate(0.9)["effect"].interval)
    assert "90%" in axis.get_xlabel()
    for subject in (plan, release):
        shoal.picture(subject, tmp_path / "p.svg", overwrite=True)
        assert (tmp_path / "p.svg").read_bytes().startswith(b"<?xml")
    shoal.picture(release, tmp_path / "q.svg", confidence=0.9)
    with pytest.raises(InputError, match="a confidence with a subject"):
        shoal.picture(plan, tmp_path / "r.svg", confidence=0.9)
