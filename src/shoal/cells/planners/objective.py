"""Chooses the method that serves an objective from public counts, and says why in words."""

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

# In a single cell, `adaptive` finds a range more surely than `user_clipped` does if the number of
# users times epsilon is at least this
_FEW = 60
# and below this number.
_ENOUGH = 150
# If a plan has at most this many cells, and their users count about alike, a private radius makes
# errors hardly smaller than they are with the whole bounds (docs/theory/cells.md#few-cells).
_FEW_CELLS = 12
# Users count about alike if `count_alike` finds at least this part of the memberships.
_ALIKE = 0.75
# A linear program with more memberships takes minutes.
_MOST_OF_PROGRAM = 100_000
_SMALLER = "the smaller of Laplace and Gaussian noise, in every data set"
# The number of loads that are tried as a limit on users, from the lightest to the heaviest.
_GRID = 24
# Gaussian noise is chosen if its errors are smaller by this factor, as the weights of a linear
# program have smaller errors than those compared here.
_CLEARLY = 0.95


def choose(request: Request, counts: Counts) -> tuple[Method, str]:
    """Returns the method that was asked for, or the one that serves the objective best, and why.

    Counts do not say how values spread: only the request can (docs/theory/cells.md#few-cells).
    """
    if request.method is not None:
        return method_of(request.method, request.settings), ""
    if request.objective == "worst_case" or request.epsilon is None:
        return _certified(request, counts)
    epsilon = float(request.epsilon)
    why = _why_certified(request, counts, epsilon)
    if why:
        method, _ = _certified(request, counts)
        return method, why
    if counts.n_cells == 1 and _FEW <= epsilon * counts.n_users < _ENOUGH:
        why = "with few users in one cell it finds a private interval most reliably"
        return method_of("adaptive"), why
    memberships = len(counts.user)
    if rounds(epsilon, float(request.delta), counts.n_users, memberships, counts.n_cells) > 1:
        why = "users are in so many cells that noise is Gaussian: a second round costs little"
        return method_of("user_clipped", {"rounds": 2}), why
    return method_of("user_clipped"), "the smallest typical error, if users have similar values"


def _why_certified(request: Request, counts: Counts, epsilon: float) -> str:
    """Returns why no private range serves typical errors; empty if one does."""
    if request.statistics != ("mean",):
        return "errors hold in every data set: private ranges are found only for means"
    if not count_alike(counts):
        return ""
    if request.range == "tight":
        return "users have about equally many records, and values may fill the bounds"
    selects = split(epsilon, counts.n_users, len(counts.user), counts.n_cells) is not None
    if selects and counts.n_cells <= _FEW_CELLS and request.range is None:
        return (
            "few cells, and users have about equally many records: a private range helps only if "
            'values fill a small part of the bounds (range="loose", --setting range=loose)'
        )
    return ""


def count_alike(counts: Counts) -> bool:
    """Returns whether users of a cell have about equal counts.

    A cell's sum of counts, squared and divided by the sum of squared counts, is its number of users
    if they are equal. The sum of these over cells must be nearly the number of memberships.
    """
    count = counts.count.astype(np.float64)
    squares = np.bincount(counts.cell, count**2)
    equal = counts.totals.astype(np.float64) ** 2 / squares
    return bool(equal.sum() >= _ALIKE * len(count))


def _certified(request: Request, counts: Counts) -> tuple[Method, str]:
    """Returns the method with the smallest certified error, with a delta only where it helps."""
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
    """Returns whether a delta helps more than weights (docs/theory/privacy.md#when-a-delta-helps).

    Two simple plans with `numbers` numbers in each cell are compared: Gaussian noise where every
    record counts, and Laplace noise where no user's load is above a limit.
    """
    loss = float(epsilon)
    chance = float(delta)
    # In fewer cells of a user, Gaussian noise is never smaller.
    if int(counts.cells_per_user.max()) * numbers <= cells_at_least(loss, chance):
        return False
    share = counts.count / counts.totals[counts.cell]
    # Noise is in proportion to each cell's largest share, or to the share of its average user.
    units = largest(counts.cell, share, counts.n_cells), 1 / counts.users_per_cell
    # The mean absolute noise of each number for a user of norm 1.
    mean_noise = math.sqrt(numbers / (math.pi * rho_of(loss, chance)))

    def longest(unit: Floats) -> float:
        """Returns the largest l2 norm of a user's shares, each divided by the unit of its cell."""
        squares = np.bincount(counts.user, (share / unit[counts.cell]) ** 2)
        return math.sqrt(float(squares.max()))

    by_noise = min(_log(unit * mean_noise * longest(unit)) for unit in units)
    by_weights = min(_weighted(counts, share, unit, loss / numbers) for unit in units)
    return by_noise < by_weights + math.log(_CLEARLY)


def _weighted(counts: Counts, share: Floats, unit: Floats, epsilon: float) -> float:
    """Returns the mean logarithm of the errors, with the best limit on loads of a grid.

    A user's load is the sum of its shares, each divided by the unit of its cell.
    """
    user = counts.user
    cell = counts.cell
    load = np.bincount(user, share / unit[cell])
    mean_logarithms = []
    for limit in np.geomspace(load[load > 0].min(), load.max(), _GRID):
        # The bias is half of the weight that the limit takes from a cell's users.
        part_taken = np.maximum(0, 1 - limit / load[user])
        bias = np.bincount(cell, share * part_taken) / 2
        noise = unit * limit / epsilon
        mean_logarithms.append(_log(bias + noise))
    return min(mean_logarithms)


def _log(error: Floats) -> float:
    """Returns the mean logarithm of the errors, none of them larger than guessing's."""
    return float(np.log(np.minimum(error, MIDPOINT_ERROR)).mean())
