"""Questions of experiments in which whole groups were assigned: variances, loss, coverage."""

import itertools
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import shoal
from shoal.errors import DataError, DocumentError, InputError, ShoalWarning
from shoal.privacy.noise import Simulated
from shoal.trials import PrivateAnswers, Questions, QuestionsPlan, Space
from shoal.trials.questions.columns import columns_of
from shoal.trials.questions.numbers import BITS
from tests.support.loop import loop_over
from tests.trials.test_assigned_groups import _textbook

Floats = NDArray[np.float64]

ALARM = 1e-9
SPACE = Space.bins(0, 10)


class _Steps(Simulated):
    """Noise that is none: what is drawn are the steps themselves."""

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The steps, where noise would have the stated scale and nothing would be clamped."""
        assert lattice_bits == BITS
        assert draw in {0, 2}
        assert all(0 <= each < 2**61 for each in steps)
        return list(steps)


# Three groups in each arm, of six sizes; two clusters; covariates within and between groups.
RNG = np.random.default_rng(4)
SIZES = np.array([2, 9, 4, 6, 3, 12, 5, 7, 8, 2, 10, 4, 6, 6, 3, 5] * 2)
GROUP = np.repeat(np.arange(32), SIZES)
HOME, ARM = GROUP // 16, GROUP % 2
AGE = RNG.integers(6, 12, len(GROUP)).astype(float)
PUBLIC = {"age": AGE, "sex": np.where(RNG.random(len(GROUP)) < 0.5, "boy", "girl")}
SCORE = np.clip(RNG.normal(0, 1, 32)[GROUP] + RNG.normal(0, 1.5, len(GROUP)) + AGE / 2, 0, 10)

ASKED: dict[str, Callable[[Questions], Questions]] = {
    "effect": lambda asked: asked.effect(),
    "precision": lambda asked: asked.effect(weights="precision"),
    "means": lambda asked: asked.means(),
    "subgroups": lambda asked: asked.effect("sex"),
    "clusters": lambda asked: asked.effect("cluster"),
    "regression": lambda asked: asked.regression(["arm", "age", "sex"]),
    "several": lambda asked: asked.effect().means().regression(["arm", "cluster"]),
}


def _asked(name: str) -> Questions:
    return ASKED[name](Questions(ARM, HOME, PUBLIC, assigned=GROUP))


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:sums of groups are clipped")
@loop_over("spread", [None, 0.8])
@loop_over("name", ASKED)
def test_without_noise_variances_are_cr2(name: str, spread: float | None) -> None:
    """Of every question, by matrices of all units and eigenvalues; also degrees."""
    plan = _asked(name).plan(SPACE, 1, spread=spread, clip=spread is not None)
    columns, rows = columns_of(ARM, HOME, PUBLIC, None, GROUP)
    outcome = SCORE[rows]
    drawn = plan.numbers.draw(outcome, plan.reading.groups, SPACE, _Steps(0))
    found = iter(zip(plan.reading.known, drawn.forms, strict=True))
    for block in plan.blocks:
        design = _design(name, block.asked.kind, columns)
        for row in block.rows:
            known, told = next(found)
            factor = _factor(design, columns.groups, row)
            rest = factor @ outcome
            if len(known.form.limits):
                unit = np.abs(factor).max() / np.abs(known.form.factor).max()
                limits = known.form.limits * unit * 10
                rest = np.clip(factor @ (outcome - 5), -limits, limits)
            assert told * known.worth * 100 == pytest.approx((rest**2).sum(), rel=2e-4)
            roots = np.linalg.eigvalsh(factor @ factor.T)
            assert known.degrees == pytest.approx(roots.sum() ** 2 / (roots**2).sum(), rel=1e-4)
    assert next(found, None) is None


def _design(name: str, kind: str, columns: Any) -> Floats:
    """Regressors, written out."""
    arm, home = columns.arm, columns.cluster
    sex, age = columns.covariate("sex"), columns.covariate("age")
    one, girl = np.ones(len(arm)), sex.codes == 1
    designs = {
        "means": [arm == 0, arm == 1],
        "subgroups": [
            *(b & (home == c) for b in (girl, ~girl) for c in (0, 1)),
            arm * girl,
            arm * ~girl,
        ],
        "clusters": [home == 0, home == 1, arm * (home == 0), arm * (home == 1)],
        "regression": [one, arm, np.array(age.values)[age.codes], girl],
        "effect": [home == 0, home == 1, arm],
    }
    key = name if name in designs else kind
    if key == "regression" and name == "several":
        return np.column_stack(designs["effect"]).astype(float)
    return np.column_stack(designs[key]).astype(float)


def _factor(x: Floats, group: NDArray[np.int64], row: Floats) -> Floats:
    rest = np.eye(len(row)) - x @ np.linalg.pinv(x.T @ x) @ x.T
    rows = []
    for each in np.unique(group):
        own = np.flatnonzero(group == each)
        values, axes = np.linalg.eigh(rest[own][:, own])
        root = axes @ np.diag([value**-0.5 if value > 1e-9 else 0 for value in values]) @ axes.T
        rows.append(row[own] @ root @ rest[own])
    return np.array(rows)


@pytest.mark.oracle
def test_the_effect_is_that_of_a_table() -> None:
    """Without noise value, variance and degrees as of the textbook's regression."""
    plan = _asked("effect").plan(SPACE, 1)
    rows = columns_of(ARM, HOME, PUBLIC, None, GROUP)[1]
    drawn = plan.numbers.draw(SCORE[rows], plan.reading.groups, SPACE, _Steps(0))
    (found,) = plan.reading.answers(drawn, plan.blocks, 0.95)
    value, variance, degrees = _textbook(HOME, ARM, GROUP, SCORE, 1)
    (known,) = plan.reading.known
    assert found.value == pytest.approx(value, abs=1e-5)
    assert drawn.forms[0] * known.worth * 100 == pytest.approx(variance, rel=1e-4)
    assert known.degrees == pytest.approx(degrees, rel=1e-5)


