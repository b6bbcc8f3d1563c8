"""Trials from columns to effects: the ledger, the order of rows, bad input, and what leaks."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import BudgetError, DataError, InputError, ShoalError
from shoal.privacy.budget import Budget
from shoal.trials import (
    ClusterDP,
    ClusterFree,
    NoisyHistogram,
    NoisyHorvitzThompson,
    PrivateTrial,
    Space,
    UniformPrior,
)

pytestmark = pytest.mark.statistics

N = 600
MECHANISMS = [
    ClusterDP(2),
    ClusterDP(8, floor=0.02, histogram_scale=4, levels="all"),
    ClusterFree(8, "1e-6", floor=0.05, histogram_scale=4, levels="all"),
    UniformPrior(1, levels=3),
    NoisyHorvitzThompson(1),
    NoisyHistogram(1),
]
IDS = ["chosen", "histogram", "pooled", "uniform", "horvitz-thompson", "noisy histogram"]


def columns(seed: int = 1) -> dict[str, Any]:
    """Outcomes 0..4, arms and clusters of some units."""
    rng = np.random.default_rng(seed)
    arm, home = np.arange(N) % 2, np.arange(N) // 2 % 3
    outcome = np.clip(rng.poisson(1.0 + 0.5 * arm + 0.5 * home), 0, 4)
    return {"outcomes": outcome, "treatment": arm, "cluster": home, "outcome_name": "visits"}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_a_trial_is_recorded_once(mechanism: ClusterDP, tmp_path: Path) -> None:
    """The same question again gives the same bytes at no cost; another name draws."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=100, delta="0.1", unit="each row")
    space = Space.counts(0, 4)
    first = mechanism.privatize(**columns(), space=space, ledger=ledger, name="first")
    spent = ledger.spent
    again = mechanism.privatize(
        **columns(), space=space, ledger=tmp_path / "a.ledger", name="first"
    )
    assert again.document == first.document
    assert again.from_ledger
    assert ledger.spent == spent
    assert first.entry is not None
    assert spent == Budget.of(first.manifest["guarantee"]["epsilon"], spent.delta)
    assert spent.epsilon <= Fraction(str(mechanism.epsilon))
    assert spent.delta == Fraction(str(getattr(mechanism, "delta", 0)))
    other = mechanism.privatize(**columns(), space=space, ledger=ledger, name="again")
    assert other.document != first.document
    assert ledger.spent == spent + spent


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_a_manifest_brings_the_trial_back(mechanism: ClusterDP, tmp_path: Path) -> None:
    """Tables and effects from the file are those of the release."""
    found = mechanism.privatize(
        **columns(), space=Space.counts(0, 4), unit=[f"u{at}" for at in range(N)]
    )
    found.write_manifest(tmp_path / "t.json")
    again = PrivateTrial.load(tmp_path / "t.json")
    assert again.table().equals(found.table())
    assert str(again.estimate(confidence=0.9)) == str(found.estimate(confidence=0.9))
    assert not again.simulated
    for ending in ("csv", "parquet"):
        found.write(tmp_path / f"t.{ending}")
        assert (tmp_path / f"t.{ending}").stat().st_size > 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=IDS)
def test_effects_are_near_the_truth(mechanism: ClusterDP) -> None:
    """Within 6.11 standard errors of the difference without noise; false alarms below 1e-9."""
    data = columns()
    found = mechanism.privatize(**data, space=Space.counts(0, 4)).estimate()
    truth = (
        sum(
            data["outcomes"][(data["cluster"] == c) & (data["treatment"] == 1)].mean()
            - data["outcomes"][(data["cluster"] == c) & (data["treatment"] == 0)].mean()
            for c in range(3)
        )
        / 3
    )
    assert abs(found.value - truth) <= 6.11 * found.finite_population.standard_error * 1.5


