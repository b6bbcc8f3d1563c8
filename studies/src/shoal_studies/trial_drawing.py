"""Pictures of the studies of experiments: variances, ratios, quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal_studies import trial_lines as lines
from shoal_studies.drawing import Shown, losses, plain_numbers
from shoal_studies.trial_measure import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {
    lines.PLAIN: ("#333333", ":", ""),
    lines.UNIFORM: ("#8d99ae", "-", "o"),
    lines.UNSTRATIFIED: ("#8d99ae", ":", "x"),
    lines.FREE: ("#1f6f8b", "-", "^"),
    lines.FREE_PRINTED: ("#1f6f8b", "--", "^"),
    lines.CLUSTER: ("#d1495b", "-", "s"),
    lines.CLUSTER_PRINTED: ("#d1495b", "--", "s"),
    lines.OURS_ALL: ("#2a9d8f", ":", "D"),
    lines.OURS: ("#2a9d8f", "-", "D"),
    lines.DIFFERENCES: ("#e09f3e", "-", "v"),
    lines.HISTOGRAMS: ("#6a4c93", "-", "P"),
}
_OTHER = ("#9c6644", "-.", "*")


def look(name: str) -> tuple[str, str, str]:
    """Colour, line and marker of a mechanism; what is printed is dashed."""
    if name in _LOOKS:
        return _LOOKS[name]
    colour, _, marker = _LOOKS.get(name.partition(",")[0], _OTHER)
    return colour, "--" if name.endswith(lines.PRINTED) else _OTHER[1], marker


def variances(
    axis: Axes, measured: Measured, title: str, across: str, *, log: bool = False
) -> Shown:
    """Variances: closed forms as lines, simulated ones as marks, bars over populations."""
    shown: Shown = {}
    for name in measured.lines:
        curve = measured.curve(name)
        colour, style, marker = look(name)
        if len(curve.at) == 1:
            shown[name] = axis.axhline(
                float(curve.mean()[0]), color=colour, linestyle=style, linewidth=1.4
            )
            continue
        [shown[name]] = axis.plot(
            curve.at, curve.mean(), style, color=colour, marker=marker, markersize=4,
            linewidth=2.2 if name == lines.OURS else 1.4,
        )  # fmt: skip
        axis.errorbar(
            curve.at, curve.variance.mean(axis=0), curve.variance.std(axis=0), fmt="none",
            ecolor=colour, elinewidth=0.8, capsize=2,
        )  # fmt: skip
    axis.set(yscale="log", xlabel=across, ylabel="variance of the effect")
    axis.set_title(title, fontsize=10)
    if log:
        losses(axis, sorted({point.at for point in measured.points}))
    return shown


def ratios(
    axis: Axes,
    at: NDArray[np.float64],
    found: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    title: str,
    *,
    across: str,
) -> Shown:
    """Ratios of variances: mean and spread over populations, by the name of the line."""
    shown: Shown = {}
    colours = ("#d1495b", "#1f6f8b", "#2a9d8f", "#6a4c93")
    for (name, (mean, spread)), colour in zip(found.items(), colours, strict=False):
        [shown[name]] = axis.plot(at, mean, "o-", color=colour, markersize=4, linewidth=1.4)
        axis.errorbar(
            at, mean, spread, fmt="none", ecolor=colour, elinewidth=0.8, capsize=2
        )  # fmt: skip
    axis.axhline(1.0, color="#333333", linewidth=0.8)
    axis.set(xlabel=across, ylabel="ratio of variances", yscale="log")
    plain_numbers(axis.yaxis)
    axis.yaxis.set_minor_formatter(axis.yaxis.get_major_formatter())
    axis.set_title(title, fontsize=10)
    return shown


def quantiles(axis: Axes, errors: NDArray[np.float64], deviation: float, title: str) -> None:
    """Sorted errors against normal quantiles of the exact deviation."""
    normal, found = normal_pairs(errors, deviation)
    axis.plot(normal, found, ".", color="#d1495b", markersize=3)
    axis.plot(normal[[0, -1]], normal[[0, -1]], color="#333333", linewidth=0.9)
    axis.set(xlabel="normal quantiles", ylabel="estimate less effect")
    axis.set_title(title, fontsize=10)


def histogram(axis: Axes, errors: NDArray[np.float64], deviation: float, title: str) -> None:
    """Errors as bars, the normal density of the exact deviation as a line."""
    axis.hist(errors, bins=40, density=True, color="#f1c6cc")
    at = np.linspace(errors.min(), errors.max(), 200)
    density = np.exp(-((at / deviation) ** 2) / 2) / deviation / (2 * np.pi) ** 0.5
    axis.plot(at, density, color="#333333", linewidth=1.2)
    axis.set(xlabel="estimate less effect", ylabel="density")
    axis.set_title(title, fontsize=10)


def normal_pairs(
    errors: NDArray[np.float64], deviation: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Normal quantiles of a deviation, and the sorted errors.

    Example:
        >>> normal_pairs(np.array([1.0, -1.0, 0.0]), 1.0)[1].tolist()
        [-1.0, 0.0, 1.0]
    """
    from scipy.special import ndtri

    places = (np.arange(len(errors)) + 0.5) / len(errors)
    return np.asarray(deviation * ndtri(places)), np.sort(errors)


def together(parts: Sequence[Shown]) -> Shown:
    """One legend for several panels."""
    return {name: drawn for part in parts for name, drawn in part.items()}
