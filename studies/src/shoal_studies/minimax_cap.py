"""Paper 002, figure 5: the cap with the least worst-case error, against the loss."""

from __future__ import annotations

import numpy as np

from shoal.cells import caps
from shoal_studies import collections, drawing
from shoal_studies.measure import Effort
from shoal_studies.study import Outcome, Row, Study, verdict

_LEAST, _MOST, _POINTS = 0.001, 2.0, 1000


def _run(effort: Effort) -> Outcome:
    """No randomness: the same for every effort."""
    drawing.check()
    counts = collections.itms()
    epsilons = np.geomspace(_LEAST, _MOST, _POINTS)
    cap = np.array([caps.minimax(counts, epsilon) for epsilon in epsilons.tolist()])
    error = np.array(
        [
            float(caps.minimax_error(counts, np.array([each]), epsilon)[0])
            for each, epsilon in zip(cap.tolist(), epsilons.tolist(), strict=True)
        ]
    )
    figure, [axis] = drawing.panels(
        "Paper 002, figure 5: the smallest minimax cap, ITMS-like counts", 1, legend=False
    )
    axis.step(epsilons, cap, where="post", color="#1f6f8b")
    axis.set(xscale="log", xlabel="epsilon", ylabel="cap, records of a user")
    drawing.plain_numbers(axis.xaxis)
    rows: list[Row] = [
        {"epsilon": round(each, 8), "cap": size, "worst_case_error_over_width": round(worst, 8)}
        for each, size, worst in zip(epsilons.tolist(), cap.tolist(), error.tolist(), strict=True)
    ]
    return Outcome(rows, figure, _reading(epsilons, cap, error))


def _reading(epsilons: np.ndarray, cap: np.ndarray, error: np.ndarray) -> str:
    counts = collections.itms()
    grows = bool((np.diff(cap) >= 0).all())
    least, most = int(counts.min()), int(counts.max())
    caps_of, starts_at = every_cap(counts)
    reached = "nowhere in this range"
    if caps_of[-1] == most:
        reached = f"from epsilon {starts_at[-1]:.3g} on"
    at_one = int(cap[np.searchsorted(epsilons, 1.0)])
    uninformative = float((error >= 1 / 2).mean())
    useful = epsilons[error < 1 / 2]
    starts = f"only from epsilon {useful.min():.3g} on" if len(useful) else "nowhere"
    return (
        f"The cap is a staircase with {len(caps_of) - 1} steps, "
        f"{'non-decreasing' if grows else 'not monotonic'} in epsilon: {verdict(grows)}. It is "
        f"{int(cap[0])} at epsilon {_LEAST:g} (the least count is {least}), {at_one} at 1, and "
        f"the largest count, {most}, is reached {reached}. The "
        f"certificate at this cap is below half the width {starts}, so that for "
        f"{uninformative:.0%} "
        "of the losses shown (evenly spaced on the log axis) guessing the midpoint has a better "
        "one. No values are drawn."
    )


def every_cap(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every minimax cap of the axis, and the loss from which on it is one: exact, not on a grid.

    The error at cap m is a line in 1/epsilon; between two crossings of lines the least one stays.
    """
    every = np.unique(counts)
    kept = caps.kept(counts, every)
    base, slope = 1 - kept / counts.sum(), every / kept
    steeper = slope[:, None] - slope[None]
    apart = base[None] - base[:, None]
    crossing = (apart / np.where(steeper == 0, np.nan, steeper)).ravel()
    ends = np.unique(crossing[(crossing > 1 / _MOST) & (crossing < 1 / _LEAST)])
    ends = np.concatenate([[1 / _MOST], ends, [1 / _LEAST]])[::-1]
    middle = (ends[:-1] + ends[1:]) / 2
    cap = every[(base[:, None] + slope[:, None] * middle).argmin(axis=0)]
    first = np.flatnonzero(np.diff(cap, prepend=0))
    return cap[first], 1 / ends[first]


FIGURE_5 = Study(
    "002-figure-5",
    "The minimax cap against the loss",
    "paper 002, section V, figure 5",
    _run,
)
