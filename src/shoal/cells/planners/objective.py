"""Which method serves an objective: chosen from public counts, and said in words."""

import math
from fractions import Fraction

import numpy as np

from shoal.arrays import Floats, largest
from shoal.cells.facts.program import is_small
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.mechanisms.methods import Method, method_of
from shoal.data.counts import Counts
from shoal.theory.gaussian import cells_at_least, rho_of
from shoal.theory.user_clipping import rounds, split

# Users times epsilon in a single cell: where one interval is found more surely than two ranks.
_FEW = 60
_ENOUGH = 150
# So few cells of users who count about alike err hardly more with the whole bounds than with a
# private radius (docs/theory/cells.md#few-cells).
_FEW_CELLS = 12
_ALIKE = 0.75
# Beyond so many memberships a linear program takes minutes.
_MOST_OF_PROGRAM = 100_000
_SMALLER = "the smaller of Laplace and Gaussian noise, in every data set"
# Loads to which heavier users are held, between the lightest and the heaviest one.
_GRID = 24
# Weights of a linear program have smaller errors still than those compared here.
_CLEARLY = 0.95


def choose(request: Request, counts: Counts) -> tuple[Method, str]:
    """Returns the method that was asked for, or serves the objective best, and why.

    What shape values have must be said (docs/theory/cells.md#few-cells).
    """
    if request.method is not None:
        return method_of(request.method, request.settings), ""
    if request.objective == "worst_case" or request.epsilon is None:
        return _certified(request, counts)
    why = ""
    if request.statistics != ("mean",):
        why = "errors hold in every data set: private ranges are found only for means"
    elif _count_alike(counts) and request.range == "tight":
        why = "users have about equally many records, and values may fill the bounds"
    epsilon = float(request.epsilon)
    known = request.range
    sizes = counts.n_users, len(counts.user), counts.n_cells
    selects = split(epsilon, *sizes) is not None
    few = selects and counts.n_cells <= _FEW_CELLS and not known
    if not why and few and _count_alike(counts):
        why = (
            "few cells, and users have about equally many records: a private range helps only if "
            'values fill a small part of the bounds (range="loose", --setting range=loose)'
        )
    if why:
        return _certified(request, counts)[0], why
    if counts.n_cells == 1 and _FEW <= epsilon * counts.n_users < _ENOUGH:
        why = "with few users in one cell it finds a private interval most reliably"
        return method_of("adaptive"), why
    if rounds(epsilon, float(request.delta), *sizes) > 1:
        why = "users are in so many cells that noise is Gaussian: a second round costs little"
        return method_of("user_clipped", {"rounds": 2}), why
    return method_of("user_clipped"), "the smallest typical error, if users have similar values"


def _count_alike(counts: Counts) -> bool:
    """Whether cells have nearly as many users as equal ones would be: (sum m)^2/sum m^2 of each."""
    count = counts.count.astype(np.float64)
    squares = np.bincount(counts.cell, count**2)
    equal = counts.totals.astype(np.float64) ** 2 / squares
    return bool(equal.sum() >= _ALIKE * len(count))


def _certified(request: Request, counts: Counts) -> tuple[Method, str]:
    """The smallest error in every data set; a delta is taken only where counts say it helps."""
    epsilon = request.epsilon
    delta = request.delta
    few = len(counts.user) <= _MOST_OF_PROGRAM
    if not (few and is_small(counts.user, counts.n_cells)):
        slow = "certified in every data set; a linear program would take too long"
        return method_of("balanced"), _SMALLER if delta else slow
    if epsilon and delta and gaussian_is_smaller(counts, epsilon, delta, len(request.statistics)):
        return method_of("balanced"), _SMALLER
    settings = {} if epsilon is None else {"targets": "balanced"}
    return method_of("optimal", settings), "the smallest certified errors, in every data set"


def gaussian_is_smaller(counts: Counts, epsilon: Fraction, delta: Fraction, numbers: int) -> bool:
    """Whether a delta helps more than weights do (docs/theory/privacy.md#when-a-delta-helps).

    With `numbers` a cell, two plans decide that anybody can write down: Gaussian noise of full
    shares, and Laplace noise of users each held to one load.
    """
    loss = float(epsilon)
    chance = float(delta)
    if int(counts.cells_per_user.max()) * numbers <= cells_at_least(loss, chance):
        return False
    share = counts.count / counts.totals[counts.cell]
    units = largest(counts.cell, share, counts.n_cells), 1 / counts.users_per_cell
    normal = math.sqrt(numbers / (math.pi * rho_of(loss, chance)))

    def longest(unit: Floats) -> float:
        """The largest l2 norm of a user's shares over the units of their cells."""
        squares = np.bincount(counts.user, (share / unit[counts.cell]) ** 2)
        return math.sqrt(float(squares.max()))

    by_noise = min(_log(unit * normal * longest(unit)) for unit in units)
    by_weights = min(_weighted(counts, share, unit, loss / numbers) for unit in units)
    return by_noise < by_weights + math.log(_CLEARLY)


def _weighted(counts: Counts, share: Floats, unit: Floats, epsilon: float) -> float:
    """The mean logarithm of the errors, with the best of a grid of loads."""
    user = counts.user
    cell = counts.cell
    load = np.bincount(user, share / unit[cell])
    return min(
        _log(
            np.bincount(cell, share * np.maximum(0, 1 - most / load[user])) / 2
            + unit * most / epsilon
        )
        for most in np.geomspace(load[load > 0].min(), load.max(), _GRID)
    )


def _log(error: Floats) -> float:
    return float(np.log(np.minimum(error, MIDPOINT_ERROR)).mean())
