"""Releases of trials: recorded once, read back, in any order of rows; what is refused is free."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import shoal
from shoal import documents
from shoal.documents import canonical_bytes
from shoal.errors import DataError, DocumentError, InputError
from shoal.privacy.noise import Simulated
from shoal.trials import ClusterPrior, Domain, Expected, Experiment, Release
from shoal.trials.plan import Plan
from tests.support.tape import Tape, lost

pytestmark = pytest.mark.unit

N = 120
RNG = np.random.default_rng(1)
AT = RNG.permutation(N)
ARM, HOME, AGE = AT % 2, AT // 2 % 3, AT // 6 % 7 + 10.0
OUTCOME = RNG.integers(0, 11, N).astype(float)
NAMES = np.array([f"u{name:04}" for name in RNG.permutation(9 * N)[:N]])
DOMAIN = Domain.counts(0, 10)
PLANS: dict[str, Callable[[Experiment], Plan]] = {
    "best_table": lambda study: study.table(DOMAIN, 2),
    "expected": lambda study: study.table(DOMAIN, 2, levels=4, expected=Expected(3, 2)),
    "uniform_prior": lambda study: study.table(DOMAIN, 2, delta="1e-6", mechanism="uniform_prior"),
    "cluster_prior": lambda study: study.table(DOMAIN, 3, mechanism=ClusterPrior(0.02, 4)),
    "cluster_prior, pooled": lambda study: study.table(
        DOMAIN, 3, levels=3, mechanism=ClusterPrior(0.02, 4, pooled=True)
    ),
    "histogram": lambda study: study.histogram(DOMAIN, 2),
    "questions": lambda study: study.ask().effect().means().plan(DOMAIN, 2),
}


def experiment(order: NDArray[np.int64] | None = None, *, named: bool = True) -> Experiment:
    """The public columns, their rows in an order."""
    rows = np.arange(N) if order is None else order
    unit = NAMES[rows] if named else None
    return Experiment(ARM[rows], HOME[rows], {"age": AGE[rows]}, unit=unit)


def book(folder: Path, epsilon: float = 100) -> shoal.Ledger:
    """A ledger of persons."""
    return shoal.Ledger.create(
        folder / "a.ledger", epsilon=epsilon, delta="1/2", privacy_unit="person", counts="public"
    )


@pytest.mark.parametrize("name", PLANS)
def test_a_trial_is_recorded_once_and_read_back(name: str, tmp_path: Path) -> None:
    """Plan, charge, bytes and estimates; another name or outcome is another question."""
    study, ledger = experiment(), book(tmp_path)
    made = PLANS[name](study)
    made.save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert canonical_bytes(plan.to_document()) == canonical_bytes(made.to_document())
    assert str(plan) == str(made)
    given: dict[str, Any] = {"ledger": ledger, "privacy_unit": "person", "outcome_name": "score"}
    first = plan.release(OUTCOME, study, **given)
    spent = ledger.spent
    assert spent.epsilon == plan.loss.epsilon
    again = made.release(OUTCOME, study, **given)
    assert (again.from_ledger, again.document, ledger.spent) == (True, first.document, spent)
    first.write_record(tmp_path / "m.json")
    loaded = Release.load(tmp_path / "m.json")
    for other in (again, loaded):
        assert other.table().equals(first.table())
        assert str(other.estimate()) == str(first.estimate())
        assert (other.epsilon, other.delta) == (plan.epsilon, plan.delta)
    assert shoal.verify(tmp_path / "m.json").holds
    plan.release(OUTCOME, study, name="May", **given)
    assert ledger.spent.epsilon == 2 * spent.epsilon
    plan.release(10 - OUTCOME, study, **{**given, "outcome_name": "other"})
    assert ledger.spent.epsilon == 3 * spent.epsilon


@pytest.mark.parametrize("name", PLANS)
def test_the_order_of_rows_says_nothing(name: str) -> None:
    """With names the bytes are the same; without names no order of outcomes is in them."""
    orders = [np.argsort(OUTCOME, kind="stable"), np.random.default_rng(2).permutation(N)]
    documents = []
    for order in (np.arange(N), *orders):
        study = experiment(order)
        documents.append(PLANS[name](study).release(OUTCOME[order], study, noise=Simulated(3)))
    if name != "questions":  # whose noise is that of sums
        assert len({found.document for found in documents}) == 1
    free = [experiment(order, named=False) for order in orders]
    assert free[0].design.fingerprint == free[1].design.fingerprint
    table = PLANS[name](free[0]).release(OUTCOME[orders[0]], free[0], noise=Simulated(3)).table()
    if "response" in table.column_names:
        says = table.to_pandas()
        for _, cell in says.groupby(["cluster", "arm"]):
            assert (np.diff(cell["debiased"]) >= 0).all()


@pytest.mark.parametrize("name", PLANS)
def test_infinite_outcomes_are_the_ends(name: str) -> None:
    """As are all that lie outside: a refusal would tell of one outcome."""
    study = experiment()
    documents = []
    for end, far in ((DOMAIN.levels[-1], np.inf), (DOMAIN.levels[0], -1e300)):
        for outcome in (end, far):
            found = PLANS[name](study).release(
                np.append(OUTCOME[:-1], outcome), study, noise=Simulated(3)
            )
            documents.append(found.document)
    assert documents[0] == documents[1]
    assert documents[2] == documents[3]


BAD: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "too short": (lambda: {"outcomes": OUTCOME[:-1]}, "differ in length"),
    "missing": (lambda: {"outcomes": [*OUTCOME[:-1], None]}, "there are missing outcomes"),
    "texts": (lambda: {"outcomes": ["secret"] * N}, "outcomes"),
    "objects": (lambda: {"outcomes": np.array([object()] * N)}, "Python objects"),
    "a public column": (lambda: {"outcomes": AGE, "study": _own()}, "outcome"),
    "other columns": (lambda: {"study": Experiment(1 - ARM, HOME)}, "differ from those planned"),
    "other names": (lambda: {"study": experiment(named=False)}, "differ from those planned"),
    "no unit": (lambda: {"privacy_unit": ""}, "privacy_unit"),
    "no outcome name": (lambda: {"outcome_name": ""}, "outcome_name"),
    "each row": (lambda: {"privacy_unit": "each row"}, "unit of a column of users"),
    "a unit of many": (lambda: {"privacy_unit": "Cluster"}, "the privacy unit, belong to several"),
    "an age": (lambda: {"privacy_unit": "age"}, "the privacy unit, belong to several rows"),
    "no ledger": (lambda: {"ledger": "nowhere/there"}, "ledger"),
}


def _own() -> Experiment:
    return Experiment(ARM, HOME, {"age": AGE}, unit=NAMES)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_costs_nothing(name: str, tmp_path: Path) -> None:
    """In words that say nothing of an outcome; the ledger is as it was."""
    study, ledger = experiment(), book(tmp_path)
    plan, (bad, words) = study.table(DOMAIN, 1), BAD[name]
    given: dict[str, Any] = {
        "outcomes": OUTCOME, "study": study, "ledger": ledger, "privacy_unit": "person",
        "outcome_name": "score", **bad(),
    }  # fmt: skip
    with pytest.raises(shoal.errors.ShoalError, match=words) as caught:
        plan.release(given.pop("outcomes"), given.pop("study"), **given)
    assert "secret" not in str(caught.value)
    assert ledger.spent.epsilon == 0


def test_clusters_made_from_private_data_are_charged(tmp_path: Path) -> None:
    """Their epsilon is added to that of the release."""
    study = Experiment(ARM, HOME, clustering_epsilon="1/2")
    plan, ledger = study.table(DOMAIN, 1), book(tmp_path)
    given: dict[str, Any] = {"privacy_unit": "person", "outcome_name": "score"}
    made = plan.release(OUTCOME, study, ledger=ledger, **given)
    assert float(ledger.spent.epsilon) == pytest.approx(1.5, rel=1e-6)
    assert made.epsilon == pytest.approx(1.5, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0, -1, "1e-10", 10**7, "nan", None])
def test_unusable_losses_are_refused(epsilon: Any) -> None:
    """By every kind of plan."""
    study = experiment()
    for make in (study.table, study.histogram, study.ask().effect().plan):
        with pytest.raises(InputError):
            make(DOMAIN, epsilon)


@pytest.mark.parametrize(
    "wanted",
    [
        {"mechanism": "magic"},
        {"mechanism": None},
        {"levels": 1},
        {"levels": "some"},
        {"levels": 12},
        {"delta": "1e-6"},
        {"delta": 2, "mechanism": "uniform_prior"},
        {"expected": 3},
        {"expected": Expected(50, 1)},
    ],
)
def test_unusable_tables_are_refused(wanted: dict[str, Any]) -> None:
    """Names, numbers of levels, deltas and expectations."""
    with pytest.raises(InputError):
        experiment().table(DOMAIN, 1, **wanted)


@pytest.mark.parametrize("name", PLANS)
def test_a_changed_plan_or_manifest_is_refused(name: str, tmp_path: Path) -> None:
    """One that costs more than was asked for, other numbers of responses, a drawn number more."""
    study = experiment()
    plan = PLANS[name](study)
    release = plan.release(OUTCOME, study, noise=Simulated(1))
    document = json.loads(canonical_bytes(plan.to_document()))
    document["request"]["epsilon"] = "1/10"
    (tmp_path / "p.json").write_bytes(canonical_bytes(document))
    with pytest.raises(DocumentError, match="damaged"):
        Plan.load(tmp_path / "p.json")
    document = json.loads(release.document)
    drawn = document["results"]["drawn"]
    for key in ("histogram", "steps", "numbers"):
        if drawn.get(key):
            drawn[key] = drawn[key][:-1]
            break
    else:
        counts = documents.unpack_integers(drawn["counts"], "counts").copy()
        counts[0] += 1
        drawn["counts"] = documents.pack_integers(counts)
    (tmp_path / "m.json").write_bytes(canonical_bytes(document))
    with pytest.raises(DocumentError):
        Release.load(tmp_path / "m.json")
    with pytest.raises(DocumentError):
        shoal.verify(tmp_path / "m.json")


def test_noisy_histograms_have_the_moments_that_they_say() -> None:
    """Means and sample variances of many draws, and the variance of the noise of both."""
    study = Experiment(np.repeat([0, 1], [40, 25]))
    outcome = np.concatenate([np.arange(40) % 5, np.arange(25) % 3]).astype(float)
    plan, runs = study.histogram(Domain.counts(0, 4), 1), 4000
    shares = np.array([plan.shares(plan.respond(outcome, Simulated(s)))[0] for s in range(runs)])
    mean = shares @ (plan.domain.array - 2)
    truth = [outcome[:40].mean() - 2, outcome[40:].mean() - 2]
    deviation = np.sqrt(plan.mean_variance[0])
    assert (np.abs(mean.mean(axis=0) - truth) < 6.2 * deviation / np.sqrt(runs)).all()
    assert mean.std(axis=0) == pytest.approx(deviation, rel=0.08)
    assert plan.chosen.counts.variance == pytest.approx(2 * 2**2, rel=1e-3)
    # One outcome moves two counts.
    one, other = Tape(), Tape()
    for outcomes, tape in ((outcome, one), (np.r_[4.0, outcome[1:]], other)):
        plan.respond(outcomes, tape)
    assert plan.exact_epsilon == lost(one, other)[0]


def test_public_columns_stay_public() -> None:
    """A release has no row of a covariate, and its text says for what it is."""
    study = experiment()
    release = study.table(DOMAIN, 2).release(OUTCOME, study, noise=Simulated(1))
    assert release.table().column_names == ["cluster", "arm", "unit", "response", "debiased"]
    assert "simulated trial of 120 units, best_table, epsilon 2" in repr(release)
    ordinal = study.table(Domain.ordinal(["no", "yes"]), 2, mechanism="uniform_prior")
    said = ordinal.release(np.where(OUTCOME > 5, "yes", "no"), study, noise=Simulated(1)).table()
    assert set(said.column("response").to_pylist()) == {"no", "yes"}
    with pytest.raises(InputError, match="best_table gives no regression"):
        release.regression(["arm"])
    with pytest.raises(DataError):
        Experiment(ARM, OUTCOME + 0.5)
