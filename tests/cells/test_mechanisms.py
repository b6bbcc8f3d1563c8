"""Plans of mean mechanisms: losses by hand, documents, settings, and what `auto` promises."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.cells.mechanisms.user_vectors import excess_of
from shoal.errors import InputError
from shoal.privacy.noise import Simulated
from tests.support import flights, made_counts
from tests.support.draws import drawn
from tests.support.loop import loop_over
from tests.support.methods import MECHANISMS

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in MECHANISMS),
    ("array_averaging", {"cap": 3, "grouping": "wrap_around"}),
    ("levy", {"cap": "median", "grouping": "wrap_around", "gamma": 0.1}),
    ("quantile", {"quantiles": "optimised"}),
]


def by_hand(plan: shoal.Plan) -> Fraction:
    """The largest loss over users, in exact arithmetic and with a loop over memberships."""
    design, where, bits = plan.weights, plan.decision.method.range, plan.decision.bits
    moved = where.score_sensitivity(design)
    lost: dict[int, Fraction] = {}
    if where.of_vectors:
        parts, parts_bits = excess_of(plan.parameters)
        noise = Fraction(2 * int(plan.parameters["ball"][0]), 2**bits)
        noise += Fraction(parts, 2**parts_bits)
        return noise + sum(
            Fraction(2 * moved) / Fraction(each) for each in plan.decision.selection_scale
        )
    for user, number, contribution in zip(
        design.user.tolist(), design.cell.tolist(), design.reach.tolist(), strict=True
    ):
        share = Fraction(contribution, int(design.total[number]))
        steps = math.ceil(share * 2**bits / Fraction(plan.decision.scale[number]))
        lost[user] = lost.get(user, Fraction(0)) + Fraction(steps, 2**bits)
        if where.selects == "per cell":
            scale = Fraction(plan.decision.selection_scale[number])
            lost[user] += where.rounds * Fraction(2 * moved) / scale
    if where.selects == "for all":
        once = Fraction(2 * moved) / Fraction(plan.decision.selection_scale[0])
        lost = {user: loss + once for user, loss in lost.items()}
    return max(lost.values())


@loop_over(("method", "options"), OPTIONS)
@loop_over("epsilon", ["0.05", "1", "30"])
def test_the_stated_loss_is_the_loss(method: str, options: dict[str, Any], epsilon: str) -> None:
    """Never above the epsilon asked for, never below the exact loss, and nearly all."""
    plan = shoal.plan(
        made_counts.sparse(0),
        bounds=(0, 10),
        epsilon=epsilon,
        method=method,
        settings=options,
        uninformative="keep",
    )
    exact = by_hand(plan)
    assert exact <= plan.exact_epsilon <= Fraction(epsilon)
    # Steps of selections and of floating-point reaches are rounded upwards.
    assert plan.exact_epsilon - exact <= Fraction(plan.counts.n_cells * 3, 2**plan.decision.bits)
    # Where it is best that nobody counts nobody pays.
    free = plan.exact_epsilon == 0 and not plan.weights.reach.any()
    assert free or plan.exact_epsilon >= Fraction(epsilon) * Fraction(999, 1000)


@pytest.mark.parametrize(("method", "options"), OPTIONS)
def test_plans_survive_a_file(method: str, options: dict[str, Any], tmp_path: Path) -> None:
    """The same numbers, the same bytes, the same draw."""
    plan = flights.plan(method=method, settings=options, uninformative="keep")
    plan.save(tmp_path / "plan.json")
    loaded = shoal.Plan.load(tmp_path / "plan.json")
    assert loaded.to_document() == plan.to_document()
    _, sums = flights.records().aggregate(squares=False)
    one, other = (drawn(each, sums, 3) for each in (plan, loaded))
    assert one.steps == other.steps


def test_plans_depend_on_counts_alone() -> None:
    """Other names and another order of rows give the same plan, for every mechanism."""
    rng = np.random.default_rng(3)
    base = made_counts.sparse(3)
    order = rng.permutation(len(base.user))
    names = np.array([f"u{k:03}" for k in rng.permutation(base.n_users)])
    other = shoal.Counts.from_counts(
        names[base.user][order], base.cells["cell"].to_numpy()[base.cell][order], base.count[order]
    )
    for method in MECHANISMS:
        one, two = (
            shoal.plan(each, bounds=(0, 1), epsilon=1, method=method, uninformative="keep")
            for each in (base, other)
        )
        assert one.to_document() == two.to_document()


@loop_over(
    ("method", "options"),
    [
        ("balanced", {"cap": 3}),
        ("baseline", {"cap": 3}),
        ("levy", {"gamma": 0}),
        ("levy", {"gamma": 1.0}),
        ("levy", {"cap": 0}),
        ("levy", {"cap": True}),
        ("levy", {"cap": 10**30}),
        ("array_averaging", {"grouping": "random"}),
        ("quantile", {"quantiles": "none"}),
        ("user_clipped", {"objective": "best"}),
        ("user_clipped", {"cap": 3}),
        ("user_clipped", {"rounds": 3}),
        ("user_clipped", {"rounds": 1.5}),
        ("adaptive", {"lattice": 3}),
        ("unknown", {}),
    ],
)
def test_settings_that_do_not_exist_are_refused(method: str, options: dict[str, Any]) -> None:
    """With what is allowed."""
    with pytest.raises(InputError, match="; "):
        flights.plan(method=method, settings=options)


def test_an_error_goes_with_sharing_only() -> None:
    """A mechanism's parameters depend on epsilon: it has to be given."""
    with pytest.raises(InputError, match="a method that can plan for an error"):
        flights.plan(method="levy", epsilon=None, error=3.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": 5},
        {"settings": {"cap": np.array([1, 2])}},
        {"weights": 5},
        {"weights": {"EWR": 1e30}},
        {"epsilon": None},
        {"epsilon": [1]},
    ],
)
def test_wishes_of_the_wrong_kind_are_refused(wrong: dict[str, Any]) -> None:
    """In one line."""
    with pytest.raises(InputError, match="; "):
        flights.plan(**{"method": "levy", **wrong})


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_bad_seeds_are_refused(seed: Any) -> None:
    """A simulation has a whole number."""
    with pytest.raises(InputError, match="seed"):
        Simulated(seed)
