"""Plans of questions: widths, warnings, variances of textbooks, coverage, and what is refused."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.errors import InputError, ShoalWarning
from shoal.privacy.noise import Simulated
from shoal.trials import Domain, Experiment, Questions
from shoal.trials.questions.numbers import noise
from shoal.trials.questions.plan import QuestionsPlan
from shoal.trials.questions.variances import fit_of
from tests.trials.questions.test_numbers import Steps
from tests.trials.test_assigned_groups import textbook

Floats = NDArray[np.float64]

pytestmark = pytest.mark.oracle

N = 240
AT = np.arange(N)
ARM, SCHOOL, AGE = AT % 2, np.array([f"s{at}" for at in AT // 40]), AT // 2 % 7 + 10.0
SEX = np.where(AT // 4 % 2, "girl", "boy")
BINARY = Domain.binary()


def asked() -> Questions:
    """The questions of most tests."""
    return Experiment(ARM, SCHOOL, {"age": AGE, "sex": SEX}).ask()


def test_a_plan_says_what_noise_does_to_each_interval() -> None:
    """Noise, weights and widths in closed form where arms have equal sizes; the loss as asked."""
    plan = Experiment(ARM).ask().effect().plan(BINARY, 1, sd=0.5)
    (one,) = plan.predicted
    by_hand = np.sqrt(2) / 120
    assert by_hand < one.noise < 1.2 * by_hand
    assert one.max_weight_ratio == pytest.approx(1)
    assert one.plain_error == pytest.approx(np.sqrt(0.25 * 2 / 120))
    assert one.standard_error == pytest.approx(np.hypot(one.plain_error, one.noise))
    assert one.half_width > one.plain_half_width == pytest.approx(1.96998 * one.plain_error, 1e-4)
    assert 1 - 1e-6 < plan.loss.epsilon <= 1
    text = str(plan)
    assert "1 question of 240 units in 1 cluster, 2 arms, epsilon 1" in text
    assert plan.predictions().column("question").to_pylist() == ["effect"]
    many = asked().effect().means().regression("arm + age + sex").plan(BINARY, 1)
    assert all(each.alone <= each.half_width * (1 + 1e-9) for each in many.predicted)
    assert many.lower_bound_ratio >= 1


@pytest.mark.parametrize("arms", [2, 3, 8])
def test_effects_of_many_arms_follow_from_their_means(arms: int) -> None:
    """No more noise than by hand, by arm; two arms are one difference."""
    plan = Experiment(np.arange(120 * arms) % arms, control=0).ask().effect().plan(BINARY, 1)
    noise = np.array([each.noise for each in plan.predicted])
    by_arm, even = 2 / 120, 2**0.5 * (arms - 1) / 120
    assert noise.max() <= 1.18 * min(by_arm, even)
    assert plan.names[0] == ("effect" if arms == 2 else "effect of 1")


def test_disjoint_questions_cost_no_more_than_one() -> None:
    """The effect in each of 40 clusters; and in each of 600, as sums of cells."""
    for clusters in (40, 600):
        at = np.arange(clusters * 12)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            plan = Experiment(at % 2, at // 12).ask().effect("cluster").plan(BINARY, 1)
        noise = np.array([each.noise for each in plan.predicted])
        by_hand = 2**0.5 / 6 if clusters == 40 else 2 / 6
        assert (noise <= 1.18 * by_hand).all()


def _within(plan: QuestionsPlan, outcome: Floats, name: str) -> float:
    """The estimated variance without noise of a question, from steps that nothing was added to."""
    for block in plan.blocks:
        if name in block.names:
            drawn = plan.respond(outcome, Steps(0))
            spreads = list(plan._spreads(drawn, block))
            return spreads[block.names.index(name)].variance
    raise AssertionError


def test_variances_are_those_of_textbooks() -> None:
    """Without noise: means and effects by arm, subgroups by their own, OLS residuals by degrees."""
    rng = np.random.default_rng(7)
    at = np.arange(960)
    arm, sex, age = at % 2, at // 2 % 2, rng.integers(0, 9, 960).astype(float)
    study = Experiment(arm, None, {"sex": sex, "age": age})
    y = np.clip(rng.normal(3 + sex + age / 4 + arm, 0.5 + arm + sex), 0, 9)
    plan = study.ask().effect("sex").means().regression(["age"]).plan(Domain.bins(0, 9, 3), 1)
    assert plan.chosen.by == ("sex",)
    outcome = y[study.rows]

    def mean_variance(cell: Any) -> float:
        return float(y[cell].var(ddof=1) / cell.sum())

    wanted = {f"mean of arm {a}": mean_variance(arm == a) for a in (0, 1)}
    for value in (0, 1):
        wanted[f"effect where sex is {value}"] = sum(
            mean_variance((arm == a) & (sex == value)) for a in (0, 1)
        )
    x = np.column_stack([np.ones(960), age])
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    own = float(residual @ residual) / 958
    wanted["age in age"] = own * np.linalg.inv(x.T @ x)[1, 1]
    rows = np.concatenate([each.rows for each in plan.blocks])
    off = noise(plan.numbers.recover(rows), 9).max()
    for name, variance in wanted.items():
        # What is taken back for noise in the squares of means is not there.
        assert _within(plan, outcome, name) == pytest.approx(variance, rel=1e-3, abs=off)
    many = [len(fit_of(plan.design, each, plan.chosen.by)[0].degrees) for each in plan.blocks]
    assert many == [4, 2, 1]


RNG = np.random.default_rng(4)
GROUP = np.repeat(np.arange(32), [2, 9, 4, 6, 3, 12, 5, 7, 8, 2, 10, 4, 6, 6, 3, 5] * 2)
WHOLE, HOME = GROUP % 2, GROUP // 16
KIDS = np.where(RNG.random(len(GROUP)) < 0.5, "boy", "girl")
OLD = RNG.integers(6, 12, 32)[GROUP].astype(float)
SCORE = np.clip(RNG.normal(5, 1, 32)[GROUP] + RNG.normal(0, 1.5, len(GROUP)), 0, 10)


def test_of_assigned_groups_variances_are_cr2() -> None:
    """Without noise, of every question, by matrices of all units and eigenvalues; and degrees."""
    study = Experiment(WHOLE, HOME, {"sex": KIDS, "old": OLD}, assigned=GROUP)
    one, two = (HOME == 0).astype(float), (HOME == 1).astype(float)
    arm, ones = WHOLE.astype(float), np.ones(len(GROUP))
    designs = {
        "effect": [one, two, arm],
        "mean of arm 1": [1 - arm, arm],
        "old in arm + old": [ones, arm, OLD],
    }
    plan = study.ask().effect().means().regression(["arm", "old"]).plan(Domain.bins(0, 10, 3), 1)
    outcome = SCORE[study.rows]
    drawn = plan.respond(outcome, Steps(0))
    for name, design in designs.items():
        (block, at) = next(
            (each, each.names.index(name)) for each in plan.blocks if name in each.names
        )
        row = np.zeros(len(GROUP))
        row[study.rows] = block.rows[at][plan.design.kind_of_unit]
        value, variance, degrees = textbook(np.column_stack(design), GROUP, row, SCORE)
        found = list(plan._spreads(drawn, block))[at]
        assert plan.read(drawn, 0.95)[name].value == pytest.approx(value, abs=1e-4)
        assert found.variance == pytest.approx(variance, rel=1e-3)
        assert found.degrees == pytest.approx(degrees, rel=1e-9)
    pairs = np.repeat(np.arange(20), 4)
    alone = Experiment(pairs % 2, pairs // 2, assigned=pairs).ask().effect("cluster")
    with pytest.raises(InputError, match="has only one assigned group"):
        alone.plan(BINARY, 1)


def covered(plan: QuestionsPlan, mean: Floats, runs: int) -> tuple[Floats, Floats]:
    """How often each interval holds its question of the means, and its mean half width.

    Outcomes are the range's ends, with these means, in the order of the design.
    """
    width, random = plan.domain.width, np.random.default_rng(7)
    rows = np.concatenate([each.rows for each in plan.blocks])[:, plan.design.kind_of_unit]
    truth, hit, wide = rows @ mean, np.zeros(len(rows)), np.zeros(len(rows))
    for seed in range(runs):
        outcomes = np.where(random.random(len(mean)) < mean / width, width, 0.0)
        found = plan.read(plan.respond(outcomes, Simulated(seed)), 0.95)
        low, high = np.array([each.interval for each in found]).T
        hit, wide = hit + ((low <= truth) & (truth <= high)), wide + (high - low) / 2 / runs
    return hit / runs, wide


@pytest.mark.statistics
@pytest.mark.parametrize("name", ["precision", "several", "far"])
def test_intervals_cover(name: str) -> None:
    """94% to 98% for outcomes that differ by arm, cluster and covariate; and rare events."""
    n, rng = 500, np.random.default_rng(11)
    arm, home, sex = np.arange(n) % 2, rng.integers(0, 8, n), rng.integers(0, 2, n)
    study = Experiment(arm, home, {"sex": sex})
    own = {
        "precision": study.ask().effect(weights="precision"),
        "several": study.ask().effect().means().regression(["arm", "sex"]),
        "far": study.ask().effect(),
    }[name]
    domain = Domain.bins(0, 10, 3) if name == "far" else BINARY
    plan = own.plan(domain, 1, sd=0.4 * domain.width)
    mean = (0.3 + 0.2 * arm + 0.05 * np.sin(home) + 0.1 * sex)[study.rows]
    found, _ = covered(plan, np.full(n, 0.5) if name == "far" else mean, 400)
    # 3.5 deviations of chance of 400 runs.
    assert (found >= 0.94 - 0.032).all()
    assert (found <= 0.98 + 0.012).all()


@pytest.mark.statistics
@pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")
def test_intervals_of_assigned_groups_cover() -> None:
    """Groups of unlike means, drawn anew; intervals of units one by one would not."""
    rng, runs, hit, units = np.random.default_rng(3), 250, 0, 0
    group = np.repeat(np.arange(40), rng.integers(5, 60, 40))
    for seed in range(runs):
        arm = rng.permutation(np.arange(40) % 2)[group]
        chance = np.clip(rng.normal(0.5, 0.2, 40), 0.02, 0.98)[group]
        outcome = (rng.random(len(group)) < chance).astype(float)
        # Fewer runs show how often intervals of units one by one miss.
        for assigned in (group, None) if seed % 5 == 0 else (group,):
            study = Experiment(arm, assigned=assigned)
            plan = study.ask().effect().plan(BINARY, 3)
            found = plan.read(plan.respond(outcome[study.rows], Simulated(seed)), 0.95)
            low, high = found["effect"].interval
            held = low <= 0 <= high
            hit, units = (hit, units + held) if assigned is None else (hit + held, units)
    assert 0.94 - 0.04 <= hit / runs <= 1
    assert units / (runs / 5) < 0.9


def _lonely() -> NDArray[np.int64]:
    home = np.zeros(N, dtype=np.int64)
    home[0] = 1
    return home


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "collinear": (
        lambda: Experiment(ARM, covariates={"a": AGE, "b": 2 * AGE + 1}).ask()
        .regression(["a", "b"]),
        "'b' depends, or nearly depends",
    ),
    "an empty cell": (
        lambda: Experiment(ARM, covariates={"few": _lonely()}).ask().effect("few"),
        "no unit where few is 1 is in the arm",
    ),
    "one unit an arm": (lambda: Experiment([0, 0, 0, 1]).ask(), "has only one unit"),
    "as many columns as units": (
        lambda: Experiment([0, 1, 0, 1], covariates={"a": [1, 2, 2, 1], "b": [1, 2, 3, 5]}).ask()
        .regression(["arm", "a", "b"]),
        "4 columns needs more than 4 units",
    ),
    "twice": (lambda: asked().effect().effect(), "twice"),
    "a regressor twice": (lambda: asked().regression(["age", "age"]), "twice"),
    "no such column": (lambda: asked().regression(["height"]), "'height'"),
    "no such product": (lambda: asked().regression(["arm:height"]), "'height'"),
    "no such group": (lambda: asked().effect("height"), "'height'"),
    "other weights": (lambda: asked().effect(weights="all"), "weights"),
    "precision by group": (lambda: asked().effect("sex", "precision"), "no precision weights"),
    "nothing asked": (lambda: asked().plan(BINARY, 1), "no questions"),
    "no range": (lambda: asked().effect().plan((0, 1), 1), "domain"),  # type: ignore[arg-type]
    "no spread": (lambda: asked().effect().plan(BINARY, 1, sd=0), "sd"),
    "far from 0": (
        lambda: Experiment(ARM, covariates={"a": AGE + 1e9}).ask().regression(["a"]),
        "far from 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_has_no_answer_is_refused(name: str) -> None:
    """By public facts, in words, before anything is read."""
    ask, said = BAD[name]
    with pytest.raises(InputError, match=said):
        ask()


def test_questions_that_rest_on_few_units_warn() -> None:
    """On few of all units, and on few of those that are taken to differ alike."""
    arm = ARM.copy()
    lone = np.flatnonzero(SCHOOL == "s0")
    arm[lone], arm[lone[0]] = 1, 0
    spiky = Experiment(arm, SCHOOL).ask()
    heavy = pytest.warns(ShoalWarning, match=r"depends on few units: its noise is as for \d+ units")
    with heavy, pytest.warns(ShoalWarning, match="to have equal variances, mostly on 1.5% of them"):
        plan = spiky.effect().plan(BINARY, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        precise = spiky.effect(weights="precision").plan(BINARY, 1)
    assert precise.predicted[0].noise < plan.predicted[0].noise / 2


def test_columns_that_show_other_assignments_warn() -> None:
    """A covariate within which arms never vary; small subgroups; few groups."""
    classes = np.array([f"c{at}" for at in AT // 2 % 60 * 2 + ARM])
    public = {"class": classes, "sex": SEX, "number": AT}
    with pytest.warns(ShoalWarning, match="all units of one value of the covariate 'class' have"):
        Experiment(ARM, covariates=public).ask().effect().plan(BINARY, 1)
    del public["class"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Experiment(ARM, covariates={**public, "x": ARM * AGE}).ask().effect().plan(BINARY, 1)
        study = Experiment(ARM, covariates={"class": classes}, assigned="units")
        study.ask().effect().plan(BINARY, 1)
    both = pytest.warns(ShoalWarning, match="and 6 more depend on few of the units that are")
    with both, pytest.warns(ShoalWarning, match="share one variance, as an arm of a subgroup"):
        Experiment(ARM, covariates={"age": AGE}).ask().effect("age").plan(BINARY, 1)
    few = np.repeat(np.arange(18), 20)
    groups = Experiment(few % 2, assigned=few).ask().effect()
    with pytest.warns(ShoalWarning, match="9 assigned groups in arm 0, and 16 degrees"):
        groups.plan(BINARY, 1)


def test_what_was_not_asked_is_not_answered() -> None:
    """Regressions on some of the columns are free, of groups any; others and names are refused."""
    study = Experiment(ARM, SCHOOL, {"age": AGE, "sex": SEX})
    plan = study.ask().regression(["arm", "age"]).plan(BINARY, 1)
    release = plan.release(ARM ^ (AT // 3 % 2), study, noise=Simulated(1))
    for columns in itertools.chain.from_iterable(
        itertools.permutations(["arm", "age"], many) for many in (1, 2)
    ):
        names = [each.question for each in release.regression(columns)]
        assert names[0] == f"constant in {' + '.join(columns)}"
    with pytest.raises(InputError, match="does not follow from what was released"):
        release.regression(["sex"])
    answers = release.estimate(0.9)
    assert answers[0].question in str(answers)
    assert answers["arm in arm + age"] == answers[1]
    with pytest.raises(InputError, match="no question 'height'"):
        _ = answers["height"]
    with pytest.raises(InputError, match="questions gives no effects of assigned groups"):
        release.estimate(assigned=AT)
    table = answers.table().to_pydict()
    assert table["predicted_standard_error"] == [each.predicted for each in answers]
