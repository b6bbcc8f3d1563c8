"""Variances of effects over that of a uniform prior, at equal true loss: where clusters pay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from shoal.trials.expected import Expected
from shoal_studies import paper_003 as paper
from shoal_studies.paper_003 import Mixture, Point
from shoal_studies.paper_003_mechanisms import (
    DELTA,
    NoisyDifferences,
    NoisyHistograms,
    Randomised,
    public_choice,
)
from shoal_studies.registry import Losses, Repetitions, Seed, bench
from shoal_studies.simulate import Effort

EPSILONS = [0.5, 1.0, 2.0, 4.0, 8.0]
_BETAS = (0.5, 2.5, 4.5)
_SCALES = (0.1, 1.0, 10.0)
_POPULATIONS = 5
# Floors as parts of 1/K, and shares of epsilon for the histogram.
_FLOORS = (0.1, 0.4, 0.75)
_SHARES = (0.02, 0.1)
_PAYS = 0.98
_TOLERANCE = 1.02
_TOLD = "told"
_COLUMNS = {
    paper.FREE: "free", paper.CLUSTER: "cluster", paper.OURS_ALL: "all", paper.OURS: "auto",
    _TOLD: _TOLD, paper.DIFFERENCES: "noisy HT", paper.HISTOGRAMS: "noisy hist",
}  # fmt: skip


@bench("trials")
def trials(
    repetitions: Repetitions = 2000, epsilon: Losses = EPSILONS, seed: Seed = 0
) -> Iterator[str]:
    """Compare variances of trial mechanisms at equal loss: where clusters pay, and where not.

    Ratios to a uniform prior on all levels with the same true loss, simulated and predicted.
    Gaussian mixtures of paper 003, three clusters, beta between clusters of a variance of 5.
    `free` and `cluster` are the best of 6 floors and noises with the outcomes in hand, on all
    levels; `all` and `auto` are chosen from public facts alone (on all levels, on some), `told`
    from the true mean, deviation and share between clusters.

    Example: shoal bench trials --repetitions 500 --epsilon 1
    """
    each = max(2, repetitions // _POPULATIONS)
    many = each * _POPULATIONS
    yield (
        f"variance over that of a uniform prior on all 12 levels, delta {float(DELTA):g}; "
        f"simulated/predicted, {many:,} realisations a figure (+- {2 * many**-0.5:.0%})"
    )
    names = "".join(name.rjust(19) for name in _COLUMNS.values())
    yield f"{'clusters':<16}{'beta':>5}{'epsilon':>8}{names}"
    ratios: dict[str, dict[str, float]] = {name: {} for name in _COLUMNS}
    for scale, beta, loss in product(_SCALES, _BETAS, epsilon):
        sizes = tuple(round(scale * size) for size in paper.SIZES)
        points = list(_points(Mixture(beta, sizes), loss, seed))
        found = paper.measure(points, Effort(1, seed), size=(_POPULATIONS, each)).least()
        base = found.of(paper.UNIFORM)
        where = "/".join(map(str, sizes))
        shown = ""
        for name, known in ratios.items():
            curve = found.of(name)
            known[f"{where} beta {beta:g} epsilon {loss:g}"] = float(curve.over(base)[0])
            simulated = curve.variance.mean() / base.variance.mean()
            shown += f"{simulated:.3g}/{curve.over(base)[0]:.3g}".rjust(19)
        yield f"{where:<16}{beta:>5g}{loss:>8g}{shown}"
    for name in paper.FREE, paper.CLUSTER:
        pays = "; ".join(f"{at}: {each:.2f}" for at, each in ratios[name].items() if each < _PAYS)
        yield f"best {_COLUMNS[name]} prior more than 2% below uniform: {pays or 'nowhere'}"
    free = ratios[paper.FREE]
    cluster = ratios[paper.CLUSTER]
    better = sum(cluster[at] < _PAYS * free[at] for at in free)
    yield f"best cluster prior more than 2% below best free prior: {better} of {len(free)} lines"
    for name in paper.OURS_ALL, paper.OURS, _TOLD:
        worst = max(ratios[name].values())
        word = "never" if worst <= _TOLERANCE else "at times"
        yield (
            f"choice {_COLUMNS[name]}: at most {worst:.3f} times a uniform prior, {word} above 1.02"
        )


def _points(setting: Mixture, epsilon: float, seed: int) -> Iterator[Point]:
    units = setting.population((seed, 0))
    yield from paper.prior(paper.UNIFORM, 0.0, setting, epsilon)
    for (floor, share), name in product(product(_FLOORS, _SHARES), (paper.FREE, paper.CLUSTER)):
        sigma = round(2 / (share * epsilon), 6)
        yield from paper.prior(name, 0.0, setting, epsilon, floor, sigma)
    step = 2 * paper.SPREAD**0.5 / paper.REACH
    told = Expected(0.5, paper.SPREAD**0.5 / step, setting.beta / paper.SPREAD)
    for name, chosen in (
        (paper.OURS_ALL, public_choice(units, epsilon, "all")),
        (paper.OURS, public_choice(units, epsilon)),
        (_TOLD, public_choice(units, epsilon, expected=told)),
    ):
        yield Point(name, 0.0, setting, Randomised(chosen))
    yield Point(paper.DIFFERENCES, 0.0, setting, NoisyDifferences(epsilon))
    yield Point(paper.HISTOGRAMS, 0.0, setting, NoisyHistograms(epsilon))
