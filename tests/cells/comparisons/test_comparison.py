"""Certified errors of methods: on the same cells, at equal loss, above the lower bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.cells.comparisons import frontier
from shoal.cells.comparisons.comparison import JOINT_BOUND, LOWER_BOUND, Comparison
from shoal.errors import InputError
from tests.support import made_counts

COUNTS = made_counts.sparse(6)
FAST = ["balanced", "equalised", "uniform"]
AVERAGES = ("worst", "median", "geometric_mean")


def base(counts: shoal.Counts = COUNTS, **choices: Any) -> shoal.Plan:
    """A plan that keeps every cell."""
    options = {"method": "balanced", "bounds": (0, 9), "epsilon": 2, "uninformative": "keep"}
    options["min_users"] = 1
    return shoal.plan(counts, **{**options, **choices})


def rows(found: Comparison[Any], method: str) -> list[dict[str, Any]]:
    """Rows of the table of one method."""
    return [row for row in found.table().to_pylist() if row["method"] == method]


@given(made_counts.small, st.floats(0.05, 50))
@settings(max_examples=12)
def test_no_error_is_below_a_bound(counts: shoal.Counts, epsilon: float) -> None:
    """In every cell alone, so also in the table; and none of the worst of all together."""
    many = [*FAST, "clip_user", "optimal", "worst_case_optimal"]
    found = base(counts, epsilon=epsilon).frontier(many, [epsilon, 2 * epsilon])
    for bound in found.bounds:
        for row in found.rows:
            if row.epsilon == bound.epsilon:
                assert row.error is not None
                if bound.method == LOWER_BOUND:
                    assert (row.error >= bound.error).all()
                else:
                    assert bound.error[0] <= min(row.error.max(), 0.5 + 1e-9)
    for line in (row for method in found.methods for row in rows(found, method)):
        [alone] = [row for row in rows(found, LOWER_BOUND) if row["epsilon"] == line["epsilon"]]
        assert all(line[name] >= alone[name] for name in AVERAGES)


def test_the_lower_bound_of_equal_users_is_known() -> None:
    """Forty users of one record: 1/(40 epsilon), which every method reaches up to rounding."""
    alone = shoal.Counts.from_counts(range(40), ["all"] * 40, [1] * 40)
    found = base(alone, epsilon=1).frontier(FAST, [0.5, 2])
    for bound, epsilon in zip(rows(found, LOWER_BOUND), (0.5, 2), strict=True):
        assert [bound[name] for name in AVERAGES] == pytest.approx([1 / 40 / epsilon] * 3, rel=1e-5)
        assert (bound["epsilon"], bound["cells"]) == (epsilon, 1)
    for method in FAST:
        errors = [row["worst"] for row in rows(found, method)]
        assert errors == pytest.approx([0.05, 0.0125], rel=1e-4)


def test_an_optimal_plan_proves_a_bound_for_all_cells() -> None:
    """It is above the worst of the bounds of single cells; equal targets alone prove it."""
    balanced = ("optimal", {"targets": "balanced"})
    found = base().frontier([*FAST, "optimal", balanced], [2, 4])
    proofs, alone, plans = (rows(found, each) for each in (JOINT_BOUND, LOWER_BOUND, "optimal"))
    for joint, bound, plan in zip(proofs, alone, plans, strict=True):
        assert bound["worst"] < joint["worst"] <= plan["worst"] <= 1.01 * joint["worst"]
        assert joint["median"] is None
    assert "certified by linear programming" in str(found)
    assert not rows(base().frontier([*FAST, balanced], [2]), JOINT_BOUND)


def test_methods_are_compared_at_equal_loss() -> None:
    """The uniform plan leaves most unspent, so it is asked for more: the same noise, less of it."""
    found = base().frontier(FAST, [1, 2, 4])
    for row in found.rows:
        assert row.plan is not None
        assert row.epsilon * Fraction(99, 100) <= row.plan.exact_epsilon <= row.epsilon
    plain = base(method="uniform")
    assert plain.epsilon < 1.5
    assert rows(found, "uniform")[1]["asked"] == pytest.approx(4 / plain.epsilon, rel=1e-3)
    ratio = found.plan("uniform", 2).decision.scale / plain.decision.scale
    assert ratio == pytest.approx(np.full(len(ratio), plain.epsilon / 2), rel=1e-3)


def test_all_methods_have_the_same_cells() -> None:
    """Uninformative cells are kept; public rules stay those of the plan."""
    small = base(min_records=40, uninformative="drop")
    found = small.frontier(FAST, [1, 2])
    kept = [at for at, status in enumerate(small.status) if status != "too few records"]
    assert COUNTS.n_cells > len(kept) > len(small.planned)
    for row in found.rows:
        assert row.plan is not None
        assert row.plan.planned.tolist() == kept


def test_the_table_tells_the_errors_of_the_plans() -> None:
    """Two statistics: the worse of the two, each over its own range, counts for a cell."""
    found = base(statistics=["mean", "variance"]).frontier(["balanced"], [4])
    [row], plan, cells = rows(found, "balanced"), found.plan("balanced", 4), COUNTS.n_cells
    error = plan.worst_case_error
    worse = np.maximum(error[:cells] / 9, error[cells:] / (81 / 4))
    assert (error[:cells] / 9 < error[cells:] / (81 / 4)).any()
    product = float(np.prod(worse)) ** (1 / cells)
    assert [row[each] for each in AVERAGES] == pytest.approx(
        [max(worse), np.median(worse), product]
    )
    assert row["below_quarter"] == sum(each < 1 / 4 for each in worse)
    assert row["better_than_guessing"] == sum(each < 1 / 2 for each in worse)
    assert (row["spent"], row["gap"], row["certified"]) == (plan.epsilon, plan.gap, True)
    assert row["noise_worst"] is row["typical_error"] is None


def test_a_private_range_has_no_certificate() -> None:
    """Its error is the whole range, its noise stands in columns of its own."""
    found = base().frontier(["user_clipped", "balanced"], [1, 2])
    for row in rows(found, "user_clipped"):
        noise = found.plan("user_clipped", row["epsilon"]).relative_error
        assert not row["certified"]
        assert (row["worst"], row["median"], row["better_than_guessing"]) == (1, 1, 0)
        assert (row["noise_worst"], row["noise_median"]) == (noise.max(), np.median(noise))
    said = str(found)
    assert "user_clipped: selects a range privately and certifies no error" in said
    assert said.index("only noise, worst cell") > said.index("cells better than guessing")


def test_methods_without_a_plan_are_left_out_with_the_reason() -> None:
    """Weights go with balanced only; plans of other statistics than means neither."""
    plan = base(weights={"0": 3})
    found = plan.frontier([*FAST, "worst_case_optimal"], [1, 2])
    assert found.methods == ("balanced", "worst_case_optimal")
    assert "left out: uniform at epsilon 1, 2: the method uniform takes no weights" in str(found)
    assert len(found.to_document()["left_out"]) == 4  # type: ignore[arg-type]
    assert found.plan("balanced", 1).request.weights == {"0": 3.0}
    with pytest.raises(InputError, match=r"take balanced or worst_case_optimal at 1 or 2"):
        found.plan("balanced", 3)
    with pytest.raises(InputError, match=r"no method has a plan \(uniform at epsilon 1: the me"):
        plan.frontier(["uniform"], [1])


def test_gaussian_noise_has_no_lower_bound() -> None:
    """And methods that draw Laplace noise leave the delta alone."""
    plan = base(made_counts.crowded(), epsilon=1, delta=1e-6)
    found = plan.frontier(["balanced", "clip_user"], [1, 500])
    assert [found.plan("balanced", each).gaussian for each in (1, 500)] == [True, False]
    assert {each.epsilon for each in found.bounds} == {500}
    assert "no lower bound is known where noise is Gaussian" in str(found)
    assert {found.plan("clip_user", each).delta for each in (1, 500)} == {0}


def test_defaults_are_the_plans_own() -> None:
    """Its loss times powers of two; its method with its settings, then all that certify."""
    own = base(epsilon=None, error=4.0, method="equalised")
    found = own.frontier(["equalised"])
    assert [float(each / found.epsilons[3]) for each in found.epsilons] == [
        0.125, 0.25, 0.5, 1, 2, 4, 8
    ]  # fmt: skip
    assert float(found.epsilons[3]) == pytest.approx(own.epsilon, rel=1e-2)
    certified = (*FAST, "clip_user", "optimal", "optimal (targets=balanced)")
    assert set(own.frontier(None, [1]).methods) == set(certified)
    capped = base(method="array_averaging", settings={"cap": "minimax"})
    assert capped.frontier(None, [1]).methods == ("array_averaging (cap=minimax)", *certified)


@pytest.mark.parametrize(
    ("methods", "epsilons", "said"),
    [
        (["best"], [1], "method is 'best'; allowed: one of balanced"),
        (["midpoint"], [1], "method is 'midpoint'; allowed: one of balanced"),
        ("balanced", [1], "methods is 'balanced'; give a list"),
        ([], [1], "methods is a list of 0"),
        ([("levy",)], [1], "a method is a list of 1"),
        (FAST, [], "epsilons is a list of 0"),
        (FAST, "1", "epsilons is '1'"),
        (FAST, [1e7], "1e-09 to 1e"),
    ],
)
def test_bad_wishes_are_refused(methods: Any, epsilons: Any, said: str) -> None:
    """Before any work, in one line."""
    with pytest.raises(InputError, match=said) as caught:
        base().frontier(methods, epsilons)
    assert "\n" not in str(caught.value)


def test_methods_that_take_minutes_have_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many pairs of a user and a cell; the plan's own method and what is named are there."""
    monkeypatch.setattr(frontier, "MOST_PAIRS", len(COUNTS.user) - 1)
    found = base(method="clip_user").frontier(epsilons=[2])
    assert found.methods == ("balanced", "equalised", "uniform", "clip_user")
    assert found.unnamed == ("optimal", "optimal (targets=balanced)")
    assert "optimal, optimal (targets=balanced); name them" in " ".join(str(found).split())
    assert base().frontier(["optimal"], epsilons=[2]).methods == ("optimal",)
    monkeypatch.setattr(frontier, "MOST_PAIRS", len(COUNTS.user))
    assert base().frontier(epsilons=[2]).unnamed == ()
