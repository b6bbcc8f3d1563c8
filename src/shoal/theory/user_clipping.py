"""Public numbers of the user-clipped mean: how a budget is split, and how heavy users count.

Source: docs/theory/cells.md#weights-and-budget, #two-rounds and #the-excess.
"""

import math
from dataclasses import dataclass

from shoal.errors import InputError
from shoal.theory import gaussian

# Cells from which on the excess is measured: in fewer it would cost more than it tells.
MEASURED = 10
# Cells of a user on average below which users are mostly in one cell each.
_APART = 1.5
# Radii that are tried: the width over 2^(j/2), j from 0.
RADII = 25
# Noise over a ball with a private radius is about this many deviations of a user over its loss.
PRIVATE_RADIUS = 3.5
# The same where the whole width is taken.
WHOLE_WIDTH = 10.0
# Deviations by which heavy users may differ from others, in one cell and in several.
ALONE = 0.4
TOGETHER = 2.0
_NEAR = 16.0
_FEWEST_BINS = 8
_MOST_BINS = 1024
# Cells, epsilon times users, and Laplace noise over normal noise: there are two rounds from all
# three on (`shoal bench counts`).
_MANY = 250
_ENOUGH = 1000
_SMALLER = 1.3
# Of epsilon, about what noise has.
_OF_NOISE = 0.8


@dataclass(frozen=True)
class Split:
    """How a budget is spent, and what the private selections look for.

    Attributes:
        centre: Part of epsilon for the centre.
        radius: Part of epsilon for the radius.
        excess: Part of epsilon for what clipping cuts off from all users together.
        clipped: k, how many users should be beyond the radius.
        bins: Candidates of the centre: equal bins of the range.
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


def split(epsilon: float, users: int, members: int, cells: int) -> Split | None:
    """How much of epsilon finds centre and radius; None where too few users would have to say."""
    if not epsilon > 0 or users < 1 or cells < 1:
        raise InputError(
            f"epsilon is {epsilon:g}, for {users} users and {cells} cells", "give numbers above 0"
        )
    everyone = epsilon * users
    if everyone < (60 if cells == 1 else 75):
        return None
    rate = math.sqrt(0.3 / cells)
    centre = min(0.2, 40 / everyone)
    radius = min(0.25, max(rate / (1 + rate), 25 / everyone))
    excess = min(0.06, max(0.03, 2 / cells)) if cells >= MEASURED else 0.0
    # In one cell each, users share no bias: what is cut off must be known better.
    excess *= 1 + are_apart(users, members)
    noise = (1 - centre - radius - excess) * epsilon
    bins = 2 ** math.floor(math.log2(max(everyone / 2, 1)))
    return Split(
        centre=centre,
        radius=radius,
        excess=excess,
        clipped=clipped_users(3 * cells / noise, users, radius * epsilon, everyone),
        bins=min(_MOST_BINS, max(_FEWEST_BINS, bins)),
    )


def are_apart(users: int, members: int) -> bool:
    """Whether so many users, members of so many cells in all, are mostly in one cell each."""
    return members < _APART * users


def rounds(epsilon: float, delta: float, users: int, members: int, cells: int) -> int:
    """How many rounds the default has: 2 with a delta and users in very many cells, else 1.

    Normal noise must be 1.3 times smaller than Laplace noise for a user in the mean number of
    cells.
    """
    if not delta or cells < _MANY or epsilon * users < _ENOUGH:
        return 1
    normal = math.sqrt(math.pi * gaussian.rho_of(_OF_NOISE * epsilon, delta) * members / users)
    return 2 if normal >= _SMALLER * _OF_NOISE * epsilon else 1


def clipped_users(wanted: float, users: int, selecting: float, everyone: float) -> int:
    """How many users should be beyond the radius: a rank that the selection can find."""
    most = (0.35 if everyone >= _ENOUGH else 0.2) * users
    return max(1, math.floor(min(most, max(wanted, 10 / selecting))))


def balancing_users(distance: float, cells: int, each: float) -> float:
    """How many users' clipping weighs as much as Gaussian noise: 3 cells/(e sqrt(each))."""
    return 3 * cells / (distance * math.sqrt(math.pi / 2 * each))


def hidden_radii(ratio: float) -> float:
    """How many radii a clipped user is taken to hide: 1 + log2(ratio/16)/2, at least 1."""
    return max(1.0, 1.0 + math.log2(ratio / _NEAR) / 2)
