"""Benches of errors at their smallest size: their lines, their bars, and their other run."""

from dataclasses import replace
from pathlib import Path

import pytest
from shoal_studies import bench_honest as honest

from shoal.cli.main import main

pytestmark = [pytest.mark.study, pytest.mark.full]


def test_generated_records_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder that is made, and used again."""
    sizes = ("--rows", "1000", "--users", "50", "--cells", "5", "--cells-per-user", "3")
    assert main(["bench", "aggregate", *sizes, "--folder", str(tmp_path / "made")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert len(list((tmp_path / "made").iterdir())) == 2


def test_the_default_beside_others(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a population and loss, and the mean of the ratios."""
    arguments = ["bench", "typical", "--repetitions", "2", "--population", "one cell of 12"]
    arguments += ["--delta", "1e-9", "--epsilon", "1", "--epsilon", "4"]
    assert main(arguments) == 0
    _, _, *lines, _ = capsys.readouterr().out.splitlines()
    assert [line[:20] for line in lines] == ["one cell of 12 users"] * 2
    assert main(["bench", "typical", "--population", "nobody"]) != 0


def test_two_rounds_over_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Six ratios a shape and loss, beside what the default takes."""
    assert main(["bench", "counts", "--repetitions", "2", "--users", "500", "--epsilon", "4"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    users, cells, each, epsilon, default, one, _, two, *ratios = line.split()
    assert (users, cells, each, epsilon, default) == ("500", "12", "10", "4", "1")
    assert {one, two} <= {"Laplace", "Gaussian"}
    assert len(ratios) == 6
    assert all(0.1 < float(ratio) < 4 for ratio in ratios)
    assert main(["bench", "counts", "--users", "3"]) != 0


def test_honest_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line a population and loss, and one for each bar; ratios to itself are 1."""
    place = str(tmp_path / "figures.json")
    arguments = ["bench", "honest", "--releases", "4", "--only", "outlier cells, 12"]
    arguments += ["--epsilon", "1", "--delta", "1e-9"]
    assert main([*arguments, "--output", place]) == 0
    _, _, line, *bars = capsys.readouterr().out.splitlines()
    assert line.startswith("few: outlier cells, 12 cells, 1500 users ")
    assert len(bars) == len(honest.BARS) + 2
    assert "values are inside their intervals: 0: holds" in bars
    assert main([*arguments, "--against", place]) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[-1] == "1.00"
    assert main(["bench", "honest", "--only", "nobody"]) != 0
    assert main([*arguments, "--against", str(tmp_path / "none.json")]) != 0


def test_a_bar_fails_where_its_figure_does() -> None:
    """In either direction, but for its exceptions and for what it does not concern."""
    setting = honest.Setting(
        *("flights by destination", "typical", 1.0, 9, 2, 0.95, 0.9, 0.9, 0.5, 0.95, 0.85, 14.6),
        *(40.0, 40.0, 1, [4, 4], [14.0, 15.0], [40.0, 40.0]),
    )
    failed = [bar.figure for bar in honest.BARS if bar.failure(setting)]
    assert failed == ["error", "told_worst_tenth", "outside"]
    known = replace(setting, epsilon=4.0, told_worst_tenth=0.83)
    assert [bar.figure for bar in honest.BARS if bar.failure(known)] == ["outside"]
    worse = replace(known, told_worst_tenth=0.82)
    assert honest.BARS[1].failure(worse) is not None
