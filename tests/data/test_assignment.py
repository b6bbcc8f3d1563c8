"""Enrolment: groups from public columns, in a public order, or a clear error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.assignment import Assignment, enrol
from shoal.errors import DataError, InputError

pytestmark = pytest.mark.unit

PEOPLE = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from([0, 1, 2])), min_size=1, max_size=40
)


@given(PEOPLE, st.randoms(use_true_random=False))
def test_groups_are_those_of_a_plain_count(user_values: list[tuple[str, int]], random: Any) -> None:
    """Sizes, rows and names agree with a dictionary; shuffling named rows changes nothing."""
    present = sorted({arm for _, arm in user_values})
    whole = [c for c in "abcd" if {arm for home, arm in user_values if home == c} == set(present)]
    names = [f"unit {at:03}" for at in range(len(user_values))]
    homes, arms = [home for home, _ in user_values], [arm for _, arm in user_values]
    if not whole or len(present) < 2:
        with pytest.raises(DataError):
            enrol(arms, homes, unit=names, single_arm="drop")
        return
    found = enrol(arms, homes, unit=names, single_arm="drop")
    expected = [[sum(p == (c, arm) for p in user_values) for arm in present] for c in whole]
    assert found.assignment.sizes.tolist() == expected
    assert found.assignment.clusters.to_pylist() == whole
    assert found.left_out == len(set(homes)) - len(whole)
    group = [whole.index(homes[r]) * len(present) + present.index(arms[r]) for r in found.rows]
    assert group == found.assignment.group.tolist() == sorted(group)
    order = list(range(len(user_values)))
    random.shuffle(order)
    again = enrol(
        [arms[at] for at in order],
        [homes[at] for at in order],
        unit=[names[at] for at in order],
        single_arm="drop",
    )
    assert again.assignment.fingerprint == found.assignment.fingerprint


def test_without_names_the_order_of_rows_is_not_kept() -> None:
    """The public side of a trial is the same for any order of its rows."""
    first = enrol([0, 1, 1, 0], ["a", "a", "b", "b"])
    second = enrol([1, 0, 0, 1], ["b", "b", "a", "a"])
    assert first.assignment.fingerprint == second.assignment.fingerprint


def test_control_comes_first() -> None:
    """The first arm when sorted, or the one that is named."""
    assert enrol(["b", "a"]).assignment.arms.to_pylist() == ["a", "b"]
    found = enrol(["b", "a", "b"], control="b")
    assert found.assignment.arms.to_pylist() == ["b", "a"]
    assert found.assignment.sizes.tolist() == [[2, 1]]


def test_a_document_brings_the_assignment_back() -> None:
    """Keys, sizes and names."""
    found = enrol([0, 1, 1, 0, 1], [2, 2, 7, 7, 7], unit=["e", "d", "c", "b", "a"]).assignment
    again = Assignment.from_document(found.to_document())
    assert again.fingerprint == found.fingerprint
    assert (again.sizes == found.sizes).all()
    assert again.units is not None
    assert again.units.to_pylist() == ["e", "d", "b", "a", "c"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"treatment": [0, 0]}, DataError, "1 arms"),
        ({"treatment": [0, 1], "cluster": ["a", "b"]}, DataError, "2 clusters, each of which"),
        ({"treatment": [0, 1, 1], "cluster": ["a", "a", "b"]}, DataError, "1 of 2 clusters"),
        ({"treatment": [0, 1], "cluster": ["a"]}, DataError, "columns of 1 and 2 rows"),
        ({"treatment": [0, None]}, DataError, "null"),
        ({"treatment": [0.5, 1.0]}, DataError, "treatment holds double"),
        ({"treatment": []}, DataError, "holds null"),
        ({"treatment": [0, 1], "unit": ["x", "x"]}, DataError, "named twice"),
        ({"treatment": [0, 1], "control": 5}, InputError, "control arm 5"),
        ({"treatment": [0, 1], "single_arm": "keep"}, InputError, "single_arm"),
        ({"treatment": list(range(65))}, DataError, "65 arms"),
    ],
)
def test_unusable_columns_are_refused(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Single-arm clusters, wrong types, nulls, doubles: a clear error each."""
    with pytest.raises(error, match=words):
        enrol(**arguments)


@pytest.mark.parametrize("rule", ["refuse", "drop"])
def test_whole_clusters_in_one_arm_are_sent_elsewhere(rule: str) -> None:
    """No advice leads to intervals that take units as assigned one by one."""
    with pytest.raises(DataError) as caught:
        enrol([0, 0, 1, 1], ["a", "a", "b", "b"], single_arm=rule)
    told = str(caught.value)
    assert "2 clusters, each of which has one arm" in told
    assert "trial.estimate(assigned=clusters, unit=names)" in told
    assert "without these clusters" in told
    assert "single_arm" not in told
    assert "or none" not in told
    with pytest.raises(DataError) as caught:
        enrol([0, 1, 2, 0], ["a", "a", "b", "b"], single_arm="drop")
    assert "trial.estimate(assigned=clusters, unit=names)" in str(caught.value)
    assert "or none" not in str(caught.value)


def test_rows_that_do_not_count_are_left_out() -> None:
    """As if they were not there."""
    kept = np.array([True, True, False, True])
    found = enrol([0, 1, 1, 0], ["a"] * 4, kept=kept)
    assert found.assignment.sizes.tolist() == [[2, 1]]
    assert found.rows.tolist() == [0, 3, 1]