@pytest.mark.property
@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
@pytest.mark.parametrize("spread", [None, 0.05])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_no_outcome_loses_more_than_stated(epsilon: Fraction, spread: float | None) -> None:
    """Number and variance together, for all outcomes on three levels; attained."""
    levels, group = (-1.0, 0.0, 1.0), np.array([0, 0, 1, 2, 3, 3])
    asked = Questions(group % 2, assigned=group).effect()
    plan = asked.plan(Space(levels), epsilon, spread=spread, clip=spread is not None)
    assert bool(len(plan.numbers.forms[0].limits)) == (spread is not None)
    source, drawn = _Steps(0), []
    for each in itertools.product(levels, repeat=6):
        told = plan.numbers.draw(np.array(each), plan.reading.groups, plan.space, source)
        drawn.append(np.array([*told.numbers, *told.forms], dtype=object))
    every = np.array(drawn, dtype=object).reshape(*(3,) * 6, 2)
    most = 0
    for unit, (a, b) in itertools.product(range(6), ((0, 1), (0, 2), (1, 2))):
        own = np.moveaxis(every, unit, 0)
        most = max(most, int(np.abs(own[a] - own[b]).sum(axis=-1).max()))
    assert Fraction(most, 2**BITS) <= plan.loss.epsilon <= epsilon
    assert Fraction(most, 2**BITS) >= plan.loss.epsilon * Fraction(99, 100)
    assert plan.loss.epsilon >= epsilon * Fraction(999, 1000)


@pytest.mark.statistics
def test_every_variance_has_noise_of_its_own() -> None:
    """Discrete Laplace noise of scale 2^32 steps, independent of the numbers'."""
    plan = _asked("means").plan(SPACE, 1)
    rows = columns_of(ARM, HOME, PUBLIC, None, GROUP)[1]
    groups = plan.reading.groups
    exact = plan.numbers.draw(SCORE[rows], groups, SPACE, _Steps(0))
    plain = np.array([*exact.numbers, *exact.forms], dtype=float)
    drawn = [plan.numbers.draw(SCORE[rows], groups, SPACE, Simulated(each)) for each in range(2000)]
    numbers = np.array([[*each.numbers, *each.forms] for each in drawn], dtype=float)
    off = (numbers - plain) / 2**BITS
    # The mean size of Laplace noise is its scale: 6.5 deviations of 1/sqrt(2000).
    assert np.abs(np.abs(off).mean(axis=0) - 1).max() < 6.5 / np.sqrt(2000)
    assert np.abs(np.corrcoef(off.T) - np.eye(4)).max() < 6.5 / np.sqrt(2000)


# Of these sizes there are ten groups each: which of them get which outcomes is redrawn.
_EACH = np.array([4, 8, 16, 40])
_GROUP = np.repeat(np.arange(40), np.repeat(_EACH, 10))


