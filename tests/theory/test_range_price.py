"""What a promise against noise on the whole range costs: a linear program, against other ones."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse


def least(promise: float, epsilon: float, users: int, parts: int = 2) -> float:
    """The least error at equal values, as a part of plain noise's, by a linear program.

    min sum_o p_0(o) o^2 where p_k(o) <= e^epsilon p_(k +- 1)(o), sum_o p_k(o) = 1, and
    sum_o p_k(o) (o - k)^2 <= rho^2 2/epsilon^2; errors in units of the range over the users.
    """
    outputs = np.arange(users * parts + 1) / parts
    rows, columns = users + 1, len(outputs)
    squares = (outputs - np.arange(rows)[:, None]) ** 2
    # Outputs outside of [0, users] never serve a smaller error: moved to its ends they err less.
    step = sparse.diags_array(
        [np.ones(users), -np.exp(epsilon) * np.ones(users)], offsets=[0, 1], shape=(users, rows)
    )
    back = sparse.diags_array(
        [-np.exp(epsilon) * np.ones(users), np.ones(users)], offsets=[0, 1], shape=(users, rows)
    )
    each = sparse.eye_array(columns)
    losses = sparse.vstack([sparse.kron(step, each), sparse.kron(back, each)])
    errors = sparse.block_diag(list(squares[:, None, :]))
    plain = 2 / epsilon**2
    program: dict[str, Any] = {
        "A_ub": sparse.vstack([losses, errors]).tocsr(),
        "A_eq": sparse.kron(sparse.eye_array(rows), np.ones((1, columns))).tocsr(),
    }
    found = optimize.linprog(
        np.concatenate([squares[0], np.zeros(users * columns)]),
        b_ub=np.concatenate([np.zeros(losses.shape[0]), np.full(rows, promise**2 * plain)]),
        b_eq=np.ones(rows),
        **program,
    )
    return float(np.sqrt(found.fun / plain))


@pytest.mark.parametrize(
    ("promise", "epsilon", "low", "high"),
    [
        (1.0, 1.0, 0.51, 0.59),
        (1.1, 1.0, 0.43, 0.47),
        (1.25, 1.0, 0.36, 0.38),
        (2.0, 1.0, 0.18, 0.19),
        (1.0, 2.0, 0.39, 0.43),
        (2.0, 2.0, 0.16, 0.18),
    ],
)
def test_the_price_is_known(promise: float, epsilon: float, low: float, high: float) -> None:
    """With 16 users; other grids and other numbers of users gave these ends."""
    assert low <= round(least(promise, epsilon, users=16), 2) <= high


def test_plain_noise_keeps_the_promise() -> None:
    """Laplace noise on the grid is one of the mechanisms, so that the program errs no more."""
    epsilon = 1.0
    found = least(1.2, epsilon, users=12)
    outputs = np.arange(-60, 61) / 2
    law = np.exp(-epsilon * np.abs(outputs))
    error = math.sqrt((law / law.sum() * outputs**2).sum() / (2 / epsilon**2))
    assert found < error < 1.2
