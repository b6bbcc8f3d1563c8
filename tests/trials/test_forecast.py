"""Plans of trials: powers against simulation, distributions of n and epsilon, tables and texts."""

import json
import math
import os
from fractions import Fraction

import numpy as np
import pytest

from shoal import documents
from shoal.data.outcome_space import Space
from shoal.errors import InputError
from shoal.theory.trial_variance import of_noisy_differences, of_noisy_histograms
from shoal.trials.choose import choose
from shoal.trials.expected import Expected
from shoal.trials.forecast import even, plan
from shoal.trials.horvitz_thompson import NoisyHorvitzThompson
from shoal.trials.mechanism_forecasts import NAMES
from shoal.trials.questions.questions import Questions
from tests.support.loop import loop_over

pytestmark = pytest.mark.unit

RUNS = 2_000_000 if os.environ.get("SHOAL_FULL") else 200_000
ALARM = 6.11
PAPER = Space.counts(-5, 6)


def test_power_is_how_often_the_effect_is_found() -> None:
    """Uniform prior, binary outcomes: intervals of simulated trials; a wrong power is rejected."""
    rate, effect = 0.4, 0.12
    found = plan(
        3000, Space.binary(), epsilon=1, expected=Expected.binary(rate), effect=effect
    )  # fmt: skip
    forecast = found["uniform_prior"]
    assert forecast.parameters is not None
    lam, error = forecast.parameters.lam, forecast.standard_error[1]
    random = np.random.default_rng(5)
    means = [
        (random.binomial(1500, lam / 2 + (1 - lam) * p, RUNS) / 1500 - lam / 2) / (1 - lam)
        for p in (rate - effect / 2, rate + effect / 2)
    ]
    measured = float((np.abs(means[1] - means[0]) > 1.959964 * error).mean())
    power = found.power_of("uniform_prior")
    assert power is not None
    # 1/2 of a hundredth for steps of 1/1500 and for the effect's own part of the variance.
    capacity = ALARM * math.sqrt(0.25 / RUNS) + 0.005
    assert abs(measured - power) < capacity
    other = plan(3000, Space.binary(), epsilon=1.2, effect=effect).power_of("uniform_prior")
    assert other is not None
    assert abs(measured - other) > capacity


def test_detectable_is_the_effect_with_the_power() -> None:
    """One inverts the other, for every mechanism."""
    found = plan(2000, PAPER, clusters=4, epsilon=2, effect=0.3, power=0.9, confidence=0.9)
    for name in NAMES:
        again = plan(
            2000, PAPER, clusters=4, epsilon=2, effect=found.detectable(name), confidence=0.9
        )
        power = again.power_of(name)
        assert power is not None
        assert math.isclose(power, 0.9, rel_tol=1e-9)
    assert plan(2000, PAPER, epsilon=2).power_of("uniform_prior") is None


def test_units_and_losses_buy_precision() -> None:
    """Errors fall with n and epsilon; without privacy and with units by the root of n."""
    found = plan(1000, PAPER, clusters=2, epsilon=1)
    table = found.against(n=[1000, 4000, 16000], epsilon=[0.5, 1, 2, 4]).to_pandas()
    for name in NAMES:
        error = table[table["mechanism"] == name].pivot_table(
            index="n", columns="epsilon", values="standard_error"
        )
        values = error.to_numpy()
        assert values.shape == (3, 4)
        assert (np.diff(values, axis=0) < 0).all()
        assert (np.diff(values, axis=1) <= 1e-12).all()
        if name in NAMES[:3]:
            assert np.allclose(values[:-1] / values[1:], 2, rtol=1e-6)
        elif name in NAMES[5:7]:
            # Noise of aggregates falls by n, so their errors fall faster than by its root.
            assert (values[:-1] / values[1:] > 2).all()


def test_aggregates_have_the_variance_of_their_noise() -> None:
    """Corrected formulas: what is spent on the standard error makes it larger, not smaller."""
    sizes = np.array([[60, 40], [500, 500]])
    expected = Expected(0.5, 2.0, 0.2)
    found = plan(sizes, PAPER, epsilon=1, expected=expected)
    plain = found["no_privacy"].standard_error[0] ** 2
    centred = PAPER.array - PAPER.array.mean()
    for name, formula in (
        ("noisy_horvitz_thompson", of_noisy_differences(sizes, PAPER.width, 1.0)),
        ("noisy_histogram", of_noisy_histograms(sizes, centred, 1.0)),
    ):
        added = found[name].standard_error[0] ** 2 - plain
        assert formula * (1 - 1e-3) < added < 4 * formula


