"""Pictures show the numbers of their subjects, in any format, whatever names and settings are."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection, PolyCollection

import shoal
from shoal import trials
from shoal.errors import InputError
from shoal.pictures import cells as of_cells
from shoal.pictures import shapes
from shoal.pictures import trials as of_trials
from shoal.pictures.shapes import GREY, plain_name
from tests.support import made_counts

COUNTS = made_counts.sparse(6)
# Two dollars make a formula of what is between them; that of the last can be read as one.
NAMES = ("$0_$9", "$$", "A$_$B", r"$\frac{$", r"a\$b$", "$5 to $10")


def _released(names: list[Any], value: str = "v", **options: Any) -> shoal.Release:
    """A simulated release of means; the first cell has fewer records than the others."""
    count = len(names)
    row = np.arange(100 * count)[50:]
    table = pa.table({"u": row % 97, "c": [names[at] for at in row // 100], value: row % 5 + 2.0})
    records = shoal.Records(table, user="u", by="c", value=value, bounds=(0, 9), counts="public")
    plan = shoal.plan(records.counts(), bounds=(0, 9), epsilon=5, **options)
    return plan.release(records, noise=shoal.Simulated(1))


def _trial() -> tuple[Any, Any, Any]:
    """A plan of questions, their answers, and a released trial."""
    arm, place = np.array(NAMES[:2])[np.arange(600) % 2], np.array(NAMES)[np.arange(600) // 2 % 6]
    domain, bought = trials.Domain.binary(), np.arange(600) % 3 % 2
    study = trials.Experiment(arm, place, control=NAMES[0])
    plan = study.ask().effect().means().plan(domain, 4)
    made = plan, study.table(domain, 4)
    released = [each.release(bought, study, noise=shoal.Simulated(1)) for each in made]
    return plan, released[0], released[1]


def test_the_ending_chooses_the_format(tmp_path: Path) -> None:
    """Of counts; a plan, a frontier, a comparison have one too."""
    plan = shoal.plan(COUNTS, method="balanced", bounds=(0, 9), epsilon=5)
    compared = {"bounds": (0, 9), "epsilon": 1, "methods": ["baseline"], "repetitions": 2}
    for subject, ending, start in (
        (COUNTS, "png", b"\x89PNG"),
        (COUNTS, "svg", b"<?xml"),
        (COUNTS, "pdf", b"%PDF"),
        (plan, "svg", b"<?xml"),
        (plan.frontier(["balanced"], [1]), "svg", b"<?xml"),
        (shoal.compare(COUNTS, **compared), "svg", b"<?xml"),
    ):
        shoal.picture(subject, tmp_path / f"p.{ending}", overwrite=True)
        assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)


def test_a_plan_shows_its_errors() -> None:
    """Certified ones over their bounds, or typical ones with the names of few cells."""
    plan = shoal.plan(COUNTS, method="balanced", bounds=(0, 9), epsilon=5)
    [axis] = of_cells.draw_plan(plan).axes
    assert np.allclose(axis.lines[0].get_ydata(), np.sort(plan.worst_case_error))
    assert np.allclose(axis.lines[2].get_ydata(), 4.5)
    plan = shoal.plan(COUNTS, bounds=(0, 9), epsilon=5)
    [axis] = of_cells.draw_plan(plan).axes
    assert np.allclose(axis.lines[0].get_ydata(), np.sort(plan.typical_error(2.25)), rtol=0.5)
    names = {each.get_text() for each in axis.get_xticklabels()}
    assert names <= set(plan.counts.labels)


@pytest.mark.parametrize("most", [None, 0.4])
def test_few_released_cells_are_drawn_with_their_names(most: float | None) -> None:
    """Values and intervals in the cells' order; those that are not reliable are apart."""
    release, left_out = _released(list(range(12)), max_error=most), int(most is not None)
    figure = of_cells.draw_release(release, 0.5)
    [axis] = figure.axes
    table = release.table(0.5)
    assert [each.get_text() for each in axis.get_yticklabels()] == [str(n) for n in range(12)]
    assert np.array_equal(axis.lines[0].get_xdata(), table["value"].to_numpy()[left_out:])
    assert (len(axis.lines), len(figure.legends)) == (1 + left_out, left_out)
    assert "simulated, not private" in figure.get_suptitle()
    assert ("11 of 12 cells reliable" in figure.get_suptitle()) == bool(left_out)
    [lines, *_] = [each for each in axis.collections if isinstance(each, LineCollection)]
    ends = np.array([line[:, 0] for line in lines.get_segments()])
    assert np.allclose(ends, np.column_stack([table["low"], table["high"]])[left_out:])


