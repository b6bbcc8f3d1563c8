"""Rows of weights against means of arms, subgroup by subgroup, and numpy.linalg.lstsq."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from shoal.trials import Experiment
from shoal.trials.design import Design
from shoal.trials.questions import weights
from shoal.trials.questions.weights import QuestionEntry, blocks_of, regressors_of

Floats = NDArray[np.float64]

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(5)
N = 120
ARM = np.tile([0, 1, 1], 40)
CLUSTER = np.repeat(np.arange(4), [12, 24, 36, 48])
PUBLIC = {
    "sex": np.where(np.arange(N) // 6 % 2, "girl", "boy"),
    "age": RNG.integers(10, 16, N).astype(float),
}
STUDY = Experiment(ARM, CLUSTER, PUBLIC)
ORDER, DESIGN = STUDY.rows, STUDY.design
Y = RNG.normal(size=N)


def answers(entry: QuestionEntry, design: Design = DESIGN, y: Floats = Y[ORDER]) -> Floats:
    """All questions of an entry, of outcomes of all units."""
    (block,) = blocks_of(design, [entry], 4.0)
    return np.asarray(block.rows[:, design.kind_of_unit] @ y)


def by_hand(inside: NDArray[np.bool_]) -> float:
    """The stratified effect of some units, from means."""
    total = 0.0
    for cluster in range(4):
        here = inside & np.equal(CLUSTER, cluster)
        if not here.any():
            continue
        part = Y[here & (ARM == 1)].mean() - Y[here & (ARM == 0)].mean()
        total += here.sum() / inside.sum() * part
    return float(total)


def test_effects_and_means_are_those_of_the_arms() -> None:
    """Of all units, of subgroups, of clusters; means of arms."""
    assert answers(QuestionEntry.of(kind="effect")) == pytest.approx([by_hand(np.ones(N, bool))])
    sexes = [by_hand(PUBLIC["sex"] == each) for each in ("boy", "girl")]
    assert answers(QuestionEntry.of(kind="effect", by="sex")) == pytest.approx(sexes)
    clusters = [by_hand(np.equal(CLUSTER, each)) for each in range(4)]
    assert answers(QuestionEntry.of(kind="effect", by="cluster")) == pytest.approx(clusters)
    means = [Y[each == ARM].mean() for each in (0, 1)]
    assert answers(QuestionEntry.of(kind="means")) == pytest.approx(means)


@pytest.mark.parametrize("ages", [[8.0, 10.0, 9.5], [False, True]])
def test_numbers_are_names_in_categories(ages: list[Any]) -> None:
    """C() makes a column a value but the first, of numbers, booleans and texts alike."""
    age = np.array(ages)[np.arange(600) // 2 % len(ages)]
    study = Experiment(np.arange(600) % 2, covariates={"age": age})
    labels, columns = regressors_of(study.design, ["arm", "C(age)"])
    rising = sorted(ages)
    assert labels == ["constant", "arm", *(f"C(age) {float(each):g}" for each in rising[1:])]
    codes = np.repeat(study.design.covariate("age").codes, study.design.many)
    found = np.repeat(columns[:, 2:], study.design.many, axis=0)
    assert np.array_equal(found, codes[:, None] == np.arange(1, len(ages)))
    by = study.ask().effect(by="C(age)").regression("arm + C(age)").plan("binary", 1)
    assert by.names[0] == f"effect where C(age) is {float(rising[0]):g}"


def test_one_cluster_makes_no_subgroups() -> None:
    """A question about clusters where none were given is refused."""
    with pytest.raises(InputError, match="all units are in one cluster"):
        Experiment([0, 1] * 9).ask().effect(by="cluster")


def test_other_arms_count_in_shares_only() -> None:
    """n_c has the units of all arms."""
    study = Experiment([0, 1, 2, 0, 1, 2, 2], [0, 0, 0, 1, 1, 1, 1], control=0)
    expected = [-3 / 7, 3 / 7, 0, -4 / 7, 4 / 7, 0]
    assert weights.effect_weights(study.design, 1)[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    "columns", [["arm"], ["arm", "age"], ["arm", "sex", "arm:age", "arm:sex"], ["cluster", "age"]]
)
def test_regressions_are_those_of_lstsq(columns: list[str]) -> None:
    """Coefficients with a constant, dummies of texts and clusters, and products."""
    arm, age = ARM.astype(float), PUBLIC["age"]
    girl = (PUBLIC["sex"] == "girl").astype(float)
    values = {
        "arm": [arm], "age": [age], "sex": [girl], "arm:age": [arm * age], "arm:sex": [arm * girl],
        "cluster": [(each == CLUSTER).astype(float) for each in (1, 2, 3)],
    }  # fmt: skip
    x = np.column_stack([np.ones(N), *(each for name in columns for each in values[name])])
    wanted = np.linalg.lstsq(x, Y, rcond=None)[0]
    found = answers(QuestionEntry.of(kind="regression", columns=tuple(columns)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


def test_lengths_are_those_of_all_units() -> None:
    """Also of weights whose squares are no floating-point numbers."""
    rows = RNG.normal(size=(3, 50))
    many = RNG.integers(1, 9, 50)
    wanted = np.linalg.norm(np.repeat(rows, many, axis=1), axis=1)
    np.testing.assert_allclose(weights.lengths(rows, many), wanted, rtol=1e-13)
    np.testing.assert_allclose(weights.lengths(rows * 1e-200, many), wanted * 1e-200, rtol=1e-13)


@pytest.mark.parametrize(("ratio", "epsilon"), [(1.0, 0.3), (4.0, 0.3), (4.0, 1.0), (1.0, 8.0)])
def test_precision_shares_have_the_least_variance(ratio: float, epsilon: float) -> None:
    """Against SciPy's minimum of sum w^2/h + 2 (r/eps)^2 t^2 with w_c <= t m_c, sum w = 1."""
    sizes = np.array([[3, 30], [20, 20], [50, 4], [9, 10]])
    harmonic, least = 1 / (1 / sizes).sum(axis=1), sizes.min(axis=1)

    def variance(w: Floats) -> float:
        return float((w**2 / harmonic).sum() + 2 * (ratio / epsilon * (w / least).max()) ** 2)

    found = weights.precision_shares(sizes, ratio / epsilon)
    assert found.sum() == pytest.approx(1)
    shares = minimize(
        lambda z: float((z[:4] ** 2 / harmonic).sum() + 2 * (ratio / epsilon * z[4]) ** 2),
        np.r_[found, (found / least).max()] * 1.01,
        constraints=[
            {"type": "eq", "fun": lambda z: z[:4].sum() - 1},
            {"type": "ineq", "fun": lambda z: z[4] * least - z[:4]},
        ],
        bounds=[(0, None)] * 5,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x[:4]
    assert variance(found) <= variance(shares) * (1 + 1e-6)


def test_names_are_made_of_labels() -> None:
    """Of every kind of question the parts of its name are columns of the table, in this order."""
    at = np.arange(120)
    public = {"sex": np.where(at // 3 % 2, "f", "m"), "age": at % 5}
    study = Experiment(at % 3, covariates=public, control=2)
    asked = study.ask().effect().effect(by="sex").means().regression("arm + age")
    plan = asked.plan("binary", 9)
    table = plan.release(at % 2, study, noise=Simulated(1)).table()
    assert table.column_names == [
        *("question", "statistic", "arm", "control", "by", "subgroup"),
        *("value", "low", "high", "standard_error", "predicted_standard_error"),
    ]
    rows = [tuple(each.values())[:6] for each in table.to_pylist()]
    assert rows[0] == ("effect of 0", "effect", "0", "2", "", "")
    assert rows[3] == ("effect of 0 where sex is m", "effect", "0", "2", "sex", "m")
    assert rows[6] == ("mean of arm 2", "mean", "2", "", "", "")
    assert rows[9] == ("constant in arm + age", "coefficient", "", "", "arm + age", "constant")