def _covered(epsilon: float, spread: float | None, runs: int) -> tuple[int, int]:
    """Intervals that hold no effect: of groups, and of units taken to be assigned one by one.

    Arms stay, half of the groups of a size in each; which group sits where is drawn anew.
    """
    rng, arm = np.random.default_rng(2), _GROUP % 2
    common, own = rng.normal(size=40)[_GROUP], rng.normal(size=len(_GROUP))
    outcome = np.clip(5 + 2 * (np.sqrt(0.3) * common + np.sqrt(0.7) * own), 0, 10)
    parts = np.split(outcome, np.cumsum(10 * _EACH)[:-1])
    whole = [each.reshape(10, size) for each, size in zip(parts, _EACH.tolist(), strict=True)]
    clip = spread is not None
    plans = [
        Questions(arm, assigned=_GROUP).effect().plan(SPACE, epsilon, spread=spread, clip=clip),
        Questions(arm, assigned="units").effect().plan(SPACE, epsilon, spread=spread),
    ]
    rows = [columns_of(arm, None, None, None, given)[1] for given in (_GROUP, None)]
    covered = [0, 0]
    for run in range(runs):
        drawn = np.concatenate([rng.permutation(each).ravel() for each in whole])
        for at, (plan, order) in enumerate(zip(plans, rows, strict=True)):
            noise, groups = Simulated(run), plan.reading.groups
            released = plan.numbers.draw(drawn[order], groups, SPACE, noise)
            (found,) = plan.reading.answers(released, plan.blocks, 0.95)
            covered[at] += found.interval[0] <= 0 <= found.interval[1]
    return covered[0], covered[1]


@pytest.mark.full
@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore:sums of groups are clipped")
@pytest.mark.parametrize(("epsilon", "spread"), [(8, None), (8, 2.0), (1, None)])
def test_intervals_cover_where_groups_were_assigned(epsilon: float, spread: float | None) -> None:
    """94% to 98% of assignments of unequal groups that correlate by 0.3."""
    runs = 600
    whole, single = _covered(epsilon, spread, runs)
    least, most = stats.binom.ppf(ALARM, runs, 0.94), stats.binom.isf(ALARM, runs, 0.98)
    assert least <= whole <= most
    assert single < least


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
@pytest.mark.parametrize(("part", "epsilon"), [(0.1, 4), (0.05, 20)])
def test_limits_that_bind_make_intervals_too_short(part: float, epsilon: int) -> None:
    """Whole villages of one outcome that few have; without limits 95% cover."""
    group = np.repeat(np.arange(60), 20)
    space, spread = Space.bins(0, 100), 8 * (part * (1 - part)) ** 0.5
    asked = Questions(group % 2, assigned=group).effect()
    rng, covered, runs = np.random.default_rng(4), [0, 0], 400
    plans = [asked.plan(space, epsilon, spread=spread, clip=clip) for clip in (True, False)]
    order = columns_of(group % 2, None, None, None, group)[1]
    for run in range(runs):
        outcome = np.where(rng.random(60) < part, 54.0, 46.0)[group]
        for at, plan in enumerate(plans):
            drawn = plan.numbers.draw(outcome[order], plan.reading.groups, space, Simulated(run))
            (found,) = plan.reading.answers(drawn, plan.blocks, 0.95)
            covered[at] += found.interval[0] <= 0 <= found.interval[1]
    assert covered[0] < stats.binom.ppf(ALARM, runs, 0.95)
    assert covered[1] >= stats.binom.ppf(ALARM, runs, 0.95)


