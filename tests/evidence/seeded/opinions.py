"""Faults in the second opinion: lies that it would let pass."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_CELLS = ("tests/verification/cells/test_verify.py",)
_FAR = ("tests/verification/cells/test_far_bounds.py",)
_MECHANISMS = ("tests/verification/cells/test_mechanisms.py",)
_SCALES = ("tests/verification/cells/test_scales.py",)
_SIZE = ("tests/verification/cells/test_size.py",)
_STATISTICS = ("tests/verification/cells/test_statistics.py",)
_TRIALS = ("tests/verification/trials/test_verify.py",)
_UNBIASED = ("tests/verification/means/test_verify.py",)

FAULTS = (
    Fault(
        "the first moment is taken back from a value that may lie far from 0",
        "G-VERIFY",
        "cells/joint_moments.py",
        "return numbers[first] - 1 / 2, numbers[second], scale",
        "value = plan.bounds.lo + plan.width * numbers[first]\n"
        "    return (value - plan.bounds.lo) / plan.width - 1 / 2, numbers[second], scale",
        _FAR,
    ),
    Fault(
        "any interval may be cut to the whole bounds",
        "G-VERIFY",
        "verification/cells/rows.py",
        "if low + off > hi or high - off < lo:",
        "if off >= 0:",
        _FAR,
    ),
    Fault(
        "the second opinion moves every estimate into the heaviest user's range",
        "G-VERIFY",
        "verification/cells/rows.py",
        'mechanism.name == "akmv" or mechanism.parameters.get("widened") == [1]',
        'mechanism.name == "akmv"',
        ("tests/cells/test_estimates.py",),
    ),
    Fault(
        "targets may be any multiple of what they are",
        "G-VERIFY",
        "verification/cells/gaps.py",
        "abs(float(same.max()) - 1) > TOLERANCE",
        "abs(float(same.max()) - 1) > 1e9",
        _STATISTICS,
    ),
    Fault(
        "clusters of a trial may be in any order",
        "G-VERIFY",
        "verification/trials/facts.py",
        "rising = all(_steps(places)) and all(_steps(order[1:]))",
        "rising = all(_steps(order[1:]))",
        _TRIALS,
    ),
    Fault(
        "a stated loss may be below the true one",
        "G-VERIFY",
        "verification/cells/losses.py",
        "return least <= stated <= least * (1 + _PLACES) + capacity,",
        "return stated <= least * (1 + _PLACES) + capacity,",
        _CELLS,
    ),
    Fault(
        "selections cost the second opinion nothing",
        "G-VERIFY",
        "verification/cells/losses.py",
        "most = _largest_sum(cost, kind, facts.member_user) + self.once()",
        "most = _largest_sum(cost, kind, facts.member_user)",
        _MECHANISMS,
    ),
    Fault(
        "losses of a user are added up without carries",
        "G-VERIFY",
        "verification/cells/losses.py",
        "carried = total >> _DIGIT",
        "carried = 0 * total",
        _SIZE,
    ),
    Fault(
        "a user in two arrays pays for one",
        "G-VERIFY",
        "verification/cells/losses.py",
        "touched = self.design.touched",
        "touched = min(1, self.design.touched)",
        _MECHANISMS,
    ),
    Fault(
        "equalised noise may differ from cell to cell",
        "G-VERIFY",
        "verification/cells/scales.py",
        'if method == "equalised" and not _alike(scales.sums):',
        'if method == "equalised" and not scales.sums.all():',
        _SCALES,
    ),
    Fault(
        "uniform noise need not be for the heaviest user of each cell",
        "G-VERIFY",
        "verification/cells/scales.py",
        'if method == "uniform" and not _alike(scales.heaviest):',
        'if method == "uniform" and not scales.heaviest.all():',
        _SCALES,
    ),
    Fault(
        "noise of Clip-User is for all cells of a user, kept or not",
        "G-VERIFY",
        "verification/cells/scales.py",
        "kept = facts.member_user[design.weight > 0]",
        "kept = facts.member_user[design.weight >= 0]",
        _SCALES,
    ),
    Fault(
        "noise may be more than was asked for",
        "G-VERIFY",
        "verification/cells/scales.py",
        "return spent >= asked * (1 - Fraction(_LEVEL))",
        "return spent > 0 * asked * (1 - Fraction(_LEVEL))",
        _SCALES,
    ),
    Fault(
        "a plan may spend more than was asked for",
        "G-VERIFY",
        "verification/cells/verify.py",
        "return stated <= asked, f",
        "return stated <= 2 * asked, f",
        _CELLS,
    ),
    Fault(
        "a simulation is taken for a release",
        "G-SIMULATION",
        "verification/envelope.py",
        'held = manifest["simulation"] is False',
        'held = manifest["simulation"] in (False, True)',
        _CELLS,
    ),
    Fault(
        "counts need not fit their fingerprint",
        "G-VERIFY",
        "verification/cells/verify.py",
        'return state.hexdigest() == occupancy["fingerprint"], state',
        'return len(state.hexdigest()) == len(occupancy["fingerprint"]), state',
        _CELLS,
    ),
    Fault(
        "a request need not be that of the plan",
        "G-VERIFY",
        "verification/envelope.py",
        'key == manifest["request"], key[:16]',
        'len(key) == len(manifest["request"]), key[:16]',
        _CELLS,
    ),
    Fault(
        "results need not follow from their lattice numbers",
        "G-VERIFY",
        "verification/cells/results.py",
        "        if not rows.follows(place):",
        "        if not rows.follows(0):",
        _CELLS,
    ),
    Fault(
        "the loss of a trial may be understated",
        "G-VERIFY",
        "verification/trials/privacy.py",
        "return true <= stated <= true * _CAPACITY, found",
        "return stated <= true * _CAPACITY, found",
        _TRIALS,
    ),
    Fault(
        "the loss of noisy clusters may be understated",
        "G-VERIFY",
        "verification/trials/aggregates.py",
        "return true == stated, f",
        "return true >= stated, f",
        _TRIALS,
    ),
    Fault(
        "priors below the floor pass",
        "G-VERIFY",
        "verification/trials/responses.py",
        "and int(self.prior.min()) >= self.floor",
        "and int(self.prior.min()) >= 0",
        _TRIALS,
    ),
    Fault(
        "the loss of an unbiased mean may be understated",
        "G-VERIFY",
        "verification/means/verify.py",
        "holds = epsilon <= stated <= epsilon * _LAST_DIGITS and delta",
        "holds = stated <= epsilon * _LAST_DIGITS and delta",
        _UNBIASED,
    ),
    Fault(
        "delta of an unbiased mean may be understated",
        "G-VERIFY",
        "verification/means/verify.py",
        'and delta == rational(claims["delta"])\n    return holds, f"epsilon {float(epsilon)',
        'and delta <= 1\n    return holds, f"epsilon {float(epsilon)',
        _UNBIASED,
    ),
    Fault(
        "steps that share their users cost the second opinion the larger",
        "G-VERIFY",
        "verification/means/losses.py",
        "return first[0] + second[0], first[1] + second[1]",
        "return max(first[0], second[0]), max(first[1], second[1])",
        _UNBIASED,
    ),
    Fault(
        "the second opinion forgets the second window",
        "G-VERIFY",
        "verification/means/losses.py",
        'alone = numbers["coarse_windows"] * _alone(facts)',
        "alone = _alone(facts)",
        _UNBIASED,
    ),
)
