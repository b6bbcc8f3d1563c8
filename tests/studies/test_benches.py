"""Benches of errors at their smallest size: their lines, their bars, and their other run."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from shoal_studies import bench_honest as honest
from shoal_studies import bench_keys, key_rules
from shoal_studies import bench_presence as presence

from shoal.cli.main import main
from shoal.theory.key_threshold import MOST_KEYS

pytestmark = pytest.mark.full


@pytest.mark.parametrize(
    ("arguments", "lines", "last"),
    [
        ("aggregate --rows 1000 --users 50 --cells 5 --cells-per-user 3 --folder made", {7}, ""),
        ("trials --repetitions 10 --epsilon 2", {2 + 9 + 6}, "never above 1.02"),
        ("questions --repetitions 2", {3 + 4 + 4, 3 + 8 + 4}, ""),
        ("privatize --units 1000 --clusters 2", {2 + 6}, ""),
        ("typical --repetitions 2 --delta 1e-9 --epsilon 1 --epsilon 4", None, ""),
        ("counts --repetitions 2 --users 500 --epsilon 4", None, "500"),
        ("honest --releases 4 --epsilon 1 --delta 1e-9", None, ""),
        ("presence --releases 2 --epsilon 4", {3 + 4 + 4}, "of plain Laplace noise"),
        ("presence --keys --releases 2 --epsilon 1 --only places", {2 + 3}, "places"),
        ("presence --keys --rules --releases 1 --epsilon 9 --only places", {2 + 1}, "places"),
    ],
)
def test_a_bench_prints_its_lines(
    arguments: str,
    lines: set[int] | None,
    last: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """So many, where their number is known, and what the last one says."""
    monkeypatch.chdir(tmp_path)
    only = {
        "typical": ["--population", "one cell of 12"],
        "honest": ["--only", "outlier cells, 12"],
        "presence": ["--only", "sparse"],
    }
    words = arguments.split()
    added = [] if "--only" in words else only.get(words[0], [])
    assert main(["bench", *words, *added]) == 0
    told = capsys.readouterr().out.splitlines()
    assert lines is None or len(told) in lines
    assert last in told[-1]


def test_a_bar_fails_where_its_figure_does() -> None:
    """In either direction, but for what it does not concern."""
    setting = {
        "name": "flights by destination", "group": "typical", "epsilon": 1.0, "covered": 0.95,
        "worst_tenth": 0.9, "reliable": 0.5, "reliable_covered": 0.95, "reliable_worst_tenth": 0.85,
        "error": 14.6, "outside": 1,
    }  # fmt: skip
    failed = [bar.figure for bar in honest.BARS if bar.failure(setting)]
    assert failed == ["error", "reliable_worst_tenth", "outside"]
    other = {**setting, "epsilon": 4.0, "reliable_worst_tenth": 0.84}
    failed = [bar.figure for bar in honest.BARS if bar.failure(other)]
    assert failed == ["reliable_worst_tenth", "outside"]


def test_plain_noise_errs_by_noise_and_by_what_its_caps_cut() -> None:
    """Nothing without noise; with it at least what the smallest useful cap leaves of it."""
    user = np.repeat(np.arange(40), 3)
    rows = pa.table({"user": user, "cell": ["a", "a", "b"] * 40, "value": [1.0, 9.0, 12.0] * 40})
    table = presence.Table("made", rows, (0, 10))
    assert {name: each.tolist() for name, each in table.truth.items()} == {
        "users": [40, 40], "records": [80, 40], "sum": [400, 400], "mean": [5, 10],
    }  # fmt: skip
    for name, scale in {"users": 2, "records": 3, "sum": 30, "mean": 0.5}.items():
        assert presence.laplace(table, name, 1e9, 2) < 1e-6
        assert 0.3 * scale < presence.laplace(table, name, 1.0, 50) < 1.3 * scale, name


@pytest.mark.oracle
@pytest.mark.parametrize("cap", [1, 24])
def test_a_rival_has_the_threshold_that_opendp_needs(cap: int) -> None:
    """OpenDP refuses a count that is lower, and no other: both are whole numbers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    counts = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    moves = dp.l01inf_distance(dp.absolute_distance(T="i64"))

    def delta(threshold: int) -> float:
        rule = dp.m.make_laplace_threshold(counts, moves, scale=cap * 2.0, threshold=threshold)
        return float(rule.map((cap, cap, 1))[1])

    least = dp.binary_search(lambda at: delta(at) <= bench_keys.DELTA, bounds=(1, 10**6))
    assert abs(least - bench_keys.laplace_threshold(cap * 2.0, cap)) < 2


@pytest.mark.oracle
@pytest.mark.parametrize("many", [1, 2, 50, MOST_KEYS])
@pytest.mark.parametrize("name", [each for each in key_rules.RULES if each != "ours"])
def test_rules_of_papers_show_lone_keys_as_seldom_as_they_may(name: str, many: int) -> None:
    """A rival with a level that is too low would find more than it may."""
    alone = bench_keys.Pairs("alone", np.zeros(many, dtype=np.int64), np.arange(many))
    rule, settings = key_rules.RULES[name]
    shown = [rule(alone, 0.4, 0, *setting) for setting in settings]
    assert max(shown) <= bench_keys.DELTA / 2 * 1.001
