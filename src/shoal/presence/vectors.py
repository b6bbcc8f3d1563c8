"""One user, one vector of whole numbers: all that bounds what a user can do to private counts.

Neighbours differ by all records of one user, so by one vector of whole numbers from 0 whose sum is
at most `whole`. Noise of scale 2^bits then costs whole/2^bits, whatever the data. Floating-point
numbers propose weights, and whole numbers dispose of what is too large. A function here sees one
user's memberships in their public order, so that nobody else's rows move a unit of its vector.

Source: docs/theory/private-counts.md#one-user-one-vector.
"""

import numpy as np

from shoal.arrays import Floats, Ints


def weights(parts: Floats, user: Ints, users: int, *, whole: int, cap: float) -> Ints:
    """Returns floor(whole parts / max(sum of the user's parts, cap)) of each membership.

    A user whose parts add up to the cap or more has `whole` in all, shared in proportion to its
    parts; one with less has its part of it, and below the cap all parts count alike.

    Args:
        parts: What each membership asks for, from 0; what is no finite number counts as 0.
        user: The user of each membership, ascending; the same shape.
        users: How many users there are.
        whole: The most that a user has in all its memberships.
        cap: Parts of which a user has all of `whole`, above 0.
    """
    with np.errstate(all="ignore"):
        wanted = np.where(np.isfinite(parts) & (parts > 0), parts, 0.0)
        total = np.maximum(np.bincount(user, wanted, users), cap)
        found = np.floor(whole * (wanted / total[user]))
    found = np.where(np.isfinite(found) & (found > 0), np.minimum(found, whole), 0.0)
    return sound(found.astype(np.int64), user, users, whole)


def sound(vector: Ints, user: Ints, users: int, whole: int) -> Ints:
    """Returns the same vector, but nothing of a user whose numbers add up to more than `whole`.

    Rounding never makes them so large; should it do so, the user loses its numbers and not more
    privacy than was promised. Numbers are from 0 to 2^53, so that sums below 2^53 are exact.
    """
    total = np.bincount(user, vector, users)
    return np.where((total <= whole)[user] & (vector >= 0), vector, 0)


def cut(weight: Ints, shares: Floats) -> Ints:
    """Cuts each weight at falling shares of it: d + 1 parts from 0 that add up to the weight.

    Args:
        weight: Of each membership, from 0.
        shares: Of d cuts, shape (d, memberships): of 1 at most, and each at most the one before it.
            Shares of another form are taken for the nearest such shares, and NaN for 0.

    Returns:
        What lies above no cut first and what lies above all of them last, shape (d + 1,
        memberships): the order of the shares alone makes them add up.
    """
    falling = np.minimum.accumulate(np.nan_to_num(shares, posinf=1.0, neginf=0.0), axis=0)
    above = np.floor(weight * np.clip(falling, 0.0, 1.0)).astype(np.int64)
    nothing = np.zeros((1, len(weight)), dtype=np.int64)
    ends = np.concatenate([weight[None], np.minimum(above, weight), nothing])
    return -np.diff(ends, axis=0)


def sizes(parts: Floats, user: Ints, users: int, edges: Floats) -> Ints:
    """Returns how many users have parts of each size: up to the first edge that is not below them.

    Users with more than the last edge count there; each user is in one of them.
    """
    total = np.bincount(user, np.nan_to_num(parts), users)
    place = np.minimum(np.searchsorted(edges, total), len(edges) - 1)
    return np.bincount(place, minlength=len(edges)).astype(np.int64)
