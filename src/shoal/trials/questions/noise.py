"""Chooses which sums of many questions are released with Laplace noise, and bounds that noise.

The release is z = T W y + Laplace(1/eps) in each coordinate, with |T v_i|_1 <= 1 for the
sensitivity vectors v_i of all kinds of units, the columns of V, shape (questions, kinds); answers
are its least squares estimates. No Laplace noise has less total variance than the smallest Gaussian
noise for these vectors. Source: docs/theory/experiments.md#noise-for-many-questions.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.errors import InputError
from shoal.trials.design import ARM, CLUSTER, Design
from shoal.trials.questions.numbers import MOST_UNITS, Choice, fitted_rows, fitted_sums
from shoal.trials.questions.variances import MEANS_SHARE, MEANS_SHARES, grouped_by, means_needed
from shoal.trials.questions.weights import (
    REGRESSION,
    Block,
    QuestionEntry,
    group_means,
    lengths,
)

# The largest number of questions whose sums are searched for.
_MOST_SEARCHED = 256
# The largest number of released numbers that depend on one another.
_MOST_NUMBERS = 512
# The largest number of sums of disjoint cells.
_MOST_SUMS = 1 << 14
# A question follows from released numbers if it is off by less than this part of its length.
_FOLLOWS = 1e-9
# The largest number of steps to the smallest Gaussian noise, or to the best diagonal.
_MOST_STEPS = 20_000
# The steps to the smallest Gaussian noise end where no kind is above its limit by more than this.
_GAUSSIAN_GAP = 5e-5
# The steps to the best diagonal end where no squared loss is above its limit by more than this.
_DIAGONAL_GAP = 1e-4
# Directions that are shorter than this part of the longest are left out of a bound.
_SHORT = 1e-7
# Smaller eigenvalues, as a part of the largest, are raised to this.
_ROUNDED = 2.0**-50
# If all questions have the same size, singular values below this part of the largest are rounding
# errors, which are up to 9e-14 for a million kinds.
_DEPENDENT = 2.0**-42
# Singular values below this part are not told from rounding errors well enough to be answered.
_UNCLEAR = 2.0**-30
# Bounds are moved outward by this factor, against rounding.
_OUTWARD = 1 + 2.0**-40
# The maximum over units is approached by these norms, each from where the one before ended.
_NORMS = (20, 80, 400)
# The largest number of steps with each norm.
_SEARCH_STEPS = 150
# A norm leaves out kinds that lose less than this part of the most, here and with norms before.
_NEAR = 0.5
# The seed of rotations is public, so that whoever plans again finds the same strategy.
_SEED = 20_230_130
# The search begins from this many random rotations, besides two diagonals.
_ROTATIONS = 3
# The search looks at about this many kinds.
_MOST_KINDS = 4000
# Kinds that the search leaves out may lose this many times what the others do.
_BEYOND = 1.001
# The search is repeated at most this many times.
_ROUNDS = 4
# Each time it looks at this many kinds more.
_MORE = 500
# Parts are equal if their weights, divided by the largest, agree to this many decimal places.
_DIGITS = 12


def choices(
    design: Design, blocks: Sequence[Block], width: float, epsilon: Fraction
) -> Iterator[Choice]:
    """Yields whole numbers whose loss is at most epsilon, and from which all questions follow."""
    entries = [each.entry for each in blocks]
    # Squares of more units would not fit whole numbers of 64 bits.
    if design.n > MOST_UNITS:
        raise InputError(
            f"there are {design.n} units", f"give at most {MOST_UNITS}, or plan a table of units"
        )
    subgroups = [each.by for each in entries if each.by]
    if design.group is not None:
        codes = design.codes(subgroups)
        group_and_subgroup = design.group * (int(codes.max()) + 1) + codes
        sums = np.unique(group_and_subgroup, return_inverse=True)[1].astype(np.int64)
        yield fitted_sums(_few(sums), design.many, epsilon, None)
        return
    by = grouped_by(design, entries)
    group_of_means = means_needed(design, entries, by)
    means = None if group_of_means is None else group_means(group_of_means, design.many)
    best = _best(design, blocks, means)
    if best is None:
        if any(each.kind == REGRESSION for each in entries):
            many = sum(len(each.names) for each in blocks)
            raise InputError(
                f"{many} questions are too many with regressions",
                f"ask at most {_MOST_SEARCHED}",
            )
        yield from choices_of_cells(design, entries, epsilon)
        return
    main, means_follow = best
    if means_follow or means is None:
        yield fitted_rows(main / width, design.many, epsilon, by)
        return
    # A share of epsilon goes to sums of the groups whose means are needed.
    for share in MEANS_SHARES:
        rows = np.concatenate([(1 - share) * main, share * (means > 0)])
        yield fitted_rows(rows / width, design.many, epsilon, by)


def choices_of_cells(
    design: Design, entries: Sequence[QuestionEntry], epsilon: Fraction
) -> Iterator[Choice]:
    """Yields sums of clusters, arms and subgroups, from which all effects and means follow."""
    names = [ARM, *(each.by for each in entries if each.by)]
    if len(design.clusters) > 1:
        names.append(CLUSTER)
    sums = design.codes(list(dict.fromkeys(names)))
    yield fitted_sums(_few(sums), design.many, epsilon, grouped_by(design, entries))


def _best(
    design: Design, blocks: Sequence[Block], means: Floats | None
) -> tuple[Floats, bool] | None:
    """Returns the sums of least total variance, and whether the needed means follow from them.

    It returns None if the questions follow from none of the sums that are tried.
    """
    rows = np.concatenate([each.rows for each in blocks])
    names = [name for each in blocks for name in each.names]
    root = np.sqrt(design.many)
    best = None
    smallest_total = np.inf
    even_rows = rows / lengths(rows, design.many)[:, None]
    scaled_rows = even_rows * root
    for main in _candidates(rows, even_rows, names, blocks):
        inverse = np.asarray(np.linalg.pinv(main * root, rcond=1e-12), dtype=np.float64)
        if not _follow(rows, main, inverse, root):
            continue
        means_follow = means is None or _follow(means, main, inverse, root)
        share = 0.0 if means_follow else MEANS_SHARE
        recovered = scaled_rows @ inverse
        total = float((recovered**2).sum()) / (1 - share) ** 2
        if total < smallest_total:
            smallest_total = total
            best = (main, means_follow)
    return best


def _candidates(
    rows: Floats, even: Floats, names: Sequence[str], blocks: Sequence[Block]
) -> Iterator[Floats]:
    """Yields sums by which no unit of range 1 loses more than 1, with a search if rows overlap.

    The rows `even` are those of the questions, scaled to the length 1.
    """
    disjoint = _disjoint(rows)
    if disjoint is not None:
        yield disjoint
    else:
        for block in blocks:
            of_block = _disjoint(block.rows)
            if of_block is not None and len(blocks) > 1:
                yield of_block
        if len(rows) <= _MOST_SEARCHED:
            found = released_sums(even, names) @ even
            yield found / np.abs(found).sum(axis=0).max()
    parts = disjoint_parts(rows) if len(rows) <= _MOST_NUMBERS else None
    if parts is not None and len(parts) <= _MOST_NUMBERS:
        yield parts


def _disjoint(rows: Floats) -> Floats | None:
    """Returns rows with the largest weight 1, if each kind of units is in one of them at most."""
    if len(rows) > _MOST_NUMBERS or int((rows != 0).sum(axis=0).max()) > 1:
        return None
    return np.asarray(rows / np.abs(rows).max(axis=1, keepdims=True))


def _follow(rows: Floats, main: Floats, inverse: Floats, root: Floats) -> bool:
    """Whether rows are sums of multiples of the released rows `main`."""
    wanted = rows * root
    miss = np.linalg.norm(wanted @ inverse @ (main * root) - wanted, axis=1)
    return bool((miss <= _FOLLOWS * np.linalg.norm(wanted, axis=1)).all())


def _few(sums: Ints) -> Ints:
    """Returns sums, and refuses more of them than can be released."""
    if int(sums.max()) >= _MOST_SUMS:
        raise InputError(
            f"{int(sums.max()) + 1} sums of disjoint cells are too many",
            f"merge cells: at most {_MOST_SUMS} fit",
        )
    return sums


class Gaussian(NamedTuple):
    """The smallest Gaussian noise: the root of its covariance, and a lower bound of its trace."""

    root: Floats
    lower_bound: float


def released_sums(vectors: Floats, names: Sequence[str]) -> Floats:
    """Returns the sums of questions to release, searched for the kinds that lose most by them."""
    chosen = extremes(vectors)
    found = _searched_sums(vectors[:, chosen], names)
    for _ in range(_ROUNDS if len(chosen) < vectors.shape[1] else 0):
        sizes = np.abs(found @ vectors).sum(axis=0)
        if float(sizes.max()) <= _BEYOND * float(sizes[chosen].max()):
            break
        chosen = np.union1d(chosen, np.argsort(-sizes, kind="stable")[:_MORE])
        found = _searched_sums(vectors[:, chosen], names)
    return found


def extremes(vectors: Floats) -> Ints:
    """Returns kinds of units, few if there are very many, that have the largest vectors.

    All of them differ; they are the largest in all questions together and in each question.
    """
    if vectors.shape[1] <= _MOST_KINDS:
        return np.arange(vectors.shape[1])
    first = _first_of_each(vectors)
    if len(first) <= _MOST_KINDS:
        return first
    distinct = vectors[:, first]
    # Lengths are measured in a basis in which kinds vary alike in all directions.
    values, basis = np.linalg.eigh(distinct @ distinct.T / distinct.shape[1])
    root = basis / np.sqrt(np.maximum(values, values[-1] * 1e-12))
    length = ((root.T @ distinct) ** 2).sum(axis=0)
    half = _MOST_KINDS // 2
    chosen = [np.argsort(-length, kind="stable")[:half]]
    # The other half is divided among questions, rounded upwards.
    for_each_question = -(-half // len(distinct))
    chosen += [np.argsort(-np.abs(row), kind="stable")[:for_each_question] for row in distinct]
    return first[np.unique(np.concatenate(chosen))]


def _first_of_each(vectors: Floats) -> Ints:
    """Returns the places at which each different column comes first."""
    order = np.lexsort(vectors)
    columns = vectors[:, order]
    differs = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    return np.sort(order[np.append(True, differs)])


def disjoint_parts(rows: Floats) -> Floats | None:
    """Returns the positive and the negative part of each question, of equal parts only one.

    It returns None if a unit is in two parts.
    """
    found = list[Floats]()
    used = np.zeros(rows.shape[1], dtype=bool)
    for signed in (sign * row for row in rows for sign in (1, -1)):
        largest = float(signed.max())
        if largest <= 0:
            continue
        part = np.round(np.maximum(signed, 0) / largest, _DIGITS)
        if any(np.array_equal(part, each) for each in found):
            continue
        if used[part > 0].any():
            return None
        used |= part > 0
        found.append(part)
    # The order of parts must not depend on that of questions: parts of the last kinds come first.
    return np.array(sorted(found, key=lambda part: -int((part > 0).argmax())))


def _searched_sums(vectors: Floats, names: Sequence[str]) -> Floats:
    """Returns sums whose Laplace noise has a small total variance tr(R R') with R = T^+.

    The minimum is a local one.
    """
    basis, inside = independent(vectors, names)
    best = np.diag(best_diagonal(vectors)) @ basis
    even = np.diag(1 / (len(basis) * np.abs(vectors).max(axis=1))) @ basis
    rotated = [*_rotations(basis.T @ gaussian_noise(vectors).root)]
    # A unit loses the same by v and by -v, so that each vector is needed once, with one sign.
    distinct = np.unique(inside * np.where(inside[0] < 0, -1, 1), axis=1)
    found = [_searched(each, distinct) for each in (best, *rotated)]
    # A search may end above its start, as it makes another norm small.
    tried = [best, even, *rotated, *found]
    return min(tried, key=lambda each: _total(each, inside)) @ basis.T


def gaussian_noise(vectors: Floats) -> Gaussian:
    """Returns nearly the covariance Sigma of least trace with v_i' Sigma^-1 v_i <= 1 for all i.

    The vectors v_i are the columns. Each has a weight, a dual variable, which grows where it is
    above its limit.
    """
    axes, values, rest = np.linalg.svd(vectors, full_matrices=False)
    inside = values[:, None] * rest
    length = np.abs(inside).max(axis=1)
    kept = length > _SHORT * length.max()
    basis = axes[:, kept]
    inside = inside[kept]
    weights = np.full(inside.shape[1], 1 / inside.shape[1])
    for _ in range(_MOST_STEPS):
        values, axes = np.linalg.eigh((inside * weights) @ inside.T)
        # A direction without weight keeps a little, because its root is a divisor.
        roots = np.sqrt(np.maximum(values, values[-1] * _ROUNDED))
        along = (axes / np.sqrt(roots)).T @ inside
        # v' Sigma^-1 v of each vector, for the covariance that belongs to these weights.
        loss = np.einsum("ij,ij->j", along, along) / float(roots.sum())
        if float(loss.max()) <= 1 + _GAUSSIAN_GAP:
            break
        weights *= loss
        weights /= weights.sum()
    # Whatever the weights are, no covariance has a trace below the squared sum of these norms.
    norms = np.linalg.svd(vectors * np.sqrt(weights / weights.sum()), compute_uv=False)
    root = basis @ (axes * np.sqrt(roots * float(roots.sum())))
    return Gaussian(root, float(norms.sum() ** 2 / _OUTWARD))


def best_diagonal(vectors: Floats) -> Floats:
    """Returns nearly the t of least sum 1/t_k^2 with sum_k t_k|v_ki| <= 1 for all kinds i.

    Each kind has a weight, a dual variable, which grows where it loses more than its limit.
    """
    size = np.abs(vectors)
    weights = np.full(size.shape[1], 1 / size.shape[1])
    for _ in range(_MOST_STEPS):
        dual = size @ weights
        scales = dual ** (-1 / 3) / float((dual ** (2 / 3)).sum())
        loss = scales @ size
        if float(loss.max()) ** 2 <= 1 + _DIAGONAL_GAP:
            break
        weights *= loss
        weights /= weights.sum()
    return np.asarray(scales / (float(loss.max()) * _OUTWARD))


def independent(vectors: Floats, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Returns a basis of the space that the vectors fill, and the vectors in this basis."""
    # Squares of small numbers would underflow, so that the largest is made 1 first.
    even = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    even /= np.linalg.norm(even, axis=1, keepdims=True)
    directions, norms, _ = np.linalg.svd(even, full_matrices=False)
    kept = int((norms > _DEPENDENT * norms[0]).sum())
    if norms[kept - 1] < _UNCLEAR * norms[0]:
        near = np.argsort(-np.abs(directions[:, kept - 1]), kind="stable")[:2].tolist()
        named = " and ".join(checks.shown(names[at]) for at in near)
        raise InputError(
            f"some questions nearly depend on others, most of all {named}: they differ only by "
            f"{norms[kept - 1] / norms[0]:.1g} of their size",
            "leave one of them out, or ask for their difference",
        )
    axes, values, rest = np.linalg.svd(vectors, full_matrices=False)
    return axes[:, :kept], values[:kept, None] * rest[:kept]


def _rotations(root: Floats) -> Iterator[Floats]:
    """Yields the inverse root of the covariance root root', turned at random."""
    values, axes = np.linalg.eigh(root @ root.T)
    values = np.maximum(values, values[-1] * _ROUNDED)
    random = np.random.default_rng(_SEED)
    for _ in range(_ROTATIONS):
        turned, _ = np.linalg.qr(random.standard_normal(axes.shape))
        yield turned @ (axes / np.sqrt(values)) @ axes.T


def _total(strategy: Floats, inside: Floats) -> float:
    """Returns the trace of the least squares covariance if no unit loses more than 1."""
    loss = float(np.abs(strategy @ inside).sum(axis=0).max())
    return float((np.linalg.pinv(strategy) ** 2).sum() * loss**2)


def _searched(start: Floats, inside: Floats) -> Floats:
    """Returns the strategy at which a search for a smaller total ends."""
    from scipy.optimize import minimize

    found = start
    near = np.zeros(inside.shape[1], dtype=bool)
    for norm in _NORMS:
        loss = np.abs(found @ inside).sum(axis=0)
        # Only kinds that lose nearly the most, now or before, take part in the norm.
        near |= loss >= _NEAR * loss.max()
        ended = minimize(
            _objective,
            found.ravel(),
            args=(np.ascontiguousarray(inside[:, near]), norm, start.shape),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _SEARCH_STEPS},
        )
        found = np.asarray(ended.x, dtype=np.float64).reshape(start.shape)
    return found


def _objective(
    flat: Floats, inside: Floats, norm: int, shape: tuple[int, int]
) -> tuple[float, Floats]:
    """Returns the logarithm of the total with a norm of the losses, and its gradient.

    The norm, such as 20, stands for the largest loss, which has no gradient everywhere.
    """
    strategy = flat.reshape(shape)
    moved = strategy @ inside
    loss = np.abs(moved).sum(axis=0)
    # Powers of losses would overflow, so that the largest is made 1 first.
    largest = float(loss.max())
    powers = (loss / largest) ** norm
    log_norm = np.log(largest) + np.log(powers.sum()) / norm
    inverse = np.linalg.pinv(strategy.T @ strategy, hermitian=True)
    trace = float(np.trace(inverse))
    value = np.log(trace) + 2 * log_norm
    slope_of_trace = -2 / trace * strategy @ inverse @ inverse
    share = powers / np.where(loss > 0, loss, 1) / powers.sum()
    slope = slope_of_trace + 2 * (np.sign(moved) * share) @ inside.T
    return float(value), slope.ravel()
