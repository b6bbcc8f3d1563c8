"""Faults in the mechanisms of means: contribution, clips, selections, rounding."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_REACH = ("tests/cells/test_reach.py",)
_SELECTION = ("tests/privacy/test_permute_and_flip.py",)
_VECTORS = ("tests/cells/test_ball_mean.py",)
_MOMENTS = ("tests/cells/test_moments.py",)
_ESTIMATES = ("tests/cells/test_estimates.py",)

FAULTS = (
    Fault(
        "a user's second array is forgotten in the contribution",
        "G-REACH",
        "cells/contributions/clipped_arrays.py",
        "return replace(plain, contribution=touched << SHARE, groups=groups)",
        "return replace(plain, contribution=np.minimum(touched, 1) << SHARE, groups=groups)",
        _REACH,
    ),
    Fault(
        "levy's scores move by one array",
        "G-SELECTION",
        "cells/ranges/levy_interval.py",
        "return design.touched",
        "return 1",
        _REACH,
    ),
    Fault(
        "scores move as for the user in the fewest arrays",
        "G-SELECTION",
        "cells/contributions/design.py",
        "int(np.bincount(self.groups.member).max())",
        "int(np.bincount(self.groups.member).min())",
        _REACH,
    ),
    Fault(
        "scores of quantiles move by one array",
        "G-SELECTION",
        "cells/ranges/quantile_pair.py",
        "return design.touched * UNIT",
        "return UNIT",
        _REACH,
    ),
    Fault(
        "scores of quantiles move by half of what they do",
        "G-SELECTION",
        "cells/ranges/quantile_pair.py",
        "return design.touched * UNIT",
        "return design.touched * UNIT // 2",
        _REACH,
    ),
    Fault(
        "a selection is charged once its score's sensitivity",
        "G-SELECTION",
        "privacy/permute_and_flip.py",
        "Fraction(2 * sensitivity) / Fraction(scale)",
        "Fraction(sensitivity) / Fraction(scale)",
        _SELECTION,
    ),
    Fault(
        "scores of middles count every array twice",
        "G-SELECTION",
        "privacy/permute_and_flip.py",
        "-np.maximum(upto - inside, len(values) - upto)",
        "-2 * np.maximum(upto - inside, len(values) - upto)",
        _SELECTION,
    ),
    Fault(
        "ties of quantile scores go to the wrong side",
        "G-SELECTION",
        "privacy/permute_and_flip.py",
        'below = np.searchsorted(ordered, candidates, side="left")',
        'below = np.searchsorted(ordered, candidates, side="right")',
        _SELECTION,
    ),
    Fault(
        "the clip of sums is dropped",
        "G-REACH",
        "cells/ranges/private_means.py",
        "clipped = np.minimum(self.sums, chosen.high[design.number])",
        "clipped = self.sums",
        _REACH,
    ),
    Fault(
        "scores of clipped sums move by half a user",
        "G-SELECTION",
        "cells/ranges/sum_threshold.py",
        "        return UNIT\n",
        "        return UNIT // 2\n",
        _REACH,
    ),
    Fault(
        "the range of clipped sums is one record",
        "G-ERROR",
        "cells/ranges/sum_threshold.py",
        'return parameters["most"].astype(np.float64)',
        'return 1.0 + 0.0 * parameters["most"]',
        (
            "tests/cells/test_one_cell.py::test_the_threshold_of_sums_counts_as_noise",
            "tests/cells/test_mechanisms.py",
        ),
    ),
    Fault(
        "the cap of a suppressed cell is not applied",
        "G-REACH",
        "cells/contributions/cells_left_out.py",
        'weight = np.minimum(occupancy.count[member], parameters["cap"][number])',
        "weight = occupancy.count[member]",
        (
            "tests/cells/test_lp_plan.py::test_plans_by_clip_user_stay_within_the_papers_account",
            "tests/verification/cells/test_statistics.py",
        ),
    ),
    Fault(
        "suppressed users count",
        "G-REACH",
        "cells/contributions/cells_left_out.py",
        'weight = np.where(parameters["kept"] > 0, weight, 0)',
        'weight = np.where(parameters["kept"] >= 0, weight, 0)',
        (
            "tests/cells/test_lp_plan.py::test_plans_by_clip_user_stay_within_the_papers_account",
            "tests/verification/cells/test_statistics.py",
        ),
    ),
    Fault(
        "the optimal threshold is off by one in the contribution",
        "G-REACH",
        "cells/contributions/truncated_users.py",
        "return replace(plain, contribution=near, interval=Interval(near, counts))",
        "return replace(plain, contribution=near - 1, interval=Interval(near, counts))",
        _REACH,
    ),
    Fault(
        "means of users are clipped from above only",
        "G-REACH",
        "cells/ranges/private_means.py",
        "low, high = ends(design, chosen or self._whole)\n"
        "            return self._weighed(design.number, design.weight, "
        "np.clip(self.means, low, high))",
        "low, high = ends(design, chosen or self._whole)\n"
        "            return self._weighed(design.number, design.weight, "
        "np.minimum(self.means, high))",
        _REACH,
    ),
    Fault(
        "means of users are clipped to a selected range from below only",
        "G-REACH",
        "cells/ranges/private_means.py",
        "low, high = ends(design, chosen)\n"
        "            return self._weighed(design.number, design.weight, "
        "np.clip(self.means, low, high))",
        "low, high = ends(design, chosen)\n"
        "            return self._weighed(design.number, design.weight, "
        "np.maximum(self.means, low))",
        _REACH,
    ),
    Fault(
        "means of arrays are clipped from above only",
        "G-REACH",
        "cells/ranges/private_means.py",
        "np.clip(self.group_means, chosen.low[number], chosen.high[number])",
        "np.minimum(self.group_means, chosen.high[number])",
        _REACH,
    ),
    Fault(
        "bounds of arrays are swapped",
        "G-REACH",
        "cells/ranges/private_means.py",
        "np.clip(self.group_means, chosen.low[number], chosen.high[number])",
        "np.clip(self.group_means, chosen.high[number], chosen.low[number])",
        _REACH,
    ),
    Fault(
        "widened intervals are twice as wide",
        "G-REACH",
        "cells/ranges/selected.py",
        "half = widest // (2 * design.weight)",
        "half = widest // design.weight",
        _REACH,
    ),
    Fault(
        "own intervals are as wide as the range",
        "G-REACH",
        "cells/ranges/selected.py",
        "half = inside // (2 * design.interval.whole)",
        "half = chosen.range_width[design.number] // 2 + 0 * inside",
        _REACH,
    ),
    Fault(
        "the bias of a range looks at the nearer end",
        "G-BIAS",
        "cells/ranges/selected.py",
        "np.maximum(np.maximum(low, top - high), 0)",
        "np.maximum(np.minimum(low, top - high), 0)",
        _REACH,
    ),
    Fault(
        "estimates are moved into the heaviest user's range where lighter users have wider ones",
        "G-BIAS",
        "cells/estimates.py",
        "return self.plan.limits if design.sums or design.widened else self._selected",
        "return self.plan.limits if design.sums else self._selected",
        _ESTIMATES,
    ),
    Fault(
        "a value moved into its range leaves its typical interval",
        "G-TYPICAL",
        "cells/estimates.py",
        "np.minimum(np.maximum(low, lower), self.value)",
        "np.minimum(np.maximum(low, lower), np.clip(self.unclamped, bounds.lo, bounds.hi))",
        _ESTIMATES,
    ),
    Fault(
        "what own intervals leave out is taken off the bias twice",
        "G-BIAS",
        "cells/ranges/selected.py",
        "found - design.missing / 2",
        "found - design.missing",
        _REACH,
    ),
    Fault(
        "a part is the weight, not the contribution",
        "G-REACH",
        "cells/contributions/design.py",
        "self.contribution / self.total[self.number] * OUTWARD",
        "self.weight / self.total[self.number] * OUTWARD",
        ("tests/cells/test_mechanisms.py", "tests/cells/test_queries.py"),
    ),
    Fault(
        "the bias of weights is the smaller of both sides",
        "G-BIAS",
        "cells/contributions/design.py",
        "        short, over = self._apart\n        return np.asarray(np.maximum(short, over))",
        "        short, over = self._apart\n        return np.asarray(np.minimum(short, over) / 2)",
        _REACH,
    ),
    Fault(
        "the bias of own intervals is a quarter of what is missing",
        "G-BIAS",
        "cells/contributions/design.py",
        "return self.missing / 2",
        "return self.missing / 4",
        _REACH,
    ),
    Fault(
        "widened intervals are accounted as plain ones",
        "G-REACH",
        "cells/contributions/capped_counts.py",
        "return replace(made, widened=True, contribution=made.heaviest[number])",
        "return replace(made, widened=True)",
        _REACH,
    ),
    Fault(
        "a user in two cells has two users' say",
        "G-SELECTION",
        "cells/ranges/one_interval.py",
        "    share = part / np.maximum(1.0, of_user[design.user])\n"
        "    # Rounded downwards with a margin: the sum over a user's cells stays at most USER.\n"
        "    say = np.floor(share * USER * (1 - 2.0**-40)).astype(np.int64)\n"
        "    if int(",
        "    share = part\n"
        "    say = np.floor(share * USER * (1 - 2.0**-40)).astype(np.int64)\n"
        "    if 0 * int(",
        _REACH,
    ),
    Fault(
        "scores of the adaptive range move by half a user",
        "G-SELECTION",
        "cells/ranges/one_interval.py",
        "        return USER\n",
        "        return USER // 2\n",
        _REACH,
    ),
    Fault(
        "users in parts are clipped to the whole range",
        "G-REACH",
        "cells/contributions/parts_of_weights.py",
        "interval=Interval(part, np.array([1 << PART]))",
        "interval=Interval(0 * part + (1 << PART), np.array([1 << PART]))",
        (
            "tests/cells/test_lp_plan.py::test_users_reach_their_part_of_a_selected_range",
            "tests/cells/test_queries.py",
            *_MOMENTS,
        ),
    ),
    Fault(
        "missing mass is left out of the middle of a variance",
        "G-BIAS",
        "cells/moments.py",
        "number, most = moments + added * square, whole**2 * square",
        "number, most = moments + 0 * added, whole**2 * square",
        _MOMENTS,
    ),
    Fault(
        "lattice numbers are of a quarter of the noise",
        "G-ACCOUNTING",
        "cells/draw.py",
        "numerator, denominator = (total << bits) * down, most * up",
        "numerator, denominator = (total << bits + 2) * down, most * up",
        ("tests/cells/test_exact_privacy.py",),
    ),
    Fault(
        "vectors are accounted as numbers",
        "G-ACCOUNTING",
        "cells/ball_mean.py",
        "moved = Fraction(2 * min(count, self.threshold), self.records)",
        "moved = Fraction(min(count, self.threshold), self.records)",
        _VECTORS,
    ),
    Fault(
        "vectors get the noise of numbers",
        "G-BUDGET",
        "cells/ball_mean.py",
        "exact = Fraction(2 * min(threshold, int(counts.max()))",
        "exact = Fraction(min(threshold, int(counts.max()))",
        _VECTORS,
    ),
    Fault(
        "roundings of vectors cost nothing",
        "G-ACCOUNTING",
        "cells/ball_mean.py",
        "Fraction(self.relative_scale)) + self.dimension",
        "Fraction(self.relative_scale))",
        _VECTORS,
    ),
    Fault(
        "vectors are cut to twice their norm",
        "G-REACH",
        "cells/ball_mean.py",
        "np.where((norm > allowed)[:, None], scaled, whole)",
        "np.where((norm > 2 * allowed)[:, None], scaled, whole)",
        _VECTORS,
    ),
)