def test_a_map_is_of_what_is_reliable() -> None:
    """Not reliable and far from all that is: named below the map, which is not stretched."""
    rng = np.random.default_rng(1)
    lat, lon = 48 + rng.normal(0, 0.3, 6000), 11.5 + rng.normal(0, 0.4, 6000)
    value = np.clip(50 + 30 * (lon - 11.5), 0, 100)
    lat[:3], lon[:3] = 21.3, -157.8
    columns = {"u": np.arange(6000) % 2000, "lat": lat, "lon": lon, "v": value}
    rule = shoal.hexagon("lat", "lon", 5)
    records = shoal.Records(
        pa.table(columns), user="u", by=rule, value="v", bounds=(0, 100), counts="public"
    )
    release = shoal.plan(records, epsilon=1).release(records, noise=shoal.Simulated(1))
    [far] = [
        row for row in release.table().to_pylist() if row["hexagon_5"].startswith("8546")
    ]  # fmt: skip
    assert far["source"] == "common"
    axis, _ = of_cells.draw_release(release, 0.95, "minutes").axes
    assert axis.get_xlabel().endswith(f"not reliable, and not on this map: {far['hexagon_5']}")
    assert 8 < axis.get_xlim()[0] < axis.get_xlim()[1] < 15


def test_cells_that_a_public_rule_leaves_out_are_not_drawn() -> None:
    """Neither their names nor a place for them."""
    [axis] = of_cells.draw_release(_released(list(range(12)), min_records=60), 0.5).axes
    assert [each.get_text() for each in axis.get_yticklabels()] == [str(n) for n in range(1, 12)]


def test_many_released_cells_are_drawn_by_their_values() -> None:
    """From the smallest to the largest; what is common is grey."""
    release = _released(list(range(90)), max_error=0.7)
    [axis] = of_cells.draw_release(release, 0.5).axes
    table = release.table()
    drawn = np.concatenate([line.get_ydata() for line in axis.lines])
    assert np.array_equal(np.sort(drawn), np.sort(table["value"].to_numpy()))
    grey = sum(len(line.get_ydata()) for line in axis.lines if line.get_color() == GREY)
    assert 1 < grey == table["source"].to_pylist().count("common")
    assert axis.get_ylabel() == "mean of v with 50% intervals"
    order = np.argsort(table["value"].to_numpy(), kind="stable")
    assert axis.get_xlabel().endswith(" ".join(map(str, order[-1:])))


