"""Loss of Cluster-DP and cluster-free, exactly, on small groups; audits of larger ones."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from shoal.errors import InputError
from shoal.privacy.accounting import account
from shoal.trials import ClusterPrior, Domain, Experiment
from shoal.trials.cluster_prior import PriorChoice, prior_of
from shoal.trials.randomiser import ONE, PART
from shoal.trials.unit_table import PriorPlan
from tests.support.tape import Tape
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


def made(levels: int, part: Fraction, replaced: int, weight: int, bits: int) -> PriorChoice:
    """A choice with a floor that is a part of 1/K."""
    return exact.choice(levels, max(1, math.floor(part * (PART // levels))), replaced, weight, bits)


def stated_loss(chosen: PriorChoice, delta: Fraction) -> Fraction:
    """Of the steps, as accounted."""
    return account(chosen.steps(delta), delta).epsilon


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
            stated = float(stated_loss(made(levels, part, replaced, weight, bits), delta))
            pair = distribution.neighbours(replaced)
            if delta == 0:
                found[False].append(exact.loss(*pair) / stated)
            else:
                found[True].append(exact.hockey_stick(*pair, stated) / float(delta))
    assert len(found[False]) + len(found[True]) >= 500
    assert max(found[False] + found[True]) <= 1 + SLACK
    assert max(found[False]) >= 0.99


@pytest.mark.parametrize("pooled", [False, True], ids=["clusters", "cluster-free"])
def test_a_release_is_what_the_law_is_about(*, pooled: bool) -> None:
    """Two clusters, two arms: one histogram a group, or an arm, and noise drawn once.

    What is released is a function of noisy histograms, and of own outcomes with fair words.
    """
    study = Experiment([0, 0, 0, 1, 1, 1, 0, 1], [0, 0, 1, 0, 1, 1, 1, 0], unit=np.arange(8))
    wanted = ClusterPrior(floor=0.1, noise=4.0, pooled=pooled)
    plan = study.table(Domain.counts(0, 2), 3, mechanism=wanted)
    assert isinstance(plan, PriorPlan)
    rng, shape, chosen = np.random.default_rng(5), (2, 3) if pooled else (4, 3), plan.chosen
    group = study.design.cell_of_unit % 2 if pooled else study.design.cell_of_unit
    step = 2**20 // 4
    for _ in range(50):
        codes = rng.integers(3, size=8)
        counts = np.zeros(shape, dtype=np.int64)
        np.add.at(counts, (group, codes), 1)
        noisy = step * counts + rng.integers(-(2**21), 2**21, size=shape)
        source = Tape(rows=rng.permutation(8), answers=[noisy.ravel().tolist()])
        drawn, words = plan.respond(codes.astype(np.float64), source), source.bits(8, 1)
        (asked,) = (each for each in source.asked if each.kind == "laplace")
        assert (asked.numbers, asked.scale) == (tuple((step * counts).ravel().tolist()), 20)
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
        stated, sigma = float(stated_loss(chosen, Fraction(0))), 4.0
        true = exact.loss(*exact.Distribution(chosen, n).neighbours(replaced))
        assert stated - 1 / sigma + 0.9 / sigma < true <= stated * (1 + SLACK)
    distribution = exact.Distribution(made(2, Fraction(1, 2**28), PART // 2, 3, 2), 2)
    alone = exact.loss(distribution.prior_chances[[1]], distribution.prior_chances[[2]])
    assert math.isclose(alone, 2 * 3 / 4, rel_tol=1e-9)


def test_erratum_13_the_released_prior_tells_the_histogram() -> None:
    """Without noise every histogram has a prior of its own: no loss that floors bound."""
    chosen = made(3, Fraction(1, 10), PART // 2, 2**10, 10)
    for n in range(1, 5):
        steps = exact.histograms(n, 3) * chosen.counts.per_unit
        found = prior_of(steps, np.full(len(steps), n), chosen)
        assert len(np.unique(found, axis=0)) == len(steps)


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
            Domain.counts(0, 2), 3, mechanism=ClusterPrior(floor=floor, noise=noise)
        )