@pytest.mark.parametrize("mechanism", MECHANISMS[:4], ids=IDS[:4])
def test_without_names_the_order_of_rows_says_nothing(mechanism: ClusterDP) -> None:
    """Rows sorted by outcome, or the other way, give what any order gives.

    With the same simulated noise on the same multiset of outcomes the table is sorted within
    groups: no row can be told from another one with the same response.
    """
    data = columns()
    order = np.argsort(data["outcomes"])
    del data["outcome_name"]
    sorted_data = {name: column[order] for name, column in data.items()}
    found = mechanism.privatize(
        **sorted_data, space=Space.counts(0, 4), noise=shoal.Simulated(3)
    ).table()
    group = [f"{c} {a}" for c, a in zip(found["cluster"].to_pylist(), found["arm"].to_pylist())]  # noqa: B905
    outcome = found["outcome"].to_numpy()
    for name in set(group):
        mine = outcome[[at for at, each in enumerate(group) if each == name]]
        assert (np.diff(mine) >= 0).all()


def test_names_keep_units_apart() -> None:
    """With public names every unit has its row, whatever the order of the source."""
    data = columns()
    names = np.array([f"unit {at:04}" for at in range(N)])
    mechanism = ClusterDP(30, floor=0.001, histogram_scale=1, levels="all")
    space = Space.counts(0, 4)
    found = mechanism.privatize(**data, space=space, unit=names).to_pandas()
    kept = found.set_index("unit").loc[names, "outcome"].to_numpy() == data["outcomes"]
    assert kept.mean() > 0.95
    shuffled = np.random.default_rng(0).permutation(N)
    del data["outcome_name"]
    again = mechanism.privatize(
        **{name: column[shuffled] for name, column in data.items()},
        space=space,
        unit=names[shuffled],
    ).to_pandas()
    assert again["unit"].tolist() == found["unit"].tolist()


def test_a_simulation_is_marked_and_touches_no_ledger(tmp_path: Path) -> None:
    """Repeatable, marked, refused with a ledger."""
    space = Space.counts(0, 4)
    one, two = (
        ClusterDP(1).privatize(**columns(), space=space, noise=shoal.Simulated(3)) for _ in range(2)
    )
    assert one.simulated
    assert one.document == two.document
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=1, unit="each row")
    with pytest.raises(InputError, match="simulated noise"):
        ClusterDP(1).privatize(**columns(), space=space, noise=shoal.Simulated(3), ledger=ledger)
    assert ledger.entries() == []


