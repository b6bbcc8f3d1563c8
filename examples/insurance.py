"""What privacy costs in a real experiment: simulated releases beside an estimate without it.

The households of Cai, de Janvry and Sadoulet (2015) are public data, which come with
`pip install "shoal[trials]"`, so that releases can be compared with what they hide. Nothing here is
private, no budget is spent.
"""

from __future__ import annotations

import warnings

import numpy as np
from causaldata import social_insure

import shoal
from shoal import trials
from shoal.errors import ShoalWarning

DOMAIN, EPSILONS = trials.Domain.binary(), (0.5, 1, 2, 4, 8)


def plans(study: trials.Experiment, epsilon: float) -> dict[str, trials.Plan]:
    """One of each kind, at the same loss."""
    prior = trials.ClusterPrior(floor=0.25, noise=10 / epsilon)
    return {
        "best table": study.table(DOMAIN, epsilon),
        "Cluster-DP, floor 1/4": study.table(DOMAIN, epsilon, mechanism=prior),
        "histogram": study.histogram(DOMAIN, epsilon),
        "effect, asked": study.ask().effect().plan(DOMAIN, epsilon),
    }


def estimates(plan: trials.Plan, outcomes: list[np.ndarray]) -> np.ndarray:
    """Value and both ends of the 95% interval, one release for each column of outcomes."""
    found = []
    for seed, each in enumerate(outcomes):
        effect = plan.read(plan.respond(each, shoal.Simulated(seed)), 0.95)[0]
        # Of answers to questions there is one interval, of tables that for these units.
        ends = getattr(effect, "finite_population", effect).interval
        found.append((effect.value, *ends))
    return np.array(found).T


def main(releases: int = 5) -> None:
    """The effect of a form that says "buy", and none where outcomes are shuffled in villages.

    Five releases show how it goes; a thousand take two minutes.
    """
    warnings.simplefilter("ignore", ShoalWarning)
    farmers = social_insure.load_pandas().data  # type: ignore[no-untyped-call]
    study = trials.Experiment(farmers["default"], farmers["village"], single_arm="drop")
    bought = farmers["takeup_survey"].to_numpy(float)[study.rows]
    cell, sizes = study.design.cell_of_unit, study.design.sizes
    mean = (np.bincount(cell, bought) / sizes.ravel()).reshape(sizes.shape)
    plain = float((mean[:, 1] - mean[:, 0]) @ sizes.sum(axis=1) / sizes.sum())
    random = np.random.default_rng(1)
    shuffled = [bought[np.lexsort((random.random(len(cell)), cell // 2))] for _ in range(releases)]
    print(f"{plain:.3f} without privacy; distance of releases (root mean square), how often they")
    print("tell the effect from 0, and how often they cover 0 where outcomes are shuffled")
    for epsilon in EPSILONS:
        for name, plan in plans(study, epsilon).items():
            value, low, high = estimates(plan, [bought] * releases)
            _, least, most = estimates(plan, shuffled)
            error, found = np.sqrt(((value - plain) ** 2).mean()), ((low > 0) | (high < 0)).mean()
            covers = ((least <= 0) & (most >= 0)).mean()
            print(f"epsilon {epsilon:<4}{name:<24}{error:.3f}{found:7.0%}{covers:9.1%}")


if __name__ == "__main__":
    main()