def test_units_are_what_choose_predicts() -> None:
    """The same parameters and standard errors, mechanism by mechanism."""
    sizes = np.array([[200, 200]] * 3)
    expected = Expected(0.5, 2.5, 0.99)
    for delta in (Fraction(0), Fraction(3, 10)):
        found = plan(sizes, PAPER, epsilon=2, delta=delta, expected=expected)
        for name, pooled, sigma in (
            ("uniform_prior", True, math.inf),
            ("cluster_free", True, None),
            ("cluster_dp", False, None),
        ):
            choice = choose(
                sizes, PAPER, epsilon=Fraction(2), delta=delta, pooled=pooled, sigma=sigma,
                expected=expected,
            )  # fmt: skip
            assert found[name].parameters == choice.parameters
            assert found[name].standard_error == pytest.approx(choice.standard_error, rel=1e-12)
        pays = delta > 0
        assert found.recommended.mechanism == ("cluster_dp" if pays else "best_table")
        assert ("cluster_dp: no histogram" in str(found)) is not pays


def test_three_arms_and_unequal_shares() -> None:
    """Shares make the groups; the error is the root mean square over both effects."""
    found = plan(
        1000, Space.binary(), clusters=3, shares=[2, 1, 1], epsilon=1,
        expected=Expected.binary(0.5),
    )  # fmt: skip
    assert found.sizes.sum() == 1000
    assert np.abs(found.sizes.sum(axis=0) - [500, 250, 250]).max() <= 3
    w = found.sizes.sum(axis=1) / 1000
    truth = (w**2 @ (0.25 / found.sizes[:, 0] + 0.125 * (1 / found.sizes[:, 1:]).sum(axis=1))).sum()
    assert math.isclose(found["no_privacy"].standard_error[0] ** 2, truth, rel_tol=1e-9)


def test_text_table_and_document_agree() -> None:
    """Every number of the text and of the document is one of the table."""
    found = plan(3500, PAPER, clusters=3, epsilon=1, effect=1)
    table = found.table().to_pylist()
    assert [row["mechanism"] for row in table] == list(NAMES)
    text = str(found)
    # G-TRIAL-COVERAGE: without clusters nothing shows how units were assigned.
    assert "units were assigned one by one (within clusters, if given)" in text
    for row in table:
        assert f"{row['standard_error']:.3g}" in text
        assert f"{row['detectable']:.3g}" in text
        assert row["least_standard_error"] <= row["standard_error"]
    assert found.recommended.reason in text
    document = found.to_document()
    assert json.loads(json.dumps(document)) == document
    assert documents.digest(document) == documents.digest(
        plan(3500, PAPER, clusters=3, epsilon=1, effect=1).to_document()
    )
    rows = document["mechanisms"]
    assert [row["standard_error"] for row in rows] == [row["standard_error"] for row in table]
    assert found.standard_errors.shape == (9, 2)
    assert found.standard_errors[:, 1].tolist() == [row["standard_error"] for row in table]


def test_every_purpose_has_the_least_error_of_all_releases() -> None:
    """No release that has an interval errs less, by hand none less than noise explains."""
    for sizes, epsilon in (
        (even(6000, 30, [1, 1]), 1), (even(600, 300, [1, 1]), 1), (even(600, 1, [1, 1, 1]), 4),
        (even(4000, 8, [1, 1, 1, 1, 1]), Fraction(1, 2)), (even(200, 2, [3, 1]), 20),
    ):  # fmt: skip
        found = plan(sizes, PAPER, epsilon=epsilon)
        private = [each for each in found.forecasts if each.mechanism != "no_privacy"]
        effect = found.recommend("effect").standard_error[1]
        least = min(each.standard_error[1] for each in private if each.releases != "one number")
        assert effect**2 <= least**2 / 0.98
        plain, by_hand = found["no_privacy"], found["laplace_by_hand"]
        asked = found["questions"]
        for at in (0, 1):
            sampling = plain.standard_error[at] ** 2
            noise = [each.standard_error[at] ** 2 - sampling for each in (asked, by_hand)]
            assert 0 < noise[0] <= 1.4 * noise[1]
        assert found.recommend("table") is found.recommended
        assert str(found).count("recommended for") == len(found.purposes)
        if len(sizes) > 1:
            by_cluster = [
                each.cluster_error[1] for each in private if not math.isnan(each.cluster_error[1])
            ]
            chosen = found.recommend("clusters").cluster_error[1]
            assert chosen**2 <= min(by_cluster) ** 2 / 0.98
        else:
            assert found.purposes == ("effect", "table")
            with pytest.raises(InputError, match="purpose"):
                found.recommend("clusters")


