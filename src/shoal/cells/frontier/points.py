"""Points of a frontier: which methods and losses there are, and what bounds them from below."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic

from shoal import checks
from shoal.cells.frontier.errors import Bound, JointBound, LeftOut, P, Point, bound_of, jointly

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, eq=False)
class Points(Generic[P]):
    """Errors of several methods against the privacy loss, on the same cells.

    Attributes:
        points: One a method and loss, method by method, losses rising.
        left_out: Methods without a plan at a loss, with the reason.
    """

    points: tuple[Point[P], ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that have a plan, with their settings."""
        return tuple(dict.fromkeys(each.method for each in self.points))

    @property
    def epsilons(self) -> tuple[Fraction, ...]:
        """Losses at which methods are compared, rising."""
        return tuple(sorted({each.epsilon for each in self.points}))

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """The lower bound at every loss where one is known: not where noise is Gaussian."""
        found = [
            bound_of([one for one in self.points if one.epsilon == at]) for at in self.epsilons
        ]
        return tuple(each for each in found if each is not None)

    @cached_property
    def joint_bounds(self) -> tuple[JointBound, ...]:
        """Lower bounds on the error of the worst cell, where an optimal plan proves one."""
        found: dict[Fraction, float] = {}
        for each in self.points:
            worst = jointly(each)
            if worst > found.get(each.epsilon, 0.0):
                found[each.epsilon] = worst
        if len(self.bounds) < len(self.epsilons):
            # Gaussian noise may do better than what holds for Laplace noise.
            found = {each.epsilon: found[each.epsilon] for each in self.bounds
                     if each.epsilon in found}  # fmt: skip
        return tuple(JointBound(epsilon, found[epsilon]) for epsilon in sorted(found))

    def of(self, method: str) -> tuple[Point[P], ...]:
        """The points of one method, losses rising.

        Args:
            method: Its name, with its settings, as in `methods`.

        Returns:
            None, one or several points.

        Raises:
            InputError: The method is no text.
        """
        wanted = checks.text(method, "method")
        return tuple(each for each in self.points if each.method == wanted)
