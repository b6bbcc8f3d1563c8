"""Faults in the second opinion: lies that it would let pass."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_CELLS = ("tests/release/test_verify.py",)
_MECHANISMS = ("tests/release/test_verify_mechanisms.py",)
_SCALES = ("tests/release/test_verify_scales.py",)
_SIZE = ("tests/release/test_verify_size.py",)
_STATISTICS = ("tests/release/test_verify_statistics.py",)
_TRIALS = ("tests/trials/test_verify.py",)
_UNBIASED = ("tests/unbiased/test_verify.py",)

FAULTS = (
    Fault(
        "a stated loss may be below the true one",
        "G-VERIFY",
        "release/verify_losses.py",
        "return least <= stated <= least * (1 + _PLACES) + room,",
        "return stated <= least * (1 + _PLACES) + room,",
        _CELLS,
    ),
    Fault(
        "selections cost the second opinion nothing",
        "G-VERIFY",
        "release/verify_losses.py",
        "most = _largest_sum(cost, kind, facts.member_user) + self.once()",
        "most = _largest_sum(cost, kind, facts.member_user)",
        _MECHANISMS,
    ),
    Fault(
        "losses of a user are added up without carries",
        "G-VERIFY",
        "release/verify_losses.py",
        "carried = total >> _DIGIT",
        "carried = 0 * total",
        _SIZE,
    ),
    Fault(
        "a user in two arrays pays for one",
        "G-VERIFY",
        "release/verify_losses.py",
        "touched = self.design.touched",
        "touched = min(1, self.design.touched)",
        _MECHANISMS,
    ),
    Fault(
        "equalised noise may differ from cell to cell",
        "G-VERIFY",
        "release/verify_scales.py",
        'if method == "equalised" and not _alike(scales.sums):',
        'if method == "equalised" and not scales.sums.all():',
        _SCALES,
    ),
    Fault(
        "uniform noise need not be for the heaviest user of each cell",
        "G-VERIFY",
        "release/verify_scales.py",
        'if method == "uniform" and not _alike(scales.heaviest):',
        'if method == "uniform" and not scales.heaviest.all():',
        _SCALES,
    ),
    Fault(
        "noise of Clip-User is for all cells of a user, kept or not",
        "G-VERIFY",
        "release/verify_scales.py",
        "kept = facts.member_user[design.weight > 0]",
        "kept = facts.member_user[design.weight >= 0]",
        _SCALES,
    ),
    Fault(
        "noise may be more than was asked for",
        "G-VERIFY",
        "release/verify_scales.py",
        "return spent >= asked * (1 - Fraction(_LEVEL))",
        "return spent > 0 * asked * (1 - Fraction(_LEVEL))",
        _SCALES,
    ),
    Fault(
        "a plan may spend more than was asked for",
        "G-VERIFY",
        "release/verify.py",
        "return stated <= asked, f",
        "return stated <= 2 * asked, f",
        _CELLS,
    ),
    Fault(
        "a simulation is taken for a release",
        "G-SIMULATION",
        "release/verify.py",
        'genuine = manifest["simulation"] is False',
        'genuine = manifest["simulation"] in (False, True)',
        _CELLS,
    ),
    Fault(
        "counts need not fit their fingerprint",
        "G-VERIFY",
        "release/verify.py",
        'return state.hexdigest() == occupancy["fingerprint"], state',
        'return len(state.hexdigest()) == len(occupancy["fingerprint"]), state',
        _CELLS,
    ),
    Fault(
        "a request need not be that of the plan",
        "G-VERIFY",
        "release/verify.py",
        'key == manifest["request"], key[:16]',
        'len(key) == len(manifest["request"]), key[:16]',
        _CELLS,
    ),
    Fault(
        "results need not follow from their lattice numbers",
        "G-VERIFY",
        "release/verify_results.py",
        "        if not rows.follows(place):",
        "        if not rows.follows(0):",
        _CELLS,
    ),
    Fault(
        "the loss of a trial may be understated",
        "G-VERIFY",
        "trials/verify_privacy.py",
        "return true <= stated <= true * _ROOM, found",
        "return stated <= true * _ROOM, found",
        _TRIALS,
    ),
    Fault(
        "the loss of noisy clusters may be understated",
        "G-VERIFY",
        "trials/verify_aggregates.py",
        "return true == stated, f",
        "return true >= stated, f",
        _TRIALS,
    ),
    Fault(
        "a simulated trial is taken for a release",
        "G-SIMULATION",
        "trials/verify.py",
        'genuine = manifest["simulation"] is False',
        'genuine = manifest["simulation"] in (False, True)',
        _TRIALS,
    ),
    Fault(
        "priors below the floor pass",
        "G-VERIFY",
        "trials/verify_responses.py",
        "and int(self.prior.min()) >= self.floor",
        "and int(self.prior.min()) >= 0",
        _TRIALS,
    ),
    Fault(
        "the loss of an unbiased mean may be understated",
        "G-VERIFY",
        "unbiased/verify.py",
        "holds = epsilon <= stated <= epsilon * _LAST_DIGITS and delta",
        "holds = stated <= epsilon * _LAST_DIGITS and delta",
        _UNBIASED,
    ),
    Fault(
        "delta of an unbiased mean may be understated",
        "G-VERIFY",
        "unbiased/verify.py",
        'and delta == rational(claims["delta"])\n    return holds, f"epsilon {float(epsilon)',
        'and delta <= 1\n    return holds, f"epsilon {float(epsilon)',
        _UNBIASED,
    ),
    Fault(
        "steps that share their users cost the second opinion the larger",
        "G-VERIFY",
        "unbiased/verify_losses.py",
        "return first[0] + second[0], first[1] + second[1]",
        "return max(first[0], second[0]), max(first[1], second[1])",
        _UNBIASED,
    ),
    Fault(
        "the second opinion forgets the second window",
        "G-VERIFY",
        "unbiased/verify_losses.py",
        'alone = numbers["coarse_windows"] * _alone(facts)',
        "alone = _alone(facts)",
        _UNBIASED,
    ),
)