def test_questions_are_forecast_as_their_plan_says() -> None:
    """The noise of a plan of these questions is at most the forecast's, and not far below."""
    for clusters, arms in ((1, 2), (4, 3), (1, 5)):
        sizes = even(1200, clusters, [1] * arms)
        arm = np.concatenate([np.repeat(np.arange(arms), row) for row in sizes])
        cluster = np.repeat(np.arange(clusters), sizes.sum(axis=1))
        made = Questions(arm, cluster).effect().plan(Space.binary(), 1)
        noise = math.sqrt(np.mean([each.noise**2 for each in made.predicted]))
        forecast = plan(sizes, Space.binary(), epsilon=1, expected=Expected.binary(0.5))
        sampling = forecast["no_privacy"].standard_error[1] ** 2
        told = math.sqrt(forecast["questions"].standard_error[1] ** 2 - sampling)
        assert 0.84 * told < noise < 1.001 * told


def test_effects_by_cluster_are_those_of_their_groups() -> None:
    """Binary outcomes of a known rate: the mean over clusters of what each group varies."""
    sizes, rate = np.array([[20, 30], [200, 100]]), 0.3
    found = plan(sizes, Space.binary(), epsilon=2, expected=Expected.binary(rate))
    forecast = found["uniform_prior"]
    assert forecast.parameters is not None
    lam = forecast.parameters.lam
    answered = lam / 2 + (1 - lam) * rate
    variance = answered * (1 - answered) / (1 - lam) ** 2
    truth = math.sqrt(np.mean((variance / sizes).sum(axis=1)))
    assert forecast.cluster_error == pytest.approx((truth, truth), rel=1e-9)
    noisy = found["noisy_horvitz_thompson"].cluster_error[0] ** 2
    made = NoisyHorvitzThompson.plan(sizes, Space.binary().levels, Fraction(2))
    plain = np.mean((rate * (1 - rate) / sizes).sum(axis=1))
    assert noisy == pytest.approx(plain + made.noise_variance.mean(), rel=1e-9)


def test_aggregates_that_do_not_fit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lattice that 64-bit integers cannot hold takes one mechanism out of the plan."""

    def refuse(*_: object) -> None:
        raise InputError("a loss", "numbers that fit", "ask for another loss")

    monkeypatch.setattr(NoisyHorvitzThompson, "plan", refuse)
    found = plan(1000, PAPER, epsilon=1)
    names = [name for name in NAMES if name != "noisy_horvitz_thompson"]
    assert [each.mechanism for each in found.forecasts] == names
    assert found.table()["mechanism"].to_pylist() == names
    with pytest.raises(InputError, match="one of"):
        found["noisy_horvitz_thompson"]


def test_even_groups() -> None:
    """All units, groups within one unit of their share."""
    for n, clusters, shares in ((11, 2, [1.0, 1.0]), (1001, 7, [0.2, 0.3, 0.5]), (4, 2, [1, 1])):
        sizes = even(n, clusters, shares)
        assert sizes.sum() == n
        assert np.ptp(sizes.sum(axis=1)) <= 1
        part = np.array(shares) / sum(shares)
        assert (np.abs(sizes - sizes.sum(axis=1, keepdims=True) * part) < 1.01).all()


@loop_over(
    "changed",
    [
        {"sizes": 3, "clusters": 2},
        {"sizes": 0},
        {"sizes": True},
        {"clusters": 0},
        {"clusters": 1.5},
        {"shares": [1.0]},
        {"shares": [1.0, 0.0]},
        {"shares": [1.0, math.nan]},
        {"sizes": [[5, 5]], "clusters": 2},
        {"sizes": [[5, 5]], "shares": [0.5, 0.5]},
        {"sizes": [[5, 0]]},
        {"epsilon": 0},
        {"delta": 1},
        {"confidence": 1.0},
        {"power": 0.01},
        {"effect": math.nan},
        {"expected": Expected(9.0, 1.0)},
    ],
)
def test_unusable_plans_are_explained(changed: dict[str, object]) -> None:
    """Nothing is guessed."""
    arguments: dict[str, object] = {"sizes": 1000, "space": PAPER, "epsilon": 1, **changed}
    with pytest.raises(InputError):
        plan(**arguments)
