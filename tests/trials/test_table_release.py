"""Releases from a table: what leaves, what it says, and that it can be read back."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import documents
from shoal.data.assignment import Assignment
from shoal.data.outcome_space import Space
from shoal.errors import DocumentError, InputError
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.trials.expected import Expected
from shoal.trials.mechanisms.outcomes import UniformPrior
from shoal.trials.mechanisms.table import BestTable
from shoal.trials.request import Units
from shoal.trials.result import PrivateTrial
from shoal.trials.table_release import TableRelease, draw_table

pytestmark = pytest.mark.unit

SPACE = Space.counts(0, 4)
N = 600


def _columns(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    at = np.arange(N)
    return rng.integers(0, 5, N), at % 2, at // 2 % 3


def _release(**options: Any) -> PrivateTrial:
    outcome, arm, cluster = _columns()
    given = {"noise": Simulated(4), **options}
    return BestTable(epsilon=2).privatize(outcome, arm, cluster, space=SPACE, **given)


def test_what_is_said_of_a_release() -> None:
    """Exactly the loss of its table, which is at most what was asked for."""
    found = _release()
    assert found.mechanism == "best_table"
    assert found.reason.startswith("a table of ")
    assert 2 * (1 - 1e-9) < found.epsilon <= 2
    assert found.table().column_names == ["cluster", "arm", "response", "debiased"]
    assert _release(unit=np.arange(N)).table().column_names[2] == "unit"
    with pytest.raises(InputError, match="priors of best_table"):
        found.priors()


def test_effects_are_those_of_the_debiased_outcomes() -> None:
    """Means and variances of groups are those of the table of units."""
    found = _release()
    rows = found.table().to_pandas()
    groups = rows.groupby(["cluster", "arm"])["debiased"]
    mean, spread = groups.mean().unstack(), groups.var().unstack()
    own, s2 = found.released.moments()
    assert np.allclose(mean, found.space.levels[0] + own)
    assert np.allclose(spread, s2)
    weight = found.assignment.sizes.sum(axis=1) / N
    effect = float(weight @ (mean[1] - mean[0]))
    assert found.estimate().value == pytest.approx(effect)
    error = np.sqrt((weight[:, None] ** 2 * spread / found.assignment.sizes).to_numpy().sum())
    assert found.estimate().finite_population.standard_error == pytest.approx(error)


def test_the_mean_of_many_draws_is_the_outcome() -> None:
    """For every level, within five standard errors of a million responses."""
    size = 10**6
    best = BestTable(epsilon=1).choose(SPACE)
    facts = Assignment(pa.array(["a"]), pa.array([0, 1]), np.array([[size // 2, size // 2]]))
    for level in range(SPACE.size):
        units = Units(facts, np.full(size, float(level)), {})
        drawn = draw_table(units, SPACE, best.kept, best.table, OperatingSystem())
        error = np.sqrt(best.variances[level] / size)
        assert abs(drawn.debiased.mean() - level) < 6 * error
        assert drawn.debiased.var() == pytest.approx(best.variances[level], rel=0.02)


def test_outcomes_between_levels_keep_their_mean() -> None:
    """A table of few levels says what all levels would, on average."""
    size = 400_000
    best = BestTable(epsilon=4, levels=2).choose(SPACE)
    facts = Assignment(pa.array(["a"]), pa.array([0, 1]), np.array([[size // 2, size // 2]]))
    units = Units(facts, np.full(size, 1.0), {})
    drawn = draw_table(units, SPACE, best.kept, best.table, OperatingSystem())
    assert abs(drawn.debiased.mean() - 1.0) < 6 * drawn.debiased.std() / np.sqrt(size)


def test_without_names_the_order_is_forgotten() -> None:
    """Counts of each group are all that is left of rows."""
    found = _release().released
    assert isinstance(found, TableRelease)
    assert found.responses is None
    rising = np.diff(found.codes) >= 0
    rising[np.cumsum(found.assignment.sizes.ravel())[:-1] - 1] = True
    assert rising.all()
    named = _release(unit=np.arange(N)).released
    assert isinstance(named, TableRelease)
    assert named.responses is not None


@pytest.mark.parametrize("named", [False, True])
def test_a_manifest_is_read_back(tmp_path: Path, named: bool) -> None:
    """The same table, counts and effects."""
    found = _release(**({"unit": np.arange(N)} if named else {}))
    found.write_manifest(tmp_path / "m.json")
    again = PrivateTrial.load(tmp_path / "m.json")
    assert again.table().equals(found.table())
    assert again.estimate().value == found.estimate().value
    assert again.epsilon == found.epsilon


@pytest.mark.parametrize("part", ["counts", "responses", "numbers"])
def test_damage_is_refused(tmp_path: Path, part: str) -> None:
    """Numbers that do not fit each other are no release."""
    document = json.loads(_release(unit=np.arange(N)).document)
    table, released = document["plan"]["mechanism"]["table"], document["results"]["released"]
    holder = table if part == "numbers" else released
    numbers = documents.unpack_integers(holder[part], part).copy()
    numbers[0] += 1
    holder[part] = documents.pack_integers(numbers)
    (tmp_path / "m.json").write_bytes(documents.canonical_bytes(document))
    with pytest.raises(DocumentError):
        PrivateTrial.load(tmp_path / "m.json")


def test_options_are_checked() -> None:
    """Before any column is read."""
    for wrong in ({"levels": 1}, {"levels": "many"}, {"expected": 3}):
        with pytest.raises(InputError):
            BestTable(1, **wrong)
    outcome, arm, _ = _columns()
    with pytest.raises(InputError, match=r"0\.01 to 8"):
        BestTable(20).privatize(outcome, arm, space=SPACE)


def test_an_expectation_is_another_question() -> None:
    """What is asked for tells two releases apart, and the numbers found do not."""
    outcome, arm, cluster = _columns()
    found = [
        made.privatize(outcome, arm, cluster, space=SPACE, noise=Simulated(4)).manifest["request"]
        for made in (
            BestTable(2),
            BestTable(2, expected=Expected(1, 1)),
            BestTable(2, levels="all"),
            UniformPrior(2),
        )
    ]
    assert len({json.dumps(each) for each in found}) == len(found)
