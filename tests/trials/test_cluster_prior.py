"""Loss of Cluster-DP and cluster-free, exactly, on small groups; audits of larger ones."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.privacy.noise import OperatingSystem, Simulated
from shoal.trials import ClusterPrior, Experiment, Space
from shoal.trials.cluster_prior import PriorChoice, prior_of
from shoal.trials.randomiser import ONE, PART, with_prior
from shoal.trials.unit_table import PriorPlan
from tests.cells.test_audit import lower_bound
from tests.trials import exact_priors as exact

pytestmark = pytest.mark.property

SLACK = 1e-11
DELTAS = [Fraction(0), Fraction(1, 1000), Fraction(1, 10)]
REPLACED = [PART // 4, PART // 2, PART * 9 // 10]
# Parts of 1/K; 2^-31 is the least floor there is.
FLOORS = [Fraction(1, 2**28), Fraction(1, 10), Fraction(1, 2), Fraction(99, 100), Fraction(1)]
# Cells of one level: K = 3 has the cube of them.
MOST_CELLS = {2: 24, 3: 9}
WEIGHTS = [(1, 1), (1, 3), (2, 1), (3, 2), (3, 5), (4, 1)]
AUDITED = 12_000


def made(levels: int, part: Fraction, replaced: int, weight: int, bits: int) -> PriorChoice:
    """A choice with a floor that is a part of 1/K."""
    return exact.choice(
        levels, max(1, math.floor(part * (PART // levels))), replaced, weight, bits
    )


@pytest.mark.parametrize("levels", [2, 3])
def test_no_group_loses_more_than_stated(levels: int) -> None:
    """All neighbours, priors and responses of groups of up to four.

    Epsilon is attained in full: by priors that are all but uniform, which still tell the histogram.
    """
    found: dict[bool, list[float]] = {False: [], True: []}
    for n, (bits, weight), part in itertools.product(range(1, 5), WEIGHTS, FLOORS):
        if weight * n > MOST_CELLS[levels]:
            continue
        distribution = exact.Distribution(made(levels, part, PART // 2, weight, bits), n)
        for replaced, delta in itertools.product(REPLACED, DELTAS):
            stated = float(made(levels, part, replaced, weight, bits).epsilon(delta))
            pair = distribution.neighbours(replaced)
            if delta == 0:
                found[False].append(exact.loss(*pair) / stated)
            else:
                found[True].append(exact.hockey_stick(*pair, stated) / float(delta))
    assert len(found[False]) + len(found[True]) >= 500
    assert max(found[False] + found[True]) <= 1 + SLACK
    assert max(found[False]) >= 0.99


@pytest.mark.parametrize(("levels", "n", "weight"), [(2, 3, 2), (3, 3, 1)])
def test_all_responses_say_no_more_than_the_own(levels: int, n: int, weight: int) -> None:
    """All outcome vectors and all responses lose what prior and own response lose."""
    chosen = made(levels, Fraction(1, 10), PART // 2, weight, 2)
    distribution = exact.Distribution(chosen, n)
    everything, own = exact.whole(chosen, n), distribution.neighbours(chosen.replaced)
    assert np.allclose(everything[0].sum(axis=1), 1, rtol=0, atol=1e-12)
    assert math.isclose(exact.loss(*everything), exact.loss(*own), rel_tol=1e-11)
    sticks = [exact.hockey_stick(*pair, 0.5) for pair in (everything, own)]
    assert math.isclose(*sticks, rel_tol=1e-9, abs_tol=1e-12)


class Scripted(Simulated):
    """Noise and words that the test chose; keeps what it was asked to protect."""

    def __init__(self, noise: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
        super().__init__(0)
        object.__setattr__(self, "chosen", (noise, words))
        object.__setattr__(self, "seen", [])

    def add_laplace(self, steps: list[int], lattice_bits: int, draw: int = 0) -> list[int]:
        """The chosen noise."""
        assert draw == 0
        self.seen.append((steps, lattice_bits))
        return [int(x) + int(z) for x, z in zip(steps, self.chosen[0], strict=True)]

    def bits(self, size: int, draw: int) -> NDArray[np.uint64]:
        """The chosen words; outcomes on a level need none."""
        return self.chosen[1] if draw else np.zeros(size, dtype=np.uint64)


@pytest.mark.parametrize("pooled", [False, True], ids=["clusters", "cluster-free"])
def test_a_release_is_what_the_law_is_about(*, pooled: bool) -> None:
    """Two clusters, two arms: one histogram a group, or an arm, and noise drawn once.

    What is released is a function of noisy histograms, and of own outcomes with fair words.
    """
    study = Experiment([0, 0, 0, 1, 1, 1, 0, 1], [0, 0, 1, 0, 1, 1, 1, 0], unit=np.arange(8))
    asked = ClusterPrior(floor=0.1, noise=4.0, pooled=pooled)
    plan = study.table(Space.counts(0, 2), 3, mechanism=asked)
    assert isinstance(plan, PriorPlan)
    rng, shape, chosen = np.random.default_rng(5), (2, 3) if pooled else (4, 3), plan.chosen
    group = study.design.cell_of_unit % 2 if pooled else study.design.cell_of_unit
    step = 2**20 // 4
    for _ in range(50):
        codes = rng.integers(3, size=8)
        words = rng.integers(2**64, size=8, dtype=np.uint64)
        noise = rng.integers(-(2**21), 2**21, size=shape)
        source = Scripted(noise.ravel(), words)
        drawn = plan.draw(codes.astype(np.float64), source)
        counts = np.zeros(shape, dtype=np.int64)
        np.add.at(counts, (group, codes), 1)
        assert source.seen == [((step * counts).ravel().tolist(), 20)]
        noisy = step * counts + noise
        prior = prior_of(noisy, counts.sum(axis=1), chosen)
        assert (plan.priors(drawn.histogram) == prior).all()
        assert (prior >= chosen.floor).all()
        assert (prior.sum(axis=1) == PART).all()
        for unit in range(8):
            own = prior[group[unit]] * chosen.replaced
            own[codes[unit]] += (PART - chosen.replaced) * PART
            assert own.sum() == ONE
            value = int(words[unit]) >> 2
            assert drawn.responses[unit] == np.searchsorted(np.cumsum(own), value, side="right")


def test_erratum_12_the_printed_loss_is_exceeded() -> None:
    """Two levels, one group: the histogram alone costs 2/sigma, and with the response more."""
    for n, replaced in itertools.product((1, 2), REPLACED):
        chosen = made(2, Fraction(99, 100), replaced, 1, 2)
        stated, sigma = float(chosen.epsilon(Fraction(0))), 4.0
        true = exact.loss(*exact.Distribution(chosen, n).neighbours(replaced))
        assert stated - 1 / sigma + 0.9 / sigma < true <= stated * (1 + SLACK)
    distribution = exact.Distribution(made(2, Fraction(1, 2**28), PART // 2, 3, 2), 2)
    alone = exact.loss(distribution.prior_chances[[1]], distribution.prior_chances[[2]])
    assert math.isclose(alone, 2 * 3 / 4, rel_tol=1e-9)


def test_erratum_13_the_released_prior_tells_the_histogram() -> None:
    """Without noise every histogram has a prior of its own: no loss that floors bound."""
    chosen = made(3, Fraction(1, 10), PART // 2, 2**10, 10)
    for n in range(1, 5):
        steps = exact.histograms(n, 3) * chosen.weight
        found = prior_of(steps, np.full(len(steps), n), chosen)
        assert len(np.unique(found, axis=0)) == len(steps)


def scores(counts: NDArray[np.int64], own: int, chosen: PriorChoice) -> NDArray[np.float64]:
    """Draws of a group, as an attacker scores them who knows all but one outcome, 0 or 1.

    The likelihood ratio of the prior, taken for the noisy shares, and that of the own response.
    """
    levels = len(counts)
    unit, n = np.eye(levels, dtype=np.int64), int(counts.sum()) + 1
    steps, source = np.tile((counts + unit[own]) * chosen.weight, AUDITED), OperatingSystem()
    noisy = np.array(source.add_laplace(steps.tolist(), chosen.lattice_bits))
    prior = prior_of(noisy.reshape(AUDITED, -1), np.full(AUDITED, n), chosen)
    words = source.bits(AUDITED, 0)
    given = np.array(
        [
            with_prior(np.arange(float(levels)), chosen.replaced, row).respond(
                np.array([own]), word
            )[0]
            for row, word in zip(prior, words[:, None], strict=True)
        ]
    )
    apart = [np.abs(prior / PART * n - counts - unit[y]).sum(axis=1) for y in (0, 1)]
    share = chosen.replaced / PART
    drawn = share * prior[np.arange(AUDITED), given] / PART
    chance = [drawn + (1 - share) * (given == y) for y in (0, 1)]
    sigma = 2**chosen.lattice_bits / chosen.weight
    return np.asarray((apart[1] - apart[0]) / sigma + np.log(chance[0] / chance[1]))


@pytest.mark.parametrize(
    ("counts", "part", "replaced"),
    [([9, 10], Fraction(9, 10), PART * 3 // 4), ([0, 40, 0, 0], Fraction(1, 2), PART * 4 // 5)],
)
def test_no_audit_of_larger_groups_finds_more(
    counts: list[int], part: Fraction, replaced: int
) -> None:
    """A proven lower bound of the loss stays below the stated one, alarm rate 1e-9."""
    chosen = made(len(counts), part, replaced, 2**9, 10)
    one, other = (scores(np.array(counts), own, chosen) for own in (0, 1))
    found, stated = lower_bound(one, other), float(chosen.epsilon(Fraction(0)))
    assert 0.1 * stated <= found <= stated


@pytest.mark.parametrize(
    ("floor", "noise", "words"),
    [
        (0.0, 4.0, "floor"),
        (0.5, 4.0, "at most 1/3"),
        (0.1, 0.001, "noise"),
        (0.1, 0.5, "costs 4"),
    ],
)
def test_unusable_priors_are_refused(floor: float, noise: float, words: str) -> None:
    """Floors above 1/K, and noise whose cost is more than epsilon."""
    with pytest.raises(InputError, match=words):
        Experiment([0, 1] * 9).table(
            Space.counts(0, 2), 3, mechanism=ClusterPrior(floor=floor, noise=noise)
        )
