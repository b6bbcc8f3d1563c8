"""Public columns of an experiment: kinds in an order that outcomes cannot set, or an error."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import documents
from shoal.errors import DataError, DocumentError, InputError
from shoal.trials import Experiment
from shoal.trials.design import Design
from shoal.trials.plan import read_model

pytestmark = pytest.mark.unit

PEOPLE = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from([0, 1, 2]), st.sampled_from([4, 5])),
    min_size=1,
    max_size=40,
)


@given(PEOPLE, st.randoms(use_true_random=False))
def test_kinds_are_those_of_a_plain_count(people: list[tuple[str, int, int]], random: Any) -> None:
    """Units of each kind agree with a dictionary; shuffled rows make the same design."""
    present = sorted({arm for _, arm, _ in people})
    whole = [c for c in "abcd" if {arm for home, arm, _ in people if home == c} == set(present)]
    ages = {age for home, _, age in people if home in whole}

    def made(order: list[int], *, named: bool) -> Experiment:
        homes, arms, age = (list(each) for each in zip(*(people[at] for at in order), strict=True))
        names = [f"unit {at:03}" for at in order] if named else None
        return Experiment(
            arms, homes, {"age": age}, unit=names, control=min(arms), single_arm="drop"
        )

    order = list(range(len(people)))
    if not whole or len(present) < 2 or len({age for *_, age in people}) < 2:
        with pytest.raises((DataError, InputError)):
            made(order, named=True)
        return
    if len(ages) < 2:
        return
    study = made(order, named=True)
    counted = sorted(each for each in people if each[0] in whole)
    design = study.design
    kinds = [
        (design.clusters[c].as_py(), design.arms[a].as_py(), design.covariate("age").values[v])
        for c, a, v in zip(design.cluster, design.arm, design.covariate("age").codes, strict=True)
    ]
    assert kinds == sorted(set(counted))
    assert [counted.count(each) for each in kinds] == design.many.tolist()
    assert [people[row] for row in study.rows] == counted
    assert study.left_out == len({home for home, *_ in people}) - len(whole)
    random.shuffle(order)
    for named in (True, False):
        one, other = (made(each, named=named).design for each in (list(range(len(people))), order))
        assert one.fingerprint == other.fingerprint
    assert read_model(Design, design.to_document()).fingerprint == design.fingerprint


def test_columns_of_every_type_are_the_same_experiment() -> None:
    """Lists, Series, Arrow, booleans and numbers; a control that is named; rows that count."""
    arm, age = [0, 1, 1, 0, 1, 0], [1.0, 2.0, 2.0, 1.0, 1.0, 2.0]
    one = Experiment(arm, list("aaabbb"), {"age": age}).design
    for other in (
        Experiment(pd.Series(arm), pa.array(list("aaabbb")), {"age": pd.Series(age)}),
        Experiment(np.array(arm), np.array(list("aaabbb")), {"age": np.array(age, dtype=int)}),
    ):
        assert other.design.fingerprint == one.fingerprint
    named = Experiment(np.where(np.array(arm), "new", "old"), control="old")
    assert named.design.arm_names == ["old", "new"]
    assert named.design.sizes.tolist() == [[3, 3]]
    fewer = Experiment([*arm, 1], [*"aaabbb", "c"], keep=np.arange(7) < 6)
    assert fewer.design.sizes.tolist() == [[1, 2], [2, 1]]
    assert repr(fewer) == "<experiment of 6 units in 2 clusters, 2 arms>"
    girls = Experiment(arm, covariates={"girl": np.array(age) > 1}).design.covariate("girl")
    assert girls.values == (0.0, 1.0)


N = 12
ARM = np.arange(N) % 2
AGE = np.arange(N) // 2 + 10.0


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"arm": [0] * N}, "1 arms"),
        ({"arm": np.arange(N) / 2}, "arm holds double"),
        ({"arm": [*ARM[:-1], None]}, "null"),
        ({"arm": ARM[:-1], "cluster": ["a"] * N}, "columns have 11 and 12 rows"),
        ({"cluster": ARM}, "2 clusters has units of only one arm"),
        ({"cluster": [0] * 11 + [1]}, "1 of 2 clusters lack units of an arm"),
        ({"unit": ["x"] * N}, "names of units occur in several rows; say what the outcome"),
        ({"arm": np.arange(N) % 3}, "which of 3 arms is the control: 0, 1, 2; .*control=0"),
        ({"arm": list("abcd") * 3}, "which of 4 arms is .* --control 'a'"),
        ({"control": 5}, "no arm 5 to be the control"),
        ({"single_arm": "keep"}, "single_arm"),
        ({"assigned": "classes"}, "assigned is 'classes'"),
        ({"assigned": np.arange(N) // 2}, "units of several arms"),
        ({"assigned": ARM}, "arm '0' has only one assigned group"),
        ({"assigned": ARM + np.arange(N) // 6 * 2, "cluster": np.arange(N) // 2 % 2}, "several cl"),
        ({"keep": [1] * N}, "not booleans"),
        ({"clustering_epsilon": -1}, "epsilon"),
        ({"covariates": {"arm": AGE}}, "printable characters"),
        ({"covariates": {"a + b": AGE}}, "printable characters"),
        ({"covariates": {"C(a)": AGE}}, "rename it"),
        ({"covariates": {"constant": AGE}}, "rename it"),
        ({"covariates": {"a": AGE * 0}}, "same for all"),
        ({"covariates": {"a": [None] * N}}, "missing"),
        ({"covariates": {"a": AGE[:-1]}}, "rows"),
        ({"covariates": {"a": pd.date_range("2020", periods=N)}}, "the type timestamp"),
        ({"covariates": {"a": AGE * 1e-80}}, "below 1e-50"),
        ({"covariates": {"a": AGE * 1e60}}, "huge"),
        ({"covariates": [AGE]}, "covariates"),
    ],
)  # fmt: skip
def test_unusable_columns_are_refused(wanted: dict[str, Any], words: str) -> None:
    """In words, whatever is wrong."""
    with pytest.raises((DataError, InputError), match=words):
        Experiment(**{"arm": ARM, **wanted})


@pytest.mark.parametrize("rule", ["refuse", "drop"])
def test_whole_clusters_in_one_arm_are_sent_to_assigned(rule: str) -> None:
    """No advice leads to intervals that take units as assigned one by one."""
    with pytest.raises(DataError) as caught:
        Experiment([0, 0, 1, 1], ["a", "a", "b", "b"], single_arm=rule)
    assert "give them as assigned= (--assigned)" in str(caught.value)
    assert "single_arm" not in str(caught.value)


def test_a_covariate_of_many_values_makes_few_kinds() -> None:
    """A thousand steps of its range, both ends included; a plan says so, and names no other."""
    rng = np.random.default_rng(3)
    age = rng.normal(40, 9, 30_000)
    arm = np.arange(30_000) % 2
    few = np.arange(30_000) % 7
    study = Experiment(arm, covariates={"age": age, "few": few})
    values = np.array(study.design.covariate("age").values)
    assert len(values) <= 1001
    assert (values[0], values[-1]) == (age.min(), age.max())
    steps = (values - values[0]) / (values[-1] - values[0]) * 1000
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
    given = values[study.design.covariate("age").codes[study.design.kind_of_unit]]
    assert np.abs(given - age[study.rows]).max() <= np.ptp(age) / 2000 * (1 + 1e-9)
    plan = study.ask().regression(["arm", "age"]).plan("binary", 1)
    assert "rounded to 1,000 steps of their range: age\n" in f"{plan}\n"
    whole = Experiment(arm, covariates={"age": age, "few": few}, exact=True)
    assert len(whole.design.many) == 30_000


def test_a_design_that_does_not_fit_its_units_is_refused() -> None:
    """Codes beyond the values, kinds of nobody, a cell that is not there."""
    good = Experiment(ARM, covariates={"age": AGE}).design.to_document()
    for name, value in (
        ("many", [0] * 12),
        ("cell", [0] * 12),
        ("cell", [0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2]),
        ("group", [0, 2] * 6),
    ):
        with pytest.raises((DocumentError, ValueError)):
            read_model(Design, {**good, name: documents.pack_integers(np.array(value))})
