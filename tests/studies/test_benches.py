"""Benches of errors at their smallest size: their lines, their bars, and their other run."""

from pathlib import Path

import pytest
from shoal_studies import bench_honest as honest

from shoal.cli.main import main

pytestmark = pytest.mark.full


def test_generated_records_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder that is made, and used again."""
    sizes = ("--rows", "1000", "--users", "50", "--cells", "5", "--cells-per-user", "3")
    assert main(["bench", "aggregate", *sizes, "--folder", str(tmp_path / "made")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert len(list((tmp_path / "made").iterdir())) == 2


def test_choices_are_never_worse_than_a_uniform_prior(capsys: pytest.CaptureFixture[str]) -> None:
    """At most 2% worse, in every setting of the benchmark at one loss."""
    assert main(["bench", "trials", "--repetitions", "10", "--epsilon", "2"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 + 9 + 6
    assert all("never above 1.02" in line for line in told[-3:])


def test_questions_beside_other_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows an experiment; noise of a strategy is near a bound."""
    assert main(["bench", "questions", "--repetitions", "2"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) in (3 + 4 + 4, 3 + 8 + 4)
    assert "within 5.0e-05 of the least" in told[-2]


def test_every_kind_of_trial_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, beside a plain table."""
    assert main(["bench", "privatize", "--units", "1000", "--clusters", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 6


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


def test_honest_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    """A line a population and loss, and one for each bar."""
    arguments = ["bench", "honest", "--releases", "4", "--only", "outlier cells, 12"]
    assert main([*arguments, "--epsilon", "1", "--delta", "1e-9"]) == 0
    _, _, line, *bars = capsys.readouterr().out.splitlines()
    assert line.startswith("few: outlier cells, 12 cells, 1500 users ")
    assert len(bars) == len(honest.BARS)
    assert "values are inside their intervals: 0: holds" in bars
    assert main(["bench", "honest", "--only", "nobody"]) != 0


def test_a_bar_fails_where_its_figure_does() -> None:
    """In either direction, but for what it does not concern."""
    setting = {
        "name": "flights by destination", "group": "typical", "epsilon": 1.0, "covered": 0.95,
        "worst_tenth": 0.9, "told": 0.5, "told_covered": 0.95, "told_worst_tenth": 0.85,
        "error": 14.6, "outside": 1,
    }  # fmt: skip
    failed = [bar.figure for bar in honest.BARS if bar.failure(setting)]
    assert failed == ["error", "told_worst_tenth", "outside"]
    other = {**setting, "epsilon": 4.0, "told_worst_tenth": 0.84}
    failed = [bar.figure for bar in honest.BARS if bar.failure(other)]
    assert failed == ["told_worst_tenth", "outside"]
