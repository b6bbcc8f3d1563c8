"""What a plan of questions warns of, from public columns alone."""

import math

import numpy as np

from shoal.errors import printable
from shoal.trials.group_inference import FEWEST_DEGREES, FEWEST_GROUPS
from shoal.trials.questions.columns import Columns, Covariate
from shoal.trials.questions.plan_facts import QuestionsFacts

# Spikier, and with intervals this much wider than without noise, a question warns.
_SPIKY, _WIDER = 4.0, 1.25
# So many times as uneven as equal weights, in a group with this part of the variance or more.
_UNEVEN, _CARRIES = 5.0, 0.2
# Arms that units got one by one are constant within the values of a column this rarely.
_CHANCE = math.log(1e-6)


def warnings_of(plan: QuestionsFacts, *, one_by_one: bool = False) -> list[str]:
    """Sentences: of spiky and uneven questions, of groups, and of columns in which arms never vary.

    Args:
        plan: What is carried out.
        one_by_one: Whether it was said that units were assigned so.
    """
    whole = [] if one_by_one else _whole_groups(plan.columns)
    return [*_spiky(plan), *_uneven(plan), *_few_groups(plan), *_clipped(plan), *whole]


def _few_groups(plan: QuestionsFacts) -> list[str]:
    columns = plan.columns
    if columns.assigned is None:
        return []
    first = np.unique(columns.assigned, return_index=True)[1]
    many = np.bincount(columns.arm[first])
    degrees = [each.degrees for each in plan.reading.known]
    least = int(many.argmin())
    if many[least] >= FEWEST_GROUPS and min(degrees) >= FEWEST_DEGREES:
        return []
    name = plan.names[int(np.argmin(degrees))]
    return [
        (
            f"{many[least]} assigned groups in arm {printable(columns.arms[least])}, and "
            f"{min(degrees):.3g} degrees of freedom for the question {printable(name)!r}: with "
            f"fewer than about {FEWEST_GROUPS} groups in an arm, or groups of very unlike sizes, "
            "no standard error is reliable"
        )
    ]


def _uneven(plan: QuestionsFacts) -> list[str]:
    """Of questions whose variance rests on few of the units that are taken to differ alike."""
    if plan.columns.assigned is not None:
        return []
    found: list[tuple[float, str]] = []
    for block in plan.blocks:
        codes = plan.reading.fit(block.asked).codes
        units = np.bincount(codes)
        for name, row in zip(block.names, block.rows, strict=True):
            squares, fourths = (np.bincount(codes, row**power) for power in (2, 4))
            carries = squares >= _CARRIES * squares.sum()
            alike = (squares[carries] ** 2 / fourths[carries] / units[carries]).min(initial=1.0)
            found.append((float(alike), name))
    uneven = sum(alike * _UNEVEN < 1 for alike, _ in found)
    if not uneven:
        return []
    least, name = min(found)
    others = " rests" if uneven == 1 else f" and {uneven - 1} more rest"
    return [
        (
            f"the question {printable(name)!r}{others} on few of the units whose outcomes are "
            f"taken to differ alike, mostly on {100 * least:.2g}% of them: if outcomes of these "
            "few differ more than those of the others, intervals are too short; merge small "
            'clusters, cap covariates, or ask for the effect with weights="precision"'
        )
    ]


def _clipped(plan: QuestionsFacts) -> list[str]:
    many = sum(len(each.limits) > 0 for each in plan.numbers.forms)
    if not many:
        return []
    return [
        (
            f"sums of groups are clipped to three deviations in {many} of the variances: where "
            "whole groups share outcomes that few groups have, or the spread is larger than was "
            "said, intervals are too short (such ones have covered 60% to 84% instead of 95%); "
            "without clip they are not"
        )
    ]


def _spiky(plan: QuestionsFacts) -> list[str]:
    spiky = [each for each in plan.predicted if each.spikiness > _SPIKY and each.widening > _WIDER]
    if not spiky:
        return []
    worst = max(spiky, key=lambda each: each.widening)
    others = " rests" if len(spiky) == 1 else f" and {len(spiky) - 1} more rest"
    alike = int(np.rint(plan.columns.n / worst.spikiness**2))
    return [
        (
            f"the question {printable(worst.question)!r}{others} on few units: its noise is "
            f"that of {alike} units that weigh alike (spikiness {worst.spikiness:.3g}), and its "
            f"interval {worst.widening:.3g} times as wide as without noise; merge small cells, "
            'cap covariates, or ask for the effect with weights="precision"'
        )
    ]


def _whole_groups(columns: Columns) -> list[str]:
    found = [each.name for each in columns.covariates if _never_varies(columns, each)]
    if not found:
        return []
    return [
        (
            f"all units of one value of the covariate {printable(found[0])!r} have the same arm: "
            "if arms were assigned by it and not unit by unit, the intervals are too short (such "
            "ones have covered 31% to 63% instead of 95%); give it as assigned= then, or say "
            'assigned="units" (docs/explanation/trials.md)'
        )
    ]


def _never_varies(columns: Columns, column: Covariate) -> bool:
    """Whether each value has units of one arm only, and chance would hardly do that.

    Where groups were assigned, they count, if none has units of two values: larger ones may have
    been assigned than were said.
    """
    first = np.unique(columns.groups, return_index=True)[1]
    if bool((column.codes[first][columns.groups] != column.codes).any()):
        return False
    count = np.zeros((len(column.values), len(columns.arms)))
    np.add.at(count, (column.codes[first], columns.arm[first]), 1)
    if bool((np.count_nonzero(count, axis=1) > 1).any()):
        return False
    sizes = np.bincount(columns.arm[first])
    if column.numeric and any(
        value == 0 and bool((own == sizes).any())
        for value, own in zip(column.values, count, strict=True)
    ):
        # A dose, or an interaction with the arm: 0 in all of the other.
        return False
    # A value of m units has one arm with the probability sum_a p_a^m.
    shares = sizes / len(first)
    held, many = np.unique(count.sum(axis=1), return_counts=True)
    alike = np.array([math.log(float((shares**each).sum()) or 5e-324) for each in held.tolist()])
    return bool(float(alike @ many) < _CHANCE)
