"""What a promise against noise on the whole range costs where all values are alike.

A mechanism that never errs more than rho times Laplace noise on [0, U] errs at least h(rho) times
that noise when all values are 0. Data with k users at U and the others at 0 show it: a linear
program over the laws of the output given k, with the loss constraint between k and k + 1 and the
mean squared error of every k bounded, has the least mean squared error at k = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import optimize, sparse

EPSILONS = 0.25, 0.5, 1.0, 2.0
PROMISES = 1.0, 1.1, 1.25, 1.5, 2.0
# Users that may be at the upper bound, and outputs to a unit (the range over the users).
USERS, PARTS = 40, 2


def run() -> Iterator[str]:
    """Lines of h(rho): a row for each promise, a column for each epsilon."""
    yield (
        "least root mean squared error at equal values, as a part of plain Laplace noise's, of any "
        "mechanism"
    )
    yield "that never errs more than rho times plain noise on the whole range"
    yield f"{'rho':>6}" + "".join(f"   epsilon {epsilon:<5g}" for epsilon in EPSILONS)
    for promise in PROMISES:
        found = (least(promise, epsilon) for epsilon in EPSILONS)
        yield f"{promise:>6g}" + "".join(f"{each:>16.2f}" for each in found)


def least(promise: float, epsilon: float, users: int = USERS, parts: int = PARTS) -> float:
    """The least error at equal values, as a part of plain noise's, by a linear program.

    min sum_o p_0(o) o^2 where p_k(o) <= e^epsilon p_(k +- 1)(o), sum_o p_k(o) = 1, and
    sum_o p_k(o) (o - k)^2 <= rho^2 2/epsilon^2; errors in units of the range over the users.

    Source: docs/theory/user-clipped.md#tight-or-loose-bounds.

    Args:
        promise: How many times plain noise's error the mechanism may err, rho.
        epsilon: Loss of one user.
        users: Most users at the upper bound.
        parts: Outputs to a unit.

    Returns:
        h(rho), without unit.
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
