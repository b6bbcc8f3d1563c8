"""Attacks that once got through: absurd spaces and losses, hostile documents, lost draws."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import shoal
from shoal import documents
from shoal.errors import DocumentError, InputError
from shoal.trials import (
    ClusterDP,
    NoisyHistogram,
    NoisyHorvitzThompson,
    PrivateTrial,
    Space,
    UniformPrior,
)
from shoal.trials.parameters import ONE, Parameters, calibrate
from shoal.trials.stated_effects import to_results
from shoal.trials.trial_plan import TrialPlan
from shoal.trials.unit_release import UnitRelease

pytestmark = pytest.mark.audit

N = 40
ARM, OUTCOME = np.arange(N) % 2, np.arange(N) // 3 % 2


def released(unit: NDArray[np.generic] | None = None) -> PrivateTrial:
    """A small trial."""
    return UniformPrior(4).privatize(OUTCOME, ARM, space=Space.binary(), unit=unit)


@pytest.mark.parametrize(
    "levels",
    [
        (0.0, 1e200),
        (-1e307, 1e307),
        (0.0, 1e-200),
        (0.0, 5e-324),
        (1e16, 1e16 + 2),
        (1e300, 1e300 * 1.1),
    ],
)
def test_spaces_whose_squares_are_no_numbers_are_refused(levels: tuple[float, ...]) -> None:
    """Before a draw: an error after it, at some draws only, would be a draw nobody paid for."""
    with pytest.raises(InputError, match="allowed:"):
        Space(levels)


@pytest.mark.parametrize("levels", [(0.0, 1e50), (-1e50, 1e50), (0.0, 1e-50), (1e9, 1e9 + 2)])
@pytest.mark.parametrize(
    "mechanism", [UniformPrior("1e-9"), NoisyHorvitzThompson("1e-9"), NoisyHistogram("1e-9")]
)
def test_the_widest_and_narrowest_spaces_are_released(
    levels: tuple[float, ...], mechanism: UniformPrior
) -> None:
    """No draw fails afterwards, and effects are numbers with intervals."""
    for seed in range(5):
        found = mechanism.privatize(
            np.array(levels)[OUTCOME], ARM, space=Space(levels), noise=shoal.Simulated(seed)
        )
        low, high = found.estimate().finite_population.interval
        assert -math.inf < low < high < math.inf


def test_one_zero_is_one_question() -> None:
    """Minus zero is zero: the same levels are recorded under one key."""
    assert str(Space((-0.0, 1.0)).levels) == str(Space((0, 1)).levels)


def test_spaces_of_a_billion_levels_are_refused_at_once() -> None:
    """Numbers are counted before they are listed."""
    for least, most in ((0, 10**12), (0, 10**5000), (3, 1)):
        with pytest.raises(InputError, match="levels"):
            Space.counts(least, most)
    for low, high in ((0.0, math.inf), (math.nan, 1.0), (-1e308, 1e308)):
        with pytest.raises(InputError, match="levels"):
            Space.bins(low, high, 5)


def test_losses_beyond_floating_point_numbers() -> None:
    """An epsilon above all responses' losses costs what the least replacement costs."""
    most = calibrate((0, 1), epsilon=Fraction(10) ** 400, delta=Fraction(0))
    assert most == calibrate((0, 1), epsilon=Fraction(700), delta=Fraction(0))
    assert most.replaced == 1
    assert most.epsilon(Fraction(0)) < 23


@pytest.mark.parametrize("sigma", [5e-324, 1e-310, 1e-3])
def test_histograms_of_hardly_any_noise_are_refused(sigma: float) -> None:
    """However large epsilon is: weights stay whole numbers of 26 bits."""
    with pytest.raises(InputError, match="histogram noise"):
        ClusterDP("1e6", floor=0.1, histogram_scale=sigma).privatize(
            OUTCOME, ARM, space=Space.binary()
        )


