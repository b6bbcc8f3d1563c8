"""The accountant of steps, against enumeration and against another library."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.privacy import permute_and_flip
from shoal.privacy.accounting import NoisyVector, Selections, Stated, account
from tests.support.selections import by_permutations

WIDE = np.arange(-60, 61)


def _noise(kind: str, bits: int) -> np.ndarray:
    """Probabilities of whole numbers -60..60, the tails left out."""
    scale = 2.0**bits
    weight = (
        np.exp(-np.abs(WIDE) / scale) if kind == "laplace" else np.exp(-((WIDE / scale) ** 2) / 2)
    )
    return weight / weight.sum()


def _moved(kind: str, bits: int, moves: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all outputs of a small vector, at 0 and moved."""
    one = other = np.ones(1)
    for move in moves:
        still = _noise(kind, bits)
        one = np.multiply.outer(one, still[10:-10]).ravel()
        other = np.multiply.outer(other, np.roll(still, move)[10:-10]).ravel()
    return one, other


@pytest.mark.parametrize(("bits", "moves"), [(0, (1,)), (1, (3, -2)), (2, (1, 0)), (2, (-4, 5))])
def test_laplace_noise_costs_what_its_outputs_tell(bits: int, moves: tuple[int, ...]) -> None:
    """The largest ratio of the probabilities of any output is e to the loss."""
    one, other = _moved("laplace", bits, moves)
    told = np.abs(np.log(one / other)).max()
    found = account([NoisyVector("laplace", bits, np.array([sum(map(abs, moves))]))])
    assert float(found.epsilon) == pytest.approx(told, abs=1e-9)
    assert found.delta == 0
    assert found.rho is None


@pytest.mark.parametrize(("bits", "moves"), [(1, (1,)), (1, (2, 1)), (2, (3,)), (2, (-2, 4))])
@pytest.mark.parametrize("delta", [Fraction(1, 4), Fraction(1, 10)])
def test_gaussian_noise_costs_no_more_than_stated(
    bits: int, moves: tuple[int, ...], delta: Fraction
) -> None:
    """The exact delta of the stated epsilon, from all outputs, is at most the delta allowed."""
    squares = np.array([sum(move**2 for move in moves)])
    found = account([NoisyVector("gaussian", bits, squares, touched=len(moves))], delta)
    one, other = _moved("gaussian", bits, moves)
    beyond = np.maximum(one - math.exp(found.epsilon) * other, 0).sum()
    assert beyond <= delta == found.delta
    assert found.rho == float(Fraction(int(squares[0]), 2 * 4**bits))


def test_a_selection_costs_what_its_winners_tell() -> None:
    """No pair of scores that differ by the sensitivity tells more, and one nearly as much."""
    scale, told = 4.0, 0.0
    cost = int(permute_and_flip.loss(1, scale) * 2**4)
    found = account([Selections(4, np.array([cost, 0]))])
    assert found.of_users.tolist() == [0.5, 0.0]
    for scores in itertools.product(range(-40, 1, 20), repeat=2):
        for change in itertools.product((-1, 0, 1), repeat=2):
            other = tuple(a + b for a, b in zip(scores, change, strict=True))
            one, two = (by_permutations(np.array(each), scale) for each in (scores, other))
            told = max(told, float(np.abs(np.log(one / two)).max()))
    assert told <= found.epsilon
    assert told >= 0.99 * float(found.epsilon)


@given(st.data())
def test_losses_of_users_add_up_exactly(data: st.DataObject) -> None:
    """Laplace noise of several lattices, selections and stated losses, in fractions."""
    users = data.draw(st.integers(1, 4))
    exact, steps = [Fraction(0)] * users, list[Any]()
    for _ in range(data.draw(st.integers(1, 5))):
        kind = data.draw(st.sampled_from(["laplace", "counted", "whoever", "select", "stated"]))
        if kind == "select":
            bits = data.draw(st.integers(0, 60))
            moves = data.draw(st.lists(st.integers(0, 2**62), min_size=users, max_size=users))
            steps.append(Selections(bits, np.array(moves)))
            lost = [Fraction(move, 2**bits) for move in moves]
        elif kind == "stated":
            epsilon = data.draw(st.fractions(0, 3))
            steps.append(Stated(epsilon))
            lost = [epsilon] * users
        else:
            bits, size = data.draw(st.integers(0, 60)), 1 if kind == "whoever" else users
            moves = data.draw(st.lists(st.integers(0, 2**62), min_size=size, max_size=size))
            noise: Any = "laplace" if kind == "whoever" else kind
            steps.append(NoisyVector(noise, bits, np.array(moves)))
            lost = [Fraction(move, 2**bits) for move in moves * (users // size)]
        exact = [one + other for one, other in zip(exact, lost, strict=True)]
    found = account(steps)
    assert found.epsilon == max(exact)
    for stated, true in zip(np.broadcast_to(found.of_users, users), exact, strict=True):
        assert true <= Fraction(float(stated)) <= true * (1 + Fraction(1, 2**50))


def test_gaussian_vectors_of_several_lattices_beside_another_library() -> None:
    """dp-accounting composes the continuous noise; whole numbers cost hardly more."""
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    bits, sizes, delta = (20, 22), (0.25, 0.5), Fraction(1, 10**6)
    steps = [
        NoisyVector("gaussian", each, np.array([int(size * 2**each) ** 2]), touched=3)
        for each, size in zip(bits, sizes, strict=True)
    ]
    found = account([*steps, Selections(3, np.array([2]))], delta)
    accountant = pld.PLDAccountant()
    for size in sizes:
        accountant.compose(dp.GaussianDpEvent(1 / size))
    true = accountant.get_epsilon(float(delta)) + 0.25
    assert true * 0.999 <= float(found.epsilon) <= true * 1.001
    assert found.rho == pytest.approx((0.25**2 + 0.5**2) / 2 + 0.25**2 / 2)


def test_delta_is_shared() -> None:
    """What steps state is taken from what Gaussian noise may use."""
    noise = NoisyVector("gaussian", 20, np.array([2**36]), touched=1)
    whole, part = Fraction(1, 10**6), Fraction(1, 10**7)
    alone = account([noise], whole - part)
    both = account([noise, Stated(Fraction(1), part)], whole)
    assert (both.epsilon, both.delta, both.rho) == (alone.epsilon + 1, whole, None)
    assert account([Stated(Fraction(1), part)], whole).delta == part


MOVES = np.array([1, 2])


@pytest.mark.parametrize(
    ("steps", "delta"),
    [
        ([NoisyVector("uniform", 2, MOVES)], 0),
        (["laplace"], 0),
        ([NoisyVector("laplace", 2, MOVES), Selections(2, np.array([1] * 3))], 0),
        ([NoisyVector("laplace", 2, np.array([1.5]))], 0),
        ([NoisyVector("laplace", 2, -MOVES)], 0),
        ([NoisyVector("gaussian", 2, MOVES, touched=1)], 0),
        ([NoisyVector("gaussian", 2, MOVES)], 1),
        ([NoisyVector("gaussian", 2, np.array([np.nan]), touched=1)], 1),
        ([Stated(Fraction(1), Fraction(1, 9))], 0),
        ([Stated(Fraction(-1))], 0),
    ],
)
def test_what_has_no_proof_has_no_loss(steps: list[Any], delta: int) -> None:
    """Unknown noise or steps, other users, no whole numbers, no delta: all refused."""
    with pytest.raises(InputError):
        account(steps, Fraction(delta))
