"""Pictures of public facts."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import shoal
from shoal import trials
from shoal.cells.typical_error import SPREAD
from shoal.errors import InputError
from shoal.pictures import pictures, questions
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