@pytest.mark.unit
def test_a_release_and_its_manifest(tmp_path: Path) -> None:
    """Plan, answers and regressions that were asked for come back from files."""
    given: dict[str, Any] = {"arm": ARM, "cluster": HOME, "covariates": PUBLIC, "assigned": GROUP}
    asked = Questions(**given).effect().regression(["arm", "age"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = asked.plan(SPACE, 2)
    assert "32 groups were assigned whole" in str(plan)
    assert "one by one" not in str(plan)
    assert "clipped" not in str(plan)
    assert "clipped" not in str(asked.plan(SPACE, 2, spread=0.5))
    with pytest.warns(ShoalWarning, match="clipped to three deviations in"):
        clipped = asked.plan(SPACE, 2, spread=0.5, clip=True)
    assert "clipped to three deviations" in str(clipped)
    assert 0.05 <= plan.variance_share <= 0.75
    plan.save(tmp_path / "plan.json")
    loaded = QuestionsPlan.load(tmp_path / "plan.json")
    assert loaded.to_document() == plan.to_document()
    done = loaded.release(SCORE, **given, noise=Simulated(1))
    done.write_manifest(tmp_path / "answers.json")
    again = PrivateAnswers.load(tmp_path / "answers.json")
    assert again.estimate() == done.estimate()
    own = again.regression(["arm", "age"], 0.9)
    assert [each.question for each in own] == list(plan.names[1:])
    assert own[1].interval != again.estimate()[2].interval
    assert own[1].value == again.estimate()[2].value
    with pytest.raises(InputError, match="whose variance by assigned group was not released"):
        again.regression(["arm"])
    rows = np.random.default_rng(0).permutation(len(ARM))
    columns = ARM[rows], HOME[rows], {key: each[rows] for key, each in PUBLIC.items()}
    mixed = plan.release(SCORE[rows], *columns, assigned=GROUP[rows], noise=Simulated(1))
    assert mixed.estimate() == done.estimate()


@pytest.mark.unit
def test_groups_are_part_of_the_plan() -> None:
    """Others than the plan's are refused, and so is the outcome as a group."""
    plan = _asked("effect").plan(SPACE, 1)
    other = np.where(GROUP == 3, 1, GROUP)
    for assigned in (None, "units", other):
        said = (
            "assigned groups other than" if assigned is other else "no assigned groups for a plan"
        )
        with pytest.raises(DataError, match=said):
            plan.release(SCORE, ARM, HOME, PUBLIC, assigned=assigned)
    with pytest.raises(InputError, match="outcome column as assigned"):
        plan.release(GROUP, ARM, HOME, PUBLIC, assigned=GROUP)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"assigned": GROUP[:-1]}, DataError, "groups of [0-9]+ rows"),
        ({"assigned": GROUP // 2}, DataError, "'0' with units of several arms"),
        ({"assigned": ARM}, DataError, "'0' with units of several clusters"),
        ({"assigned": ARM, "cluster": None}, InputError, "one assigned group in the arm '0'"),
        ({"assigned": GROUP / 3}, DataError, "assigned holds double"),
        ({"assigned": "class"}, InputError, "assigned='class'"),
    ],
)
def test_unusable_groups_are_refused(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Two arms, two clusters, one group in an arm, other lengths and types."""
    with pytest.raises(error, match=words):
        Questions(**({"arm": ARM, "cluster": HOME} | given))


@pytest.mark.unit
def test_groups_that_stand_alone_are_refused() -> None:
    """Nothing tells how groups differ where regressors fit one of them exactly."""
    group = np.repeat(np.arange(8), 6)
    asked = Questions(group % 2, group // 2, {"age": np.arange(48) % 5}, assigned=group)
    with pytest.raises(InputError, match="where one assigned group stands alone"):
        asked.effect("cluster").plan(SPACE, 1)
    with pytest.raises(InputError, match="moderate epsilon"):
        _asked("effect").plan(SPACE, 10**5)


@pytest.mark.unit
def test_few_groups_and_larger_ones_warn() -> None:
    """Below ten groups in an arm, and where schools had one arm, not classes."""
    group = np.repeat(np.arange(18), 12)
    with pytest.warns(ShoalWarning, match="9 assigned groups in arm 0, and 16 degrees"):
        Questions(group % 2, assigned=group).effect().plan(SPACE, 1)
    classes = np.arange(len(_GROUP)) // 2
    arm = classes // 9 % 2
    covariates = {"school": classes // 9, "age": np.arange(len(classes)) % 7}
    with pytest.warns(ShoalWarning, match="one value of the covariate 'school' have the same arm"):
        Questions(arm, None, covariates, assigned=classes).effect().plan(SPACE, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Questions(arm, None, covariates, assigned=classes // 9).effect().plan(SPACE, 1)
        Questions(arm, None, covariates, assigned="units").effect().plan(SPACE, 1)


@pytest.mark.unit
@pytest.mark.filterwarnings("ignore:sums of groups are clipped")
@pytest.mark.parametrize("part", ["step", "factor", "kind", "limits", "assigned", "forms"])
def test_damaged_plans_are_refused(part: str, tmp_path: Path) -> None:
    """Other steps, factors, units, limits or groups than those of the questions."""
    document = _asked("effect").plan(SPACE, 1, spread=0.5, clip=True).to_document()
    numbers, columns = dict(document["numbers"]), dict(document["columns"])
    form = dict(numbers["forms"][0])
    pack = shoal.documents.pack_integers
    if part == "step":
        form["step"] += 1
    elif part in ("factor", "kind", "limits"):
        old = shoal.documents.unpack_integers(form[part], part)
        form[part] = pack(old // 2 if part == "limits" else old[::-1].copy())
    numbers["forms"] = [form] if part != "forms" else []
    if part == "assigned":
        columns["assigned"] = pack(np.arange(len(GROUP)))
    shoal.files.write_bytes(
        tmp_path / "plan.json",
        shoal.documents.canonical_bytes({**document, "numbers": numbers, "columns": columns}),
    )
    with pytest.raises(DocumentError):
        QuestionsPlan.load(tmp_path / "plan.json")
