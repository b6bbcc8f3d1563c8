"""Every study runs, finds what the papers say, writes its files, and agrees with closed forms."""

import csv
import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from shoal_studies import data, paper_002
from shoal_studies.registry import ALL, Study, column, find
from shoal_studies.simulate import QUICK, Effort, carry_out

from shoal.cells.mechanisms import caps, weights
from shoal.cli.main import main
from shoal.errors import InputError

# Findings of --quick that are unlike the paper: errata, and what few repetitions leave to chance.
UNLIKE = {
    "000-figure-2": 1, "000-figure-3": 1, "000-figure-4": 1, "000-figure-5": 1,
    "000-figure-6": 1, "000-figure-7": 2, "000-figure-8": 1, "001-figure-2": 1, "001-figure-3": 1,
    "002-figure-1": 1, "003-figure-2a": 2, "003-figure-2b": 3, "003-figure-2d": 1,
    "003-figure-3": 1, "003-figure-4": 1, "003-figure-6": 5, "003-figure-7": 1,
    "003-figure-8": 6, "004-distributions": 1,
}  # fmt: skip
# Of about 3 seconds; the others take a minute and a half together. Figure 8 of 003 has 2a to 2d.
SAMPLE = {"000-figure-1", "002-figure-5", "003-figure-5", "003-figure-8"}
NAMES = [job.name for job in find(ALL)]
ITMS = data.itms()


@cache
def found(name: str) -> Study:
    """What a study finds with --quick."""
    [job] = find(name)
    return job.run(Effort(QUICK))


@pytest.mark.parametrize(
    "name",
    [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.full) for name in NAMES],
)
def test_findings_hold_where_the_papers_do(name: str) -> None:
    """One table with a form of its own; findings are as many unlike the paper as are known."""
    study = found(name)
    assert len(study.rows) >= 3
    assert len({tuple(row) for row in study.rows}) == 1
    unlike = [each.claim for each in study.findings if each.holds is False]
    assert len(unlike) == UNLIKE.get(name, 0), unlike
    assert not any("nan" in each.found for each in study.findings)


def test_a_study_writes_its_three_files(tmp_path: Path) -> None:
    """A table, a picture, and findings under the names of claim, paper, found, holds."""
    folder = tmp_path / "new"
    run = ["study", "run", "002-figure-5", "--quick", "--folder", str(folder), "--workers", "1"]
    assert main(run) == 0
    assert (folder / "002-figure-5.png").stat().st_size > 10_000
    with (folder / "002-figure-5.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found("002-figure-5").rows)
    text = (folder / "002-figure-5.md").read_text(encoding="utf-8")
    assert text.count("\n| ") == len(found("002-figure-5").findings) + 2
    assert main(run) == 2


@pytest.mark.full
def test_closed_forms_on_the_itms_cell() -> None:
    """Baseline U m*/(n epsilon), wrap_around as printed 2U/(K epsilon): sampling adds little."""
    rows = found("002-figure-2").rows
    epsilon = column(rows, "epsilon", mechanism="baseline")
    baseline = column(rows, "error", mechanism="baseline")
    assert baseline == pytest.approx(data.WIDTH * 417 / 17166 / epsilon, rel=1e-3)
    rows = found("002-figure-1").rows
    printed = "array averaging, wrap_around as printed"
    arrays = weights.wrap_around(ITMS, caps.median(ITMS))[3]
    exact = 2 * data.WIDTH / (arrays * column(rows, "epsilon", mechanism=printed))
    assert column(rows, "error", mechanism=printed) == pytest.approx(exact, rel=0.02)
    rows = found("001-figure-3").rows
    plain = {"collection": "not clamped, as in the paper", "mechanism": "baseline"}
    exact = data.WIDTH * 10 / 110 / column(rows, "epsilon", **plain)
    assert column(rows, "error", **plain) == pytest.approx(exact, rel=1e-3)


def test_the_staircase_has_79_steps() -> None:
    """Each cap is the planner's just after its step, and the one before it just before."""
    cap, start = paper_002.every_cap(ITMS)
    assert len(cap) - 1 == 79
    assert (np.diff(cap) > 0).all()
    for at in range(1, len(cap)):
        assert caps.minimax(ITMS, start[at] * (1 + 1e-9)) == cap[at]
        assert caps.minimax(ITMS, start[at] * (1 - 1e-9)) == cap[at - 1]


def test_the_counts_have_the_published_statistics() -> None:
    """Paper 002, section IV: 217 users, 17,166 records, median 46; 160 and 164 arrays."""
    assert (len(ITMS), ITMS.sum(), ITMS.max(), ITMS.min()) == (217, 17166, 417, 1)
    assert caps.median(ITMS) == 46
    cap = caps.levy(ITMS)
    assert cap == 56
    assert weights.wrap_around(ITMS, cap)[3] == 160
    assert weights.best_fit(ITMS, cap)[3] == 164
    assert data.geometric().tolist().count(64) == 1
    assert (len(data.geometric()), data.extreme().sum()) == (2**7 - 1, 110)
    assert data.itms_many().summary().cells_per_user == 11
    sparse = data.sparse_cells()[0]
    assert (sparse.n_users, sparse.n_cells, len(sparse.count), sparse.count.sum()) == (
        223, 50, 802, 68020,
    )  # fmt: skip
    drawn = data.synthetic(3, seed=0, cells=4)
    assert (drawn.n_users, drawn.n_cells, drawn.cells_per_user.max()) == (15, 4, 4)


def test_distributions_of_the_papers() -> None:
    """Means and deviations within nine standard errors of 100,000 values; the range is kept."""
    size = 100_000
    who, rng = np.zeros(size, dtype=np.int64), np.random.default_rng(1)
    drawn = data.uniform(rng, who, who)
    assert abs(drawn.mean() - data.WIDTH / 2) < 9 * data.WIDTH / np.sqrt(12 * size)
    narrow = data.projected(rng, who, who)
    assert narrow.var() == pytest.approx(data.WIDTH / 4, rel=9 * np.sqrt(2 / size))
    assert 0 < narrow.min() < narrow.max() <= data.WIDTH
    users = np.repeat(np.arange(2000), 50)
    apart = data.speeds(differ=True)(rng, users, who)
    assert apart.var() == pytest.approx(data.VARIANCE, rel=0.1)
    between = apart.reshape(2000, 50).mean(axis=1).var()
    assert between == pytest.approx(36 + (data.VARIANCE - 36) / 50, rel=9 * np.sqrt(2 / 2000))


def test_unusable_wishes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what to do."""
    assert main(["study", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == NAMES
    assert main(["study", "run", "figure-9"]) == 2
    (tmp_path / "file").write_text("")
    assert main(["study", "run", "002-figure-5", "--folder", str(tmp_path / "file")]) == 2
    assert main(["bench", "honest", "--epsilon", "-1"]) == 2


def test_a_process_that_is_killed_is_missed() -> None:
    """No waiting without end, no traceback; a process takes a second or two to start."""
    with pytest.raises(InputError):
        list(carry_out(signal.raise_signal, [signal.SIGKILL], 1, apart=True))
