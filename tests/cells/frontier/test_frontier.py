"""Error against loss: methods on the same cells, at equal loss, above the lower bound."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells.frontier.errors import Figures, Point
from shoal.cells.frontier.explore import default_epsilons, default_methods, label
from shoal.cells.frontier.frontier import JOINT_BOUND, LOWER_BOUND, Frontier
from shoal.errors import InputError
from tests.support import occupancies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shoal.cells.frontier.explore import Ask

pytestmark = pytest.mark.unit

OCCUPANCY = occupancies.sparse(6)
FAST = ["balanced", "equalised", "uniform"]


def base(**choices: Any) -> shoal.Plan:
    """A plan for the sparse occupancy."""
    return shoal.plan(
        OCCUPANCY,
        **{
            "method": "balanced",
            "bounds": (0, 9),
            "epsilon": 2,
            "uninformative": "keep",
            **choices,
        },
    )


def rows(frontier: Frontier[shoal.Plan], method: str) -> list[dict[str, Any]]:
    """Rows of the table of one method."""
    return [row for row in frontier.table().to_pylist() if row["method"] == method]


@given(occupancies.small, st.floats(0.05, 50))
def test_every_error_is_above_the_lower_bound(occupancy: shoal.Counts, epsilon: float) -> None:
    """In every cell, so also worst, median and geometric mean."""
    plan = shoal.plan(
        occupancy, method="balanced", bounds=(0, 9), epsilon=epsilon, uninformative="keep"
    )
    frontier = plan.frontier(FAST, [epsilon, 2 * epsilon])
    for bound in frontier.bounds:
        for point in frontier.points:
            if point.epsilon == bound.epsilon:
                assert (point.error >= bound.error).all()
                for name in ("worst", "median", "geometric_mean"):
                    assert getattr(point.figures, name) >= getattr(bound.figures, name)


def test_the_lower_bound_of_equal_users_is_known() -> None:
    """Forty users of one record: 1/(40 epsilon), which every method reaches up to rounding."""
    alone = shoal.Counts.from_counts(range(40), ["all"] * 40, [1] * 40)
    plan = shoal.plan(alone, method="balanced", bounds=(0, 9), epsilon=1)
    frontier = plan.frontier(FAST, [0.5, 2])
    for bound, epsilon in zip(rows(frontier, LOWER_BOUND), (0.5, 2), strict=True):
        for name in ("worst", "median", "geometric_mean"):
            assert bound[name] == pytest.approx(1 / (40 * epsilon), rel=1e-5)
        assert (bound["epsilon"], bound["cells"]) == (epsilon, 1)
    for method in FAST:
        assert [row["worst"] for row in rows(frontier, method)] == pytest.approx(
            [0.05, 0.0125], rel=1e-4
        )


def test_the_lower_bound_is_that_of_the_largest_loss_plan() -> None:
    """A plan that spends more may be below the bound of one that spends less."""
    low, high = base().frontier(["equalised"], [1, 4]).points
    [bound] = Frontier((Point("low", high.epsilon, low.plan), high)).bounds
    assert bound.spent == high.plan.exact_epsilon
    assert (bound.error == high.plan.lower_bound / 9).all()
    assert (bound.error < low.plan.lower_bound / 9).all()


@given(occupancies.small, st.floats(0.05, 20))
@settings(max_examples=25)
def test_no_worst_cell_is_below_the_joint_bound(occupancy: shoal.Counts, epsilon: float) -> None:
    """Of any method; the optimal plan itself is close to it."""
    plan = shoal.plan(
        occupancy, method="balanced", bounds=(0, 9), epsilon=epsilon, uninformative="keep"
    )
    frontier = plan.frontier([*FAST, "clip_user", "optimal", "worst_case_optimal"], [epsilon])
    for joint in frontier.joint_bounds:
        assert joint.worst <= 0.5 + 1e-9
        assert all(each.figures.worst >= joint.worst for each in frontier.points)


def test_an_optimal_plan_proves_a_bound_for_all_cells() -> None:
    """It is above the worst of the bounds of single cells, and stands in table and text."""
    frontier = base().frontier([*FAST, "optimal", ("optimal", {"targets": "balanced"})], [2, 4])
    for joint, bound, point in zip(
        frontier.joint_bounds, frontier.bounds, frontier.of("optimal"), strict=True
    ):
        assert bound.figures.worst < joint.worst <= point.figures.worst <= 1.01 * joint.worst
    assert [row["worst"] for row in rows(frontier, JOINT_BOUND)] == [
        each.worst for each in frontier.joint_bounds
    ]
    assert rows(frontier, JOINT_BOUND)[0]["median"] is None
    assert "certified by linear programming" in str(frontier)
    assert not base().frontier(FAST, [2]).joint_bounds
    alone = base().frontier([("optimal", {"targets": "balanced"})], [2])
    assert not alone.joint_bounds


def test_methods_are_compared_at_equal_loss() -> None:
    """The uniform plan leaves most unspent, so it is asked for more: the same noise, less of it."""
    frontier = base().frontier(FAST, [1, 2, 4])
    for point in frontier.points:
        assert point.plan.exact_epsilon <= point.epsilon
        assert point.plan.exact_epsilon >= point.epsilon * Fraction(99, 100)
        assert not point.unspent
    plain = shoal.plan(OCCUPANCY, bounds=(0, 9), epsilon=2, method="uniform", uninformative="keep")
    assert plain.epsilon < 1.5
    found = frontier.plan("uniform", 2)
    assert rows(frontier, "uniform")[1]["asked"] == pytest.approx(4 / plain.epsilon, rel=1e-3)
    ratio = found.decision.scale / plain.decision.scale
    assert ratio == pytest.approx(np.full(len(ratio), plain.epsilon / 2), rel=1e-3)


def test_all_methods_have_the_same_cells() -> None:
    """Uninformative cells are kept; public rules stay those of the plan."""
    small = base(epsilon=2, min_records=40, uninformative="drop")
    assert "uninformative" in small.status
    assert "too few records" in small.status
    frontier = small.frontier(FAST)
    kept = [at for at, status in enumerate(small.status) if status != "too few records"]
    assert len(kept) > len(small.released)
    for point in frontier.points:
        assert point.plan.released.tolist() == kept
        assert point.plan.bounds == small.bounds
    assert "uninformative cells are kept" in str(frontier)


def test_the_table_tells_the_errors_of_the_plans() -> None:
    """Two statistics: the worse of the two, each over its own range, counts for a cell."""
    frontier = base(statistics=["mean", "variance"]).frontier(["balanced"], [4])
    [row] = rows(frontier, "balanced")
    plan, cells = frontier.points[0].plan, OCCUPANCY.n_cells
    error = plan.worst_case_error
    worse = np.maximum(error[:cells] / 9, error[cells:] / (81 / 4))
    assert (error[:cells] / 9 < error[cells:] / (81 / 4)).any()
    assert row["worst"] == pytest.approx(max(worse))
    assert row["median"] == pytest.approx(float(np.median(worse)))
    assert row["geometric_mean"] == pytest.approx(float(np.prod(worse)) ** (1 / cells))
    assert row["below_quarter"] == sum(each < 1 / 4 for each in worse)
    assert row["better_than_guessing"] == sum(each < 1 / 2 for each in worse)
    assert row["certified"]
    assert row["spent"] == plan.epsilon
    assert row["noise_worst"] is None
    assert row["gap"] == plan.gap


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=9))
def test_figures_count_and_order(errors: list[float]) -> None:
    """The geometric mean and the median lie between the smallest and the largest error."""
    figures = Figures.of(np.array(errors))
    for each in (figures.median, figures.geometric_mean):
        assert min(errors) * (1 - 1e-9) <= each <= figures.worst * (1 + 1e-9)
    assert figures.worst == max(errors)
    assert figures.below_quarter <= figures.better_than_guessing <= len(errors)


def test_a_private_range_has_no_certificate() -> None:
    """Its error is the whole range, its noise stands in columns of its own."""
    frontier = base().frontier(["user_clipped", "balanced"], [1, 2])
    for row, point in zip(rows(frontier, "user_clipped"), frontier.of("user_clipped"), strict=True):
        assert not row["certified"]
        assert (row["worst"], row["median"], row["better_than_guessing"]) == (1, 1, 0)
        assert row["noise_worst"] == point.plan.relative_error.max()
        assert row["noise_median"] == float(np.median(point.plan.relative_error))
    said = str(frontier)
    assert "user_clipped: selects a range in private and certifies nothing" in said
    assert said.index("only noise, worst cell") > said.index("cells better than guessing")


def test_methods_without_a_plan_are_left_out_with_the_reason() -> None:
    """Weights go with balanced only; an epsilon may be too large."""
    plan = base(weights={"0": 3})
    frontier = plan.frontier([*FAST, "worst_case_optimal"], [1, 2])
    assert frontier.methods == ("balanced", "worst_case_optimal")
    assert {each.method for each in frontier.left_out} == {"equalised", "uniform"}
    assert len(frontier.left_out) == 4
    assert "left out: uniform at epsilon 1, 2: weights with the method uniform" in str(frontier)
    assert frontier.points[0].plan.request.weights == {"0": 3.0}
    document = frontier.to_document()
    assert len(document["left_out"]) == 4  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"no method with a plan \(uniform at epsilon 1: weights"):
        plan.frontier(["uniform"], [1])
    many = base(statistics=["variance"]).frontier(["balanced", "levy"], [1])
    assert many.methods == ("balanced",)
    assert "statistics variance with the method levy" in many.left_out[0].reason


def test_gaussian_noise_has_no_lower_bound() -> None:
    """And methods that draw Laplace noise leave the delta alone."""
    pairs = [(user, cell) for user in range(50) for cell in range(40)]
    users, cells = zip(*pairs, strict=True)
    everywhere = shoal.Counts.from_counts(users, cells, [3] * len(pairs))
    plan = shoal.plan(
        everywhere, method="balanced", bounds=(0, 9), epsilon=1, delta=1e-6, uninformative="keep"
    )
    frontier = plan.frontier(["balanced", "clip_user"], [1, 500])
    gaussian = {each.epsilon for each in frontier.points if each.plan.gaussian}
    assert gaussian == {1}
    assert {each.epsilon for each in frontier.bounds} == {500}
    assert "no lower bound is known where noise is Gaussian" in str(frontier)
    assert frontier.of("balanced")[0].plan.delta > 0
    assert [each.plan.delta for each in frontier.of("clip_user")] == [0, 0]


def test_defaults_are_the_plans_own() -> None:
    """Its loss times powers of two; its method with its settings, then all that certify."""
    plan = base(epsilon="0.3")
    assert default_epsilons(plan) == tuple(
        Fraction(3, 10) * Fraction(2) ** step for step in range(-3, 4)
    )
    names = [label(each) for each in default_methods(plan)]
    assert names == [*FAST, "clip_user", "optimal", "optimal (targets=balanced)"]
    own = base(method="array_averaging", settings={"cap": "minimax"})
    assert label(default_methods(own)[0]) == "array_averaging (cap=minimax)"
    wanted = base(epsilon=None, error=2.0, method="equalised")
    assert float(default_epsilons(wanted)[3]) == pytest.approx(wanted.epsilon, rel=1e-2)
    frontier = own.frontier([("array_averaging", {"cap": "minimax"}), "array_averaging"], [1])
    assert frontier.methods == ("array_averaging (cap=minimax)", "array_averaging")
    assert repr(frontier) == "<Frontier of 2 methods at 1 losses>"


def test_progress_sees_every_plan() -> None:
    """It is handed the work, and how much that is."""
    seen: list[tuple[str, float]] = []

    def shown(items: Iterable[Ask], total: int) -> Iterable[Ask]:
        assert total == 4
        for (method, chosen), epsilon in items:
            assert chosen == {}
            seen.append((method, float(epsilon)))
            yield (method, chosen), epsilon

    base().frontier(["balanced", "uniform"], [2, 1, 1], shown)
    assert seen == [("balanced", 1), ("balanced", 2), ("uniform", 1), ("uniform", 2)]


def test_plans_of_a_frontier_can_be_kept() -> None:
    """By method and loss; another one is refused with what there is."""
    frontier = base().frontier(FAST, [0.1, 1])
    plan = frontier.plan("equalised", "0.1")
    assert (plan.method, plan.request.epsilon) == ("equalised", Fraction(1, 10))
    with pytest.raises(InputError, match=r"balanced, equalised, uniform at 0.1, 1; choose"):
        frontier.plan("equalised", 2)


@pytest.mark.parametrize(
    ("methods", "epsilons", "said"),
    [
        (["best"], [1], "method is 'best'; allowed: one of balanced"),
        ("balanced", [1], "methods is 'balanced'; allowed: a list"),
        ([], [1], "methods is a list of 0"),
        (FAST, [], "epsilons is a list of 0"),
        (FAST, "1", "epsilons is '1'"),
        (FAST, [0], "epsilon is 0"),
        (FAST, [1e7], "1e-09 to 1e"),
    ],
)
def test_bad_wishes_are_refused(methods: Any, epsilons: Any, said: str) -> None:
    """Before any work, in one line."""
    with pytest.raises(InputError, match=said) as caught:
        base().frontier(methods, epsilons)
    assert "\n" not in str(caught.value)