def test_hexagons_are_drawn_as_a_map() -> None:
    """Each at its place and coloured by its value, whole at the date line; others are grey."""
    places = np.array([[48.1, 11.5], [48.2, 11.7], [-17.0, 179.9], [48.3, 11.9]])
    at = places[np.arange(400) // 100]
    columns = {"u": np.arange(400) % 97, "lat": at[:, 0], "lon": at[:, 1], "v": np.arange(400) % 5}
    table = pa.table(columns).slice(50)
    rule = shoal.hexagon("lat", "lon", 5)
    records = shoal.Records(table, user="u", by=rule, value="v", bounds=(0, 9), counts="public")
    plan = shoal.plan(records.counts(), bounds=(0, 9), epsilon=9, max_error=0.05)
    release = plan.release(records, noise=shoal.Simulated(1))
    axis, bar = of_cells.draw_release(release, 0.95).axes
    filled, empty, _ = [each for each in axis.collections if isinstance(each, PolyCollection)]
    assert bar.get_ylabel() == "mean of v"
    values = release.table()["value"].to_numpy()[np.array(release.plan.planned)]
    assert np.allclose(filled.get_array(), values)
    assert (len(filled.get_paths()), len(empty.get_paths())) == (3, 1)
    boxes = [path.get_extents() for path in (*filled.get_paths(), *empty.get_paths())]
    for lat, lon in places:
        assert sum(box.contains(lon, lat) and box.width < 1 for box in boxes) == 1


def test_every_statistic_has_a_panel() -> None:
    """Variances come with standard deviations."""
    release = _released(list("abc"), statistics=["mean", "variance"], objective="worst_case")
    panels = of_cells.draw_release(release, 0.95).axes
    assert [each.get_xlabel() for each in panels] == [
        f"{name} of v with 95% intervals" for name in ("mean", "variance", "std")
    ]


def test_quantiles_of_a_cell_are_one_box() -> None:
    """Of public and of private counts; other statistics have panels of their own."""
    names = [f"c{at}" for at in range(5)]
    row = np.arange(4000)
    table = pa.table({"u": row % 97, "c": [names[at] for at in row % 5], "v": row % 5 + 2.0})
    read: dict[str, Any] = {"user": "u", "value": "v", "by": "c", "bounds": (0, 9)}
    for counts, known in (
        ("public", {}),
        ("private", {"keys": pa.table({"c": names}), "users": 97}),
    ):
        records = shoal.Records(table, counts=counts, **read)
        plan: Any = shoal.plan(records, epsilon=5, statistics=["median", "mean"], **known)
        release = plan.release(records, noise=shoal.Simulated(1))
        mean, boxes = of_cells.draw_release(release, 0.95).axes
        assert mean.get_xlabel() == "mean of v with 95% intervals"
        thick = [each for each in boxes.lines if each.get_linewidth() == 2.5]
        drawn = sorted(float(np.mean(each.get_xdata())) for each in thick)
        found = release.quantiles(0.5)["value"].to_pylist()
        assert drawn == pytest.approx(sorted(found))


def test_a_frontier_shows_errors_at_the_losses_spent() -> None:
    """The worst cells left, the median cells right; the bound is dashed."""
    plan = shoal.plan(COUNTS, method="balanced", bounds=(0, 9), epsilon=2)
    found = plan.frontier(["balanced", "user_clipped"], [1, 2, 4])
    table = found.table().to_pandas()
    for axis, name in zip(of_cells.draw_comparison(found).axes, ("worst", "median"), strict=True):
        lines = {str(line.get_label()): line for line in axis.lines}
        for method, style in (("balanced", "-"), ("lower bound, each cell alone", "--")):
            rows, line = table[table["method"] == method], lines[method]
            assert line.get_linestyle() == style
            assert np.allclose(np.asarray(line.get_xdata(), float), rows["spent"])
            assert np.allclose(np.asarray(line.get_ydata(), float), rows[name])
        noise, rows = lines["user_clipped: only noise, not certified"], table.iloc[3:6]
        assert noise.get_linestyle() == ":"
        assert np.allclose(np.asarray(noise.get_ydata(), float), rows[f"noise_{name}"])


def test_typical_errors_are_drawn_by_method_or_by_loss() -> None:
    """A row each at one loss, the smallest on top; a curve each at several."""
    asked = {"bounds": (0, 9), "methods": ["balanced", "midpoint"], "repetitions": 3}
    values = shoal.Normal(4, 1)
    for epsilon in (1, [1, 2]):
        found = shoal.simulate(COUNTS, values, epsilon=epsilon, **asked)
        [axis] = of_cells.draw_comparison(found).axes
        errors = found.table()["typical_error"].to_numpy()
        if epsilon == 1:
            assert np.allclose(axis.lines[0].get_xdata(), errors[::-1])
        else:
            assert np.allclose(axis.lines[1].get_ydata(), errors[[0, 2]])


def test_trials_and_questions_show_their_intervals(tmp_path: Path) -> None:
    """At the confidence asked for, each by its name; widths with noise and without."""
    plan, answers, trial = _trial()
    [axis] = of_trials.draw_widths(plan).axes
    with_noise, without = (np.asarray(line.get_xdata(), float) for line in axis.lines[:2])
    assert np.allclose(with_noise, [each.half_width for each in plan.predicted])
    assert bool((without < with_noise).all())
    [axis] = of_trials.draw_release(answers, 0.9).axes
    [lines] = [each for each in axis.collections if isinstance(each, LineCollection)]
    drawn = [tuple(line[:, 0]) for line in lines.get_segments()]
    assert np.allclose(drawn, [each.interval for each in answers.estimate(0.9)])
    assert "90%" in axis.get_xlabel()
    [axis] = of_trials.draw_release(trial, 0.5).axes
    (effect,) = trial.estimate(confidence=0.5)
    ends = [line for each in axis.collections for line in each.get_segments()]
    assert any(np.allclose(line[:, 0], effect.finite_population.interval) for line in ends)
    assert "(50%)" in axis.get_xlabel()
    forecast = trials.forecast([[500, 500]], trials.Domain.binary(), epsilon=1)
    shoal.picture(forecast, tmp_path / "p.png")


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    """Of cells, arms, clusters and questions, whatever Matplotlib is told to make of dollars."""
    path = tmp_path / "p.svg"
    settings: Any = {"text.usetex": True, "text.parse_math": False, "svg.fonttype": "none"}
    with mpl.rc_context(settings):
        for subject in (_released(list(NAMES), method="balanced"), *_trial()):
            shoal.picture(subject, path, overwrite=True)
            assert "$0_$9" in path.read_text(encoding="utf-8")
    assert plain_name("$" * 9, most=3) == r"\$\$\$"
    assert plain_name("a\nb") == "a\\nb"
    shoal.picture(_released(["a", "b"], value=r"$\frac$"), tmp_path / "v.png")
    with pytest.warns(UserWarning, match="missing from font"):
        shoal.picture(_released(["\u65e5\u672c", "b"]), tmp_path / "p.png")


def test_bad_pictures_are_refused(tmp_path: Path) -> None:
    """Another subject, another ending, a confidence where there are no intervals."""
    for subject, name, options, words in (
        (3, "p.png", {}, "of the type int cannot be drawn"),
        (COUNTS, "p.png", {"confidence": 0.9}, "a picture of Counts takes no confidence"),
        (COUNTS, "p.gif", {}, r"choose a name that ends in \.png"),
    ):
        with pytest.raises(InputError, match=words):
            shoal.picture(subject, tmp_path / name, **options)


def test_many_dots_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """At equal distances along the order, with the smallest and the largest."""
    monkeypatch.setattr(shapes, "_MOST_DOTS", 5)
    _, [axis] = shapes.new("", (4, 3))
    value = np.random.default_rng(1).permutation(101).astype(float)
    order = shapes.ranked(axis, value, ends=(value - 1, value + 1), hollow=value < 50)
    np.testing.assert_array_equal(value[order], np.arange(101))
    [told, grey] = axis.lines
    assert [*told.get_ydata(), *grey.get_ydata()] == [50, 75, 100, 0, 25]
    assert [*told.get_xdata(), *grey.get_xdata()] == [51, 76, 101, 1, 26]
