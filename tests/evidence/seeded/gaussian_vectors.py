"""Faults in users' vectors with Gaussian noise: the l2 ball, its loss, and the second opinion."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_VECTORS = ("tests/cells/test_gaussian_vectors.py",)
_PROJECTION = ("tests/theory/test_l2_projection.py",)
_ROUNDS = ("tests/cells/test_two_rounds.py",)
_OPINION = ("tests/verification/cells/test_gaussian_vectors.py",)

FAULTS = (
    Fault(
        "an l2 ball costs its radius, not its diameter",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "squares = (2 * self.ball) ** 2 + (2 * self.first_ball) ** 2",
        "squares = self.ball**2 + self.first_ball**2",
        _VECTORS,
    ),
    Fault(
        "selections are free beside Gaussian noise",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "return self.selecting + Fraction(",
        "return Fraction(",
        _VECTORS,
    ),
    Fault(
        "noise is planned with what selections have spent",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "left = epsilon - self.selecting",
        "left = epsilon",
        _VECTORS,
    ),
    Fault(
        "the zero-concentrated loss leaves selections out",
        "G-ACCOUNTING",
        "cells/privacy_loss.py",
        "return round_up(self.largest(scale) + self.selecting**2 / 2)",
        "return round_up(self.largest(scale))",
        _VECTORS,
    ),
    Fault(
        "vectors are moved into an l1 ball where noise hides one of l2",
        "G-ERROR",
        "cells/user_vectors.py",
        "return l2_projection if self.gaussian else l1_projection",
        "return l1_projection",
        _VECTORS,
    ),
    Fault(
        "Laplace noise is drawn around an l2 ball",
        "G-REACH",
        "cells/user_vectors.py",
        "return l2_projection if self.gaussian else l1_projection",
        "return l2_projection",
        ("tests/cells/test_user_vectors.py",),
    ),
    Fault(
        "scaled vectors are rounded away from zero",
        "G-REACH",
        "theory/l2_projection.py",
        "scaled = guess + rest // divisor",
        "scaled = guess + rest // divisor + 1",
        _PROJECTION,
    ),
    Fault(
        "norms are rounded to the nearest number",
        "G-REACH",
        "theory/l2_projection.py",
        "root = np.ceil(np.sqrt(square) * _OUTWARD)",
        "root = np.rint(np.sqrt(square))",
        _PROJECTION,
    ),
    Fault(
        "vectors are scaled by a floating-point number",
        "G-REACH",
        "theory/l2_projection.py",
        "    scaled = guess + rest // divisor\n",
        "    scaled = np.rint(size * (radius / divisor)).astype(np.int64) + 0 * rest\n",
        _PROJECTION,
    ),
    Fault(
        "clipped users hide as much as in l1",
        "G-COVERAGE",
        "cells/estimates.py",
        "norm = np.bincount(design.user, reach**power) ** (1 / power)",
        "norm = np.bincount(design.user, reach)",
        _VECTORS,
    ),
    Fault(
        "the second opinion charges half of an l2 ball",
        "G-INDEPENDENT",
        "verification/cells/losses.py",
        "return Fraction((2 * ball) ** 2 + (2 * first) ** 2, 2 * 4**facts.bits)",
        "return Fraction(ball**2 + first**2, 2 * 4**facts.bits)",
        _OPINION,
    ),
    Fault(
        "the second opinion gives selections away",
        "G-INDEPENDENT",
        "verification/cells/losses.py",
        "rho, noise = self.largest, stated - Fraction(self.once(), 2**facts.bits)",
        "rho, noise = self.largest, stated",
        _OPINION,
    ),
    Fault(
        "the second opinion fills an l2 ball by sums",
        "G-VERIFY",
        "verification/cells/scales.py",
        "    power = 2 if facts.gaussian else 1\n    reach",
        "    power = 1\n    reach",
        _OPINION,
    ),
    Fault(
        "a first round of Gaussian noise is free",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "squares = (2 * self.ball) ** 2 + (2 * self.first_ball) ** 2",
        "squares = (2 * self.ball) ** 2",
        _ROUNDS,
    ),
    Fault(
        "a first round of Laplace noise is free",
        "G-BUDGET",
        "cells/privacy_loss.py",
        "+ 2 * (self.ball + self.first_ball)",
        "+ 2 * self.ball",
        _ROUNDS,
    ),
    Fault(
        "the noise of the first round is that of the second",
        "G-REACH",
        "cells/drawing.py",
        '        parameters=told | {"clipped": clipped, "ball": ball},\n',
        '        parameters=told | {"clipped": clipped},\n',
        _ROUNDS,
    ),
    Fault(
        "both rounds of a simulation have the same noise",
        "G-SIMULATED",
        "privacy/noise.py",
        "rng = np.random.default_rng([self.seed, draw, _NUMBERS] if draw else self.seed)\n"
        "        return _added(steps, _gaussian(",
        "rng = np.random.default_rng(self.seed + 0 * draw)\n"
        "        return _added(steps, _gaussian(",
        _ROUNDS,
    ),
    Fault(
        "the second opinion gives the first round away",
        "G-INDEPENDENT",
        "verification/cells/losses.py",
        "return Fraction(self.once() + 2 * ball + 2 * first, 2**facts.bits)",
        "return Fraction(self.once() + 2 * ball, 2**facts.bits)",
        _ROUNDS,
    ),
    Fault(
        "the second opinion takes any ranks of two rounds",
        "G-VERIFY",
        "verification/cells/vectors.py",
        "all(abs(one - other) <= 1 for one, other in zip(stated, ranks, strict=True))",
        "len(stated) == len(ranks)",
        _ROUNDS,
    ),
)