def test_clusters_made_from_private_data_are_charged(tmp_path: Path) -> None:
    """Their epsilon adds to ours, in the guarantee and in the ledger (paper 003, Remark 2.1)."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=3, unit="each row")
    found = UniformPrior(1).privatize(
        **columns(), space=Space.counts(0, 4), ledger=ledger, clustering_epsilon="1/2"
    )
    alone = UniformPrior(1).privatize(**columns(), space=Space.counts(0, 4))
    assert ledger.spent.epsilon == Fraction(alone.manifest["guarantee"]["epsilon"]) + Fraction(1, 2)
    assert found.manifest["guarantee"]["epsilon"] == str(ledger.spent.epsilon)
    assert found.manifest["plan"]["clustering_epsilon"] == "1/2"


BAD: dict[str, tuple[dict[str, Any], type[ShoalError]]] = {
    "missing outcome": ({"outcomes": [None] + [0] * (N - 1)}, DataError),
    "infinite outcome": ({"outcomes": [float("inf")] + [0] * (N - 1)}, DataError),
    "text outcome": ({"outcomes": ["secret"] * N}, DataError),
    "too few outcomes": ({"outcomes": [0] * (N - 1)}, DataError),
    "no arm": ({"treatment": np.zeros(N, int)}, DataError),
    "single-arm cluster": ({"cluster": np.r_[9, np.zeros(N - 1, int)]}, DataError),
    "clusters of one": ({"cluster": np.arange(N)}, DataError),
    "short cluster": ({"cluster": [0]}, DataError),
    "treatment of nothing": ({"treatment": 5}, DataError),
    "unknown control": ({"control": 7}, InputError),
    "unknown rule": ({"missing": "ignore"}, InputError),
    "unknown rule for arms": ({"single_arm": "ignore"}, InputError),
    "name": ({"name": "line\nbreak"}, InputError),
    "noise": ({"noise": 3}, InputError),
    "negative clustering": ({"clustering_epsilon": -1}, InputError),
    "double names": ({"unit": ["x"] * N, "privacy_unit": "person"}, DataError),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_costs_nothing(case: str, tmp_path: Path) -> None:
    """One message in three parts, no outcome in it, nothing spent."""
    changes, error = BAD[case]
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=5, unit="each row")
    with pytest.raises(error, match=r"allowed:|; give") as caught:
        ClusterDP(1).privatize(
            **{**columns(), "ledger": ledger, **changes}, space=Space.counts(0, 4)
        )
    assert "secret" not in str(caught.value)
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClusterDP(0),
        lambda: ClusterDP(-1),
        lambda: ClusterDP("much"),
        lambda: ClusterDP(1, 1),
        lambda: ClusterDP(1, levels="some"),
        lambda: ClusterDP(1, levels=9),
        lambda: ClusterDP(1, levels=1),
        lambda: ClusterDP(1, floor=0.9),
        lambda: ClusterDP(1, floor=0.1, histogram_scale=1),
        lambda: ClusterDP(1, histogram_scale=float("nan")),
        lambda: ClusterFree(1, floor=-1.0),
        lambda: UniformPrior(float("inf")),
        lambda: NoisyHorvitzThompson(0),
        lambda: NoisyHorvitzThompson(1, 2),
        lambda: NoisyHistogram("1e-30"),
    ],
)
def test_unusable_mechanisms_are_refused(make: Callable[[], ClusterDP], tmp_path: Path) -> None:
    """Before any outcome is drawn for."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=5, unit="each row")
    with pytest.raises(InputError, match="allowed:"):
        make().privatize(**columns(), space=Space.counts(0, 4), ledger=ledger)
    assert ledger.entries() == []


