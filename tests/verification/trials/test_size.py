"""The second opinion on noisy clusters takes no longer than a document of its size deserves."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import shoal
from shoal import documents
from shoal.data.outcome_space import Space
from shoal.trials.mechanisms.aggregates import NoisyHistogram, NoisyHorvitzThompson
from shoal.verification.trials.facts import Facts
from shoal.verification.trials.horvitz_thompson import HorvitzThompson
from tests.support.verdicts import failed_claims, rekey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trials.mechanisms.base import Mechanism

pytestmark = pytest.mark.audit

SPREAD = NoisyHorvitzThompson(epsilon=1, spread_share=0.25)
# Where differences of clusters have exactly as much noise as means: 1 + 1/2^2 = 1 + 1/6^2 + 2/3^2.
TIE = np.array([3, 1, 6])


def manifest_of(mechanism: Mechanism, sizes: NDArray[np.int64]) -> dict[str, Any]:
    """A true manifest of groups of these sizes."""
    group = np.repeat(np.arange(sizes.size), sizes.ravel())
    arm, cluster = group % sizes.shape[1], group // sizes.shape[1]
    outcomes, space = np.arange(len(group)) // 3 % 2, Space.binary()
    found: dict[str, Any] = mechanism.privatize(outcomes, arm, cluster, space=space).manifest
    return found


def with_groups(manifest: dict[str, Any], sizes: NDArray[np.int64]) -> dict[str, Any]:
    """The same with other groups, and all that was released as it was."""
    plan = manifest["plan"]
    for part, number in zip(("clusters", "arms"), sizes.shape, strict=True):
        plan["assignment"][part]["columns"][0]["values"] = list(range(number))
    packed = documents.pack_integers(sizes.ravel())
    plan["assignment"]["sizes"] = packed
    plan["mechanism"]["aggregate"].update(sizes=packed, arms=sizes.shape[1])
    first = manifest["results"]["effects"][0]
    manifest["results"]["effects"] = [{**first, "arm": arm} for arm in range(1, sizes.shape[1])]
    rekey(manifest)
    return manifest


def opinion_of(manifest: dict[str, Any]) -> HorvitzThompson:
    """What the second opinion makes of the numbers."""
    released, mechanism = manifest["results"]["released"], manifest["plan"]["mechanism"]
    found = HorvitzThompson.of(Facts.of(manifest), mechanism, released)
    assert isinstance(found, HorvitzThompson)
    return found


@pytest.mark.parametrize("mechanism", [SPREAD, NoisyHistogram(epsilon=1)])
def test_groups_without_numbers_are_not_looked_at(mechanism: Mechanism) -> None:
    """G-VERIFY: many groups in few bytes, and four numbers, are refused before all else."""
    small = manifest_of(mechanism, np.full((3, 2), 20))
    sizes = np.where(np.random.default_rng(0).random((24_000, 64)) < 0.06, 251, 199)
    large = with_groups(small, sizes)
    assert len(documents.canonical_bytes(large)) < 2**20
    began = time.monotonic()
    assert "released numbers" in failed_claims(large)
    claims = [check.claim for check in shoal.verify(large).checks]
    assert not {"privacy loss", "mechanism", "effects"} & set(claims)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("kind", ["random", "alike", "ties"])
def test_many_groups_with_numbers_take_seconds(kind: str) -> None:
    """G-VERIFY: what follows from sizes is computed once, not for every arm."""
    clusters, arms = 2000, 63
    sizes = {
        "random": np.random.default_rng(0).integers(100, 300, (clusters, arms)),
        "alike": np.full((clusters, arms), 200),
        "ties": np.arange(2, clusters + 2)[:, None] * np.tile(TIE, arms // 3),
    }[kind]
    manifest = with_groups(manifest_of(SPREAD, TIE[None, :] * 9), sizes)
    count = opinion_of(manifest).count
    assert clusters * (arms - 1) <= count <= clusters * arms + arms
    manifest["results"]["released"]["numbers"] = [number % 10 for number in range(count)]
    began = time.monotonic()
    found = failed_claims(manifest)
    assert "effects" in found
    assert "released numbers" not in found
    assert time.monotonic() - began < 20


def test_differences_as_noisy_as_means_are_not_used() -> None:
    """G-VERIFY: equal noise is told from less noise exactly, whatever floats make of it."""
    places = np.arange(1, 120)[:, None]
    sizes = np.vstack([places * TIE, places * TIE[[0, 2, 1]]])
    floats = sizes.astype(np.float64)
    f = np.minimum(floats[:, 1:], 2 * floats[:, :1] / 3)
    other = (1 / floats[:, 1:] ** 2).sum(axis=1) + 2 / floats[:, 0] ** 2
    # Floats say so of some of them.
    assert ((1 / f**2).sum(axis=1) < other).any()
    manifest = manifest_of(SPREAD, sizes)
    assert failed_claims(manifest) == []
    assert (opinion_of(manifest).factor == sizes).all()


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_exact(seed: int) -> None:
    """G-VERIFY: steps of the sampling variance are those of exact fractions, group by group."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, [5, 40, 300][seed % 3], (6, 2 + seed % 3))
    manifest = manifest_of(SPREAD, sizes)
    assert failed_claims(manifest) == []
    shares = [[Fraction(int(sum(row)), int(n)) for n in row] for row in sizes]
    most = [max(column) for column in zip(*shares, strict=True)]
    assert opinion_of(manifest)._most == ([max(most)] if sizes.shape[1] == 2 else most)
