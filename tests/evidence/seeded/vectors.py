"""Faults in users' vectors: the ball, the votes, the selections, and the values afterwards."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_VECTORS = ("tests/cells/test_user_vectors.py",)
_PROJECTION = ("tests/theory/test_l1_projection.py",)
_OPINION = ("tests/verification/cells/test_mechanisms.py",)

FAULTS = (
    Fault(
        "a ball costs its radius, not its diameter",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "int(self._selections().sum()) + 2 * self.ball",
        "int(self._selections().sum()) + self.ball",
        _VECTORS,
    ),
    Fault(
        "the selections of centre and radius are charged once",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "present[design.user] = int(self._selections().sum()) + 2",
        "present[design.user] = int(self._selections().max(initial=0)) + 2",
        _VECTORS,
    ),
    Fault(
        "users' vectors are not moved into the ball",
        "G-REACH",
        "cells/user_vectors.py",
        "kept = project(self.vectors(centre, radius), design.user, ball)",
        "kept = self.vectors(centre, radius)",
        _VECTORS,
    ),
    Fault(
        "each cell of a user is clipped by itself",
        "G-REACH",
        "cells/user_vectors.py",
        "kept = project(self.vectors(centre, radius), design.user, ball)",
        "kept = np.clip(self.vectors(centre, radius), -ball, ball)",
        _VECTORS,
    ),
    Fault(
        "a user votes once in every cell",
        "G-SELECTION",
        "cells/user_vectors.py",
        "part = reach / np.bincount(user, reach)[user]",
        "part = np.ones(len(user)) + 0 * reach",
        _VECTORS,
    ),
    Fault(
        "a user counts for two ranks",
        "G-SELECTION",
        "cells/ranges/centre_and_radius.py",
        "return np.asarray(-USER * away)",
        "return np.asarray(-2 * USER * away)",
        _VECTORS,
    ),
    Fault(
        "the projection's threshold is one too low",
        "G-REACH",
        "theory/l1_projection.py",
        "least = np.maximum.reduceat(-((radius - so_far) // rank), first)",
        "least = np.maximum.reduceat(-((radius - so_far) // rank), first) - 1",
        _PROJECTION,
    ),
    Fault(
        "the second opinion charges half of the ball",
        "G-INDEPENDENT",
        "verification/cells/losses.py",
        "Fraction(self.once() + 2 * ball, 2**facts.bits)",
        "Fraction(self.once() + ball, 2**facts.bits)",
        _OPINION,
    ),
    Fault(
        "the second opinion takes any noise for a ball",
        "G-VERIFY",
        "verification/cells/scales.py",
        "return abs(found - 1) <= _FILLED,",
        "return found > 0,",
        _OPINION,
    ),
    Fault(
        "radii are a quarter of what they say",
        "G-ERROR",
        "cells/ranges/centre_and_radius.py",
        "return max(1, math.isqrt(top * top >> step))",
        "return top >> (step // 2 + 1)",
        _VECTORS,
    ),
    Fault(
        "a release of candidates that counts do not give is drawn",
        "G-COVERAGE",
        "cells/request_rules.py",
        "and (not facts.parts.range.of_vectors or follows_counts(facts))",
        "",
        _VECTORS,
    ),
    Fault(
        "a manifest is read with candidates that counts do not give",
        "G-COVERAGE",
        "cells/release.py",
        "if not keeps(found):",
        "if False:",
        _VECTORS,
    ),
    Fault(
        "the second opinion takes any candidates",
        "G-VERIFY",
        "verification/cells/vectors.py",
        "(bins, radii) == own[:2]",
        "bins > 0",
        _OPINION,
    ),
    Fault(
        "the second opinion takes any number of clipped users",
        "G-VERIFY",
        "verification/cells/vectors.py",
        "and abs(clipped - own[2]) <= 1",
        "",
        _OPINION,
    ),
    Fault(
        "the second opinion takes any lattice of vectors",
        "G-VERIFY",
        "verification/cells/vectors.py",
        "and facts.bits >= _FINER + (most - 1).bit_length()",
        "",
        _OPINION,
    ),
    Fault(
        "a published cell may be hidden as uninformative",
        "G-VERIFY",
        "verification/cells/verify.py",
        'rule["uninformative"] == "drop" and errors.design.mechanism.name != "user_clipped"',
        'rule["uninformative"] == "drop"',
        _OPINION,
    ),
    Fault(
        "clipped users hide one radius, however far the bounds",
        "G-SIMULATED",
        "cells/estimates.py",
        "beyond *= hidden_radii(1 / share)",
        "",
        ("tests/cells/test_posterior.py",),
    ),
)