def test_beyond_the_budget_nothing_is_drawn(tmp_path: Path) -> None:
    """The ledger refuses before the mechanism draws."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon="0.5", unit="each row")
    with pytest.raises(BudgetError):
        ClusterDP(1).privatize(**columns(), space=Space.counts(0, 4), ledger=ledger)
    assert ledger.entries() == []


def test_missing_outcomes_may_be_public() -> None:
    """Then such units are left out, and the manifest says so."""
    data = columns()
    outcomes = data["outcomes"].astype(float)
    outcomes[:100] = np.nan
    found = UniformPrior(3).privatize(
        **{**data, "outcomes": outcomes}, space=Space.counts(0, 4), missing="public"
    )
    assert found.assignment.n == N - 100
    assert found.manifest["records"]["missing"] == "public"


def test_clusters_where_an_arm_has_nobody_may_be_dropped() -> None:
    """The effect is then that of the other clusters, and the manifest says how many are left."""
    data = columns()
    found = UniformPrior(3).privatize(
        **{**data, "cluster": np.where(np.arange(N) == 0, 9, data["cluster"])},
        space=Space.counts(0, 4),
        single_arm="drop",
    )
    assert found.assignment.clusters.to_pylist() == [0, 1, 2]
    assert found.manifest["records"]["clusters_left_out"] == 1


def test_several_arms() -> None:
    """An effect for each arm but the control; one has to be named."""
    rng = np.random.default_rng(5)
    arm = np.array(["a", "b", "none"])[np.arange(3 * N) % 3]
    outcome = rng.random(3 * N) < 0.3
    for mechanism in (ClusterDP(4), NoisyHorvitzThompson(2), NoisyHistogram(2)):
        found = mechanism.privatize(outcome, arm, space=Space.binary(), control="none")
        assert [each.arm for each in found.effects()] == ["a", "b"]
        assert found.estimate("b").control == "none"
        for wrong in (None, "none", "c"):
            with pytest.raises(InputError, match="one of a, b"):
                found.estimate(wrong)


def test_priors_are_public_for_units_only() -> None:
    """One row a cluster, arm and level; shares sum to 1; aggregates have none."""
    mechanism = ClusterDP(8, floor=0.02, histogram_scale=4, levels="all")
    found = mechanism.privatize(**columns(), space=Space.counts(0, 4))
    table = found.priors().to_pandas()
    assert len(table) == 3 * 2 * 5
    assert np.allclose(table.groupby(["cluster", "arm"])["share"].sum(), 1)
    with pytest.raises(InputError, match="draws from priors"):
        NoisyHistogram(1).privatize(**columns(), space=Space.counts(0, 4)).priors()


def test_arrow_columns_and_labels() -> None:
    """Columns of a source, dictionary-encoded, with named levels."""
    data = columns()
    answers = pa.chunked_array([["no", "yes", "perhaps"] * (N // 3)]).dictionary_encode()
    found = UniformPrior(5).privatize(
        answers,
        pa.chunked_array([data["treatment"]]),
        space=Space.ordinal(["no", "perhaps", "yes"]),
    )
    assert set(found.table()["outcome"].to_pylist()) <= {"no", "perhaps", "yes"}
    assert "of 600 units" in repr(found)


def test_a_noisy_histogram_shows_its_shares() -> None:
    """One row a cluster, arm and level; shares are near those of the outcomes."""
    data = columns()
    labels = ["none", "one", "two", "three", "many"]
    found = NoisyHistogram(50).privatize(
        np.array(labels)[data["outcomes"]].tolist(),
        data["treatment"],
        data["cluster"],
        space=Space.ordinal(labels),
    )
    for row in found.table().to_pylist():
        mine = (data["cluster"] == row["cluster"]) & (data["treatment"] == row["arm"])
        true = (data["outcomes"][mine] == labels.index(row["outcome"])).mean()
        assert abs(row["share"] - true) < 0.02


def test_two_outcomes_of_the_same_units_are_two_questions(tmp_path: Path) -> None:
    """With a ledger the outcome has a name, and another name is another question."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=10, unit="each row")
    data, space = columns(), Space.counts(0, 4)
    first = UniformPrior(2).privatize(**data, space=space, ledger=ledger, name="a")
    data |= {"outcomes": 4 - data["outcomes"], "outcome_name": "not visits"}
    second = UniformPrior(2).privatize(**data, space=space, ledger=ledger)
    assert not second.from_ledger
    assert first.estimate().value != second.estimate().value
    del data["outcome_name"]
    with pytest.raises(InputError, match="a ledger without outcome_name"):
        UniformPrior(2).privatize(**data, space=space, ledger=ledger)
    assert len(ledger.entries()) == 2


def test_a_question_is_what_was_asked(tmp_path: Path) -> None:
    """Whole numbers of any width, and epsilon in any form, ask the same."""
    ledger = shoal.Ledger.create(tmp_path / "a.ledger", epsilon=10, unit="each row")
    data, space = columns(), Space.counts(0, 4)
    UniformPrior("1/2").privatize(**data, space=space, ledger=ledger, name="a")
    data |= {name: data[name].astype(np.int8) for name in ("treatment", "cluster")}
    assert UniformPrior(0.5).privatize(**data, space=space, ledger=ledger, name="a").from_ledger


def test_infinite_outcomes_are_never_left_out() -> None:
    """Only absence may be public; an infinite outcome is refused by both rules."""
    data = columns()
    outcomes = data["outcomes"].astype(float)
    outcomes[3] = np.inf
    for missing in ("refuse", "public"):
        with pytest.raises(DataError, match="infinite"):
            UniformPrior(1).privatize(
                **{**data, "outcomes": outcomes}, space=Space.counts(0, 4), missing=missing
            )
