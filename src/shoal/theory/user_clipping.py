"""Chooses public numbers of the user-clipped mean: how a budget is split, how many are clipped.

Source: docs/theory/cells.md#weights-and-budget, #two-rounds and #the-excess.
"""

import math
from dataclasses import dataclass

from shoal.errors import InputError
from shoal.theory import gaussian

# The fewest cells in which the excess is measured: in fewer it would cost more than it is worth.
MEASURED = 3
# The fewest cells that show how far cells spread.
SPREAD = 10
# Users with fewer cells on average are mostly in one cell each.
_APART = 1.5
# The number of radii that are tried: the width divided by 2^(j/2), with j from 0.
RADII = 25
# At a loss of 1, a ball with a private radius has noise of about this many standard deviations of a
# user.
PRIVATE_RADIUS = 3.5
# The same for a ball that holds the whole width.
WHOLE_WIDTH = 10.0
# The standard deviations by which heavy users may differ from the others, in a single cell
ALONE = 0.4
# and in several cells.
TOGETHER = 2.0
# A clipped user is taken to hide one radius if the width is at most this many radii.
_NEAR = 16.0
# The fewest and the most candidates of the centre.
_FEWEST_BINS = 8
_MOST_BINS = 1024
# There are two rounds from this number of cells on (`shoal bench counts`),
_MANY = 250
# with this number of users times epsilon or more,
_ENOUGH = 1000
# if Laplace noise is at least this many times as large as normal noise.
_SMALLER = 1.3
# The part of epsilon that is taken to be left for noise.
_OF_NOISE = 0.8
# The excess has at most this part if it has more than usual.
_MOST_EXCESS = 0.2


@dataclass(frozen=True)
class Split:
    """The parts of a budget, and what the private selections look for.

    Attributes:
        centre: Part of epsilon for the centre.
        radius: Part of epsilon for the radius.
        excess: Part of epsilon for the excess, which clipping cuts off from all users together.
        clipped: The number of users who should be beyond the radius.
        bins: The number of candidates of the centre, which are equal bins of the range.
    """

    centre: float
    radius: float
    excess: float
    clipped: int
    bins: int

    @property
    def noise(self) -> float:
        """Part of epsilon for the noise."""
        return 1.0 - self.centre - self.radius - self.excess


def split(
    epsilon: float, users: int, members: int, cells: int, counting: float = 1.0
) -> Split | None:
    """Returns how epsilon is split; None if there are too few users to find centre and radius.

    The excess has `counting` times its usual part, as far as others leave room for it.
    """
    if not epsilon > 0 or users < 1 or cells < 1:
        raise InputError(
            f"epsilon is {epsilon:g}, for {users} users and {cells} cells", "give numbers above 0"
        )
    total_epsilon = epsilon * users
    enough = 60 if cells == 1 else 75
    if total_epsilon < enough:
        return None
    rate = math.sqrt(0.3 / cells)
    centre = min(0.2, 40 / total_epsilon)
    radius = min(0.25, max(rate / (1 + rate), 25 / total_epsilon))
    excess = 0.0
    if cells >= SPREAD:
        # In fewer cells a single one may have more of the bias, so that it must be known better.
        excess = min(0.1, max(0.08, 2 / cells))
    elif cells >= MEASURED and are_apart(users, members):
        # One of very few cells may have all of it.
        excess = 0.12
    elif cells >= MEASURED:
        excess = 0.06
    excess = max(excess, min(counting * excess, _MOST_EXCESS))
    noise = (1 - centre - radius - excess) * epsilon
    # About one bin for every two users at a loss of 1, in powers of two.
    bins = 2 ** math.floor(math.log2(max(total_epsilon / 2, 1)))
    return Split(
        centre=centre,
        radius=radius,
        excess=excess,
        clipped=clipped_users(3 * cells / noise, users, radius * epsilon, total_epsilon),
        bins=min(_MOST_BINS, max(_FEWEST_BINS, bins)),
    )


def are_apart(users: int, members: int) -> bool:
    """Returns whether users, with so many memberships in all, are mostly in one cell each."""
    return members < _APART * users


def rounds(epsilon: float, delta: float, users: int, members: int, cells: int) -> int:
    """Returns the default number of rounds: 2 with a delta and users in very many cells, else 1.

    For a user in the mean number of cells, Laplace noise must be at least 1.3 times normal noise.
    """
    if not delta or cells < _MANY or epsilon * users < _ENOUGH:
        return 1
    normal = math.sqrt(math.pi * gaussian.rho_of(_OF_NOISE * epsilon, delta) * members / users)
    return 2 if normal >= _SMALLER * _OF_NOISE * epsilon else 1


def clipped_users(wanted: float, users: int, selecting: float, total_epsilon: float) -> int:
    """Returns how many users should be beyond the radius, a rank that the selection can find.

    `selecting` is the epsilon of the selection, and `total_epsilon` epsilon times all users.
    """
    part = 0.35 if total_epsilon >= _ENOUGH else 0.2
    return max(1, math.floor(min(part * users, max(wanted, 10 / selecting))))


def balancing_users(distance: float, cells: int, mean_cells: float) -> float:
    """Returns how many users' clipping weighs as much as Gaussian noise.

    `distance` is the diameter of the ball in noise scales, `mean_cells` those of a user.
    """
    return 3 * cells / (distance * math.sqrt(math.pi / 2 * mean_cells))


def hidden_radii(ratio: float) -> float:
    """Returns how many radii a clipped user is taken to hide: 1 + log2(ratio/16)/2, at least 1.

    `ratio` is the width divided by the radius.
    """
    return max(1.0, 1.0 + math.log2(ratio / _NEAR) / 2)
