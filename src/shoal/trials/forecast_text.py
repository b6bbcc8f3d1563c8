"""A trial's plan in words and columns."""

from collections.abc import Iterator

from shoal.files.text_table import aligned
from shoal.privacy.budget import show
from shoal.trials.forecast_facts import CLUSTERS, EFFECT, ForecastFacts
from shoal.trials.mechanism_forecasts import ANSWERS, Forecast

COLUMNS = ("mechanism", "releases", "standard error", "detectable", "power", "levels")
_FOR = {
    "effect": "for the effects of arms alone",
    "clusters": "for effects by cluster (root mean square over clusters)",
    "table": "for a table of units, of which any later analysis is free (the effect)",
}


def describe(plan: ForecastFacts) -> str:
    """Head, one aligned row a mechanism, and what is recommended."""
    rows = [COLUMNS, *(_row(plan, each) for each in plan.forecasts)]
    return "\n".join([_head(plan), *aligned(rows, left=2), *_notes(plan)])


def _head(plan: ForecastFacts) -> str:
    clusters, arms = plan.sizes.shape
    loss = f"epsilon {show(plan.charge.epsilon)}"
    if plan.charge.delta:
        loss += f", delta {show(plan.charge.delta)}"
    groups = "1 cluster" if clusters == 1 else f"{clusters} clusters"
    return f"trial of {plan.n} units in {groups}, {arms} arms, {loss} for one outcome"


def _row(plan: ForecastFacts, each: Forecast) -> tuple[str, ...]:
    low, high = (f"{error:.3g}" for error in each.standard_error)
    power = plan.power_of(each.mechanism)
    return (
        each.mechanism,
        each.releases,
        low if low == high else f"{low} to {high}",
        f"{plan.detectable(each.mechanism):.3g}",
        "" if power is None else f"{power:.0%}",
        f"{each.levels}",
    )


def _recommended(plan: ForecastFacts) -> Iterator[str]:
    """A line a purpose: what to take, what it errs, and how that is beside no privacy."""
    for purpose in plan.purposes:
        at, best = int(purpose == CLUSTERS), plan.recommend(purpose)
        (low, high), most = best.errors[at], plan.forecasts[0].errors[at][1]
        error = f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
        yield (
            f"recommended {_FOR[purpose]}: {best.mechanism}, a standard error of {error}; the "
            f"largest is {high / most:.2f} times that without privacy"
        )
    if plan.recommend(EFFECT).releases == ANSWERS:
        yield "questions: `shoal trial ask --effect`, in Python Questions(...).effect()"


def _notes(plan: ForecastFacts) -> Iterator[str]:
    known = "what was expected" if plan.expected else "any of a family of expectations"
    best = plan.recommended
    yield f"standard errors of the effect under {known}, constant effect; the largest counts"
    yield (
        "units were assigned one by one (within clusters, if given); if whole clusters were, "
        "errors are larger: release a table of units, and estimate with assigned="
    )
    yield (
        f"detectable: detected by a {100 * plan.confidence:.4g}% interval with probability "
        f"{plan.power:.4g}"
    )
    if plan.space.labels:
        yield "texts that are no label count as the first level"
    else:
        yield "outcomes outside the space are moved to its nearest level"
    yield from _recommended(plan)
    yield best.reason
    alike = [
        each.mechanism
        for each in plan.forecasts
        if each.parameters is not None and each.parameters.weight == 0
    ]
    others = [name for name in alike if name != "uniform_prior"]
    if others:
        yield f"{' and '.join(others)}: no histogram is worth its loss, the prior is uniform"
