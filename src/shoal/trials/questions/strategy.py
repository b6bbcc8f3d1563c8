"""Which sums of questions are released: those with the least noise in the answers.

Source: docs/theory/experiments.md#noise-for-many-questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from shoal.errors import InputError
from shoal.trials.design import ARM, CLUSTER, Design, Floats, Ints
from shoal.trials.questions import noise
from shoal.trials.questions.numbers import MOST_UNITS, Choice, fitted_rows, fitted_sums
from shoal.trials.questions.variances import MEANS_SHARE, MEANS_SHARES, grouped_by, means_needed
from shoal.trials.questions.weights import REGRESSION, Block, group_means, lengths

# Of questions whose sums are searched for, of numbers that depend on one another, and of sums.
_MOST_SEARCHED, _MOST_NUMBERS, _MOST_SUMS = 256, 512, 1 << 14
# What is off by less than this part of its length follows.
_FOLLOWS = 1e-9


def choices(
    design: Design, blocks: Sequence[Block], width: float, epsilon: Fraction
) -> list[Choice]:
    """Whole numbers whose loss is at most epsilon, from which all questions follow."""
    entries = [each.entry for each in blocks]
    if design.n > MOST_UNITS:
        raise InputError(
            f"there are {design.n} units", f"give at most {MOST_UNITS}, or take a table"
        )
    subgroups = [each.by for each in entries if each.by]
    if design.group is not None:
        codes = design.codes(subgroups)
        both = design.group * (int(codes.max()) + 1) + codes
        sums = np.unique(both, return_inverse=True)[1].astype(np.int64)
        return [fitted_sums(_few(sums), design.many, epsilon, None)]
    by = grouped_by(design, entries)
    means = means_needed(design, entries, by)
    rows = np.concatenate([each.rows for each in blocks])
    names = [name for each in blocks for name in each.names]
    needed = None if means is None else group_means(means, design.many)
    root, best, least = np.sqrt(design.many), None, np.inf
    size = lengths(rows, design.many)
    for main in _candidates(rows, rows / size[:, None], names, blocks):
        inverse = np.asarray(np.linalg.pinv(main * root, rcond=1e-12), dtype=np.float64)
        if not _follow(rows, main, inverse, root):
            continue
        alone = needed is None or _follow(needed, main, inverse, root)
        share = 0.0 if alone else MEANS_SHARE
        recovered = (rows / size[:, None] * root) @ inverse
        total = float((recovered**2).sum()) / (1 - share) ** 2
        if total < least:
            least, best = total, (main, alone)
    if best is None:
        if any(each.kind == REGRESSION for each in entries):
            raise InputError(
                f"{len(rows)} questions are too many with regressions",
                f"ask at most {_MOST_SEARCHED}",
            )
        sums = design.codes(list(dict.fromkeys([CLUSTER, ARM, *subgroups])))
        return [fitted_sums(_few(sums), design.many, epsilon, by)]
    main, alone = best
    if alone or needed is None:
        return [fitted_rows(main / width, design.many, epsilon, by)]
    return [
        fitted_rows(
            np.concatenate([(1 - share) * main, share * (needed > 0)]) / width,
            design.many,
            epsilon,
            by,
        )
        for share in MEANS_SHARES
    ]


def _candidates(
    rows: Floats, even: Floats, names: Sequence[str], blocks: Sequence[Block]
) -> Iterator[Floats]:
    """Sums with which no unit of range 1 loses more than 1; disjoint ones need no search."""
    apart = _disjoint(rows)
    if apart is not None:
        yield apart
    else:
        for block in blocks:
            own = _disjoint(block.rows)
            if own is not None and len(blocks) > 1:
                yield own
        if len(rows) <= _MOST_SEARCHED:
            found = noise.released_sums(even, names) @ even
            yield found / np.abs(found).sum(axis=0).max()
    parts = noise.disjoint_parts(rows) if len(rows) <= _MOST_NUMBERS else None
    if parts is not None and len(parts) <= _MOST_NUMBERS:
        yield parts


def _disjoint(rows: Floats) -> Floats | None:
    """Rows of largest weight 1, if each kind of unit is in one of them at most."""
    if len(rows) > _MOST_NUMBERS or int((rows != 0).sum(axis=0).max()) > 1:
        return None
    return np.asarray(rows / np.abs(rows).max(axis=1, keepdims=True))


def _follow(rows: Floats, main: Floats, inverse: Floats, root: Floats) -> bool:
    """Whether rows are sums of multiples of released ones."""
    own = rows * root
    off = np.linalg.norm(own @ inverse @ (main * root) - own, axis=1)
    return bool((off <= _FOLLOWS * np.linalg.norm(own, axis=1)).all())


def _few(sums: Ints) -> Ints:
    if int(sums.max()) >= _MOST_SUMS:
        raise InputError(
            f"{int(sums.max()) + 1} sums of disjoint cells are too many",
            f"merge cells: at most {_MOST_SUMS} fit",
        )
    return sums
