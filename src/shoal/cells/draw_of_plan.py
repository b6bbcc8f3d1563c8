"""The draw that a plan prescribes, with a first round of users' vectors if it has two."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shoal.cells.contributions.design import FINE
from shoal.cells.draw import Drawing
from shoal.cells.estimates import Numbers
from shoal.cells.posterior import values_of
from shoal.release.manifest import CONFIDENCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.cells.plan_facts import PlanFacts
    from shoal.data.aggregate import Aggregate
    from shoal.privacy.noise import Noise


def drawing_of(plan: PlanFacts) -> Drawing:
    """The draw that a plan prescribes."""
    return Drawing(
        mechanism=plan.mechanism,
        design=plan.design,
        parameters=plan.parameters,
        selection_scale=plan.selection_scale,
        relative_scale=plan.relative_scale,
        bits=plan.lattice_bits,
        statistics=plan.request.statistics,
        joint=plan.joint,
        gaussian=plan.gaussian,
        recentre=partial(_centres, first_round(plan)) if plan.rounds > 1 else None,
    )


def first_round(plan: PlanFacts) -> PlanFacts:
    """The plan of the first of two rounds, whose noise is larger in proportion to the balls."""
    told = dict(plan.parameters)
    clipped, ball = told.pop("first_clipped"), told.pop("first_ball")
    larger = float(Fraction(int(told["ball"][0]), int(ball[0])))
    return replace(
        plan,
        request=replace(plan.request, settings={}),
        relative_scale=plan.relative_scale * larger,
        parameters=told | {"clipped": clipped, "ball": ball},
        selection_scale=plan.selection_scale[:2],
        built=None,
    )


def _centres(plan: PlanFacts, aggregate: Aggregate, noise: Noise) -> NDArray[np.int64]:
    """Values of a first round in ticks over 2^FINE: they follow from what the round released."""
    exact, chosen = drawing_of(plan).select(aggregate, noise)
    add = noise.add_gaussian if plan.gaussian else noise.add_laplace
    numbers = Numbers(plan, add(exact, plan.lattice_bits, 1), chosen)
    try:
        value = values_of(numbers, CONFIDENCE).value
    except np.linalg.LinAlgError:
        # A draw that fails is not charged: nothing may raise on a private number.
        value = numbers.value
    top = 1 << (plan.lattice.bits + FINE)
    share = np.nan_to_num((value - plan.bounds.lo) / plan.width, nan=0.5)
    return np.clip(np.rint(share * top), 0, top).astype(np.int64)