def test_lattices_of_a_billion_bits_are_refused() -> None:
    """Before two is raised to them."""
    for bits in (-1, 61, 10**12):
        with pytest.raises(InputError, match="weight"):
            Parameters((0, 1), ONE // 2, ONE // 2, 0, bits)


@pytest.mark.parametrize("last", [2**63 - 1, 2**63, 2**64 - 1])
def test_unsigned_names_come_back(last: int, tmp_path: Path) -> None:
    """Names of 64 bits, as hashes give: released, written and read."""
    names = np.arange(N, dtype=np.uint64) + np.uint64(last - N + 1)
    found = released(unit=names)
    found.write_manifest(tmp_path / "t.json")
    again = PrivateTrial.load(tmp_path / "t.json").table()
    assert set(again["unit"].to_pylist()) == {int(name) for name in names}


def pack(*numbers: int) -> documents.Document:
    """Packed integers."""
    return documents.pack_integers(np.array(numbers))


Change = tuple[str, Any]
PARAMETERS, ASSIGNMENT = "plan.mechanism.parameters.", "plan.assignment."
HOSTILE: dict[str, Change] = {
    "billions of units": (ASSIGNMENT + "sizes", pack(2**33, 2**33)),
    "nobody": (ASSIGNMENT + "sizes", pack(0, N)),
    "more groups": (ASSIGNMENT + "sizes", pack(1, 1, 1, N - 3)),
    "sizes beyond 64 bits": (ASSIGNMENT + "sizes", pack(2**62, 2**62)),
    "a type that is none": (ASSIGNMENT + "arms.columns.0.type", 5),
    "other counts": ("results.released.counts", pack(1, 0, 0, 1)),
    "counts that wrap": ("results.released.counts", pack(2**62, 2**62, 2**62, 2**62)),
    "a long array": ("results.released.counts.length", 10**15),
    "a prior of nothing": ("results.released.prior", pack(0, 0, 0, 0)),
    "a prior below the floor": ("results.released.prior", pack(0, ONE, 0, ONE)),
    "responses of nobody": ("results.released.responses", pack(*[0] * N)),
    "levels beyond the space": (PARAMETERS + "kept", [0, 9]),
    "levels that fall": (PARAMETERS + "kept", [1, 0]),
    "no levels": (PARAMETERS + "kept", []),
    "a broken weight": (PARAMETERS + "weight", 0.5),
    "a lattice of a trillion bits": (PARAMETERS + "lattice_bits", 10**12),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_documents_are_refused_at_once(case: str, tmp_path: Path) -> None:
    """One DocumentError from whatever is asked, without memory or time."""
    place, value = HOSTILE[case]
    *path, last = place.split(".")
    document = json.loads(released().document)
    at = document
    for name in path:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[last] = value
    (tmp_path / "t.json").write_bytes(documents.canonical_bytes(document))
    asks: list[Callable[[PrivateTrial], object]] = [
        PrivateTrial.estimate,
        PrivateTrial.table,
        PrivateTrial.priors,
    ]
    for ask in asks:
        with pytest.raises(DocumentError, match="allowed:"):
            ask(PrivateTrial.load(tmp_path / "t.json"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta", "1e999999999"), ("delta", "x"), ("delta", None), ("epsilon_at_most", "x")],
)
def test_hostile_guarantees_are_refused_at_once(name: str, value: object) -> None:
    """A billion digits are short to write."""
    document = json.loads(released().document)
    document["guarantee"][name] = value
    found = PrivateTrial(documents.canonical_bytes(document))
    with pytest.raises(DocumentError, match="damaged"):
        _ = found.delta, found.epsilon


def test_named_responses_are_those_that_were_counted() -> None:
    """A changed response of a named unit is noticed."""
    document = json.loads(released(unit=np.arange(N)).document)
    codes = documents.unpack_integers(document["results"]["released"]["responses"], "x")
    for changed in (1 - codes, codes + 2, codes[1:]):
        document["results"]["released"]["responses"] = documents.pack_integers(changed)
        with pytest.raises(DocumentError, match="do not fit"):
            PrivateTrial(documents.canonical_bytes(document)).estimate()


def test_billions_of_units_are_estimated_from_their_counts() -> None:
    """Effects need no row a unit: a trial of 2^40 units is read in no memory."""
    document = json.loads(released().document)
    half = 2**39
    document["plan"]["assignment"]["sizes"] = pack(half, half)
    document["results"]["released"]["counts"] = pack(half // 2, half // 2, half // 4, 3 * half // 4)
    plan = TrialPlan.from_document(document["plan"])
    counted = document["results"]["released"]
    drawn = UnitRelease.from_document(counted, plan.space, plan.assignment, plan.mechanism)
    document["results"] = to_results(drawn)
    effect = PrivateTrial(documents.canonical_bytes(document)).estimate()
    # A quarter of the responses apart, over the share that is kept.
    replaced = document["plan"]["mechanism"]["parameters"]["replaced"]
    assert effect.value == pytest.approx(0.25 / (1 - replaced / ONE))


def test_aggregates_beyond_floating_point_numbers() -> None:
    """A document, too."""
    found = NoisyHistogram(4).privatize(OUTCOME, ARM, space=Space.binary())
    document = json.loads(found.document)
    document["results"]["released"]["numbers"][0] = 10**400
    with pytest.raises(DocumentError, match="very long number"):
        PrivateTrial(documents.canonical_bytes(document)).estimate()
