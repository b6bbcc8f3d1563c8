"""The picture of docs/explanation/how-a-plan-is-made.md, every figure of it from a plan.

`python -m tests.repository.plan_picture docs/images/how-a-plan-is-made.svg` draws it anew.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

import shoal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CELLS = ("Harbour", "Market", "Station")
# How many users of each kind, and the records of one of them in each cell.
KINDS = {"taxi": (1, (40, 20, 60)), "van": (20, (8, 4, 0)), "car": (240, (0, 1, 1))}
WIDTH = 60
COLOURS = ("#0b7a75", "#d9822b", "#7a5ea8")
INK, FAINT, LEFT_OUT = "#23302f", "#5f6d6b", "#b9c4c2"


def occupancy() -> shoal.Occupancy:
    """The counts of the picture."""
    rows = [
        (f"{kind} {at}", cell, records)
        for kind, (users, row) in KINDS.items()
        for at in range(users)
        for cell, records in zip(CELLS, row, strict=True)
        if records
    ]
    return shoal.Occupancy.from_counts(*(list(column) for column in zip(*rows, strict=True)))


def by_kind(plan: shoal.Plan, each: Floats) -> Floats:
    """What one user of each kind has in each cell, from what each member has."""
    design, found = plan.design, np.zeros((len(KINDS), len(CELLS)))
    for at, (_, row) in enumerate(KINDS.values()):
        for cell, records in enumerate(row):
            mine = (design.number == cell) & (design.count == records)
            found[at, cell] = each[mine].max() if mine.any() else 0.0
    return found


def title(axes: Axes, number: int, text: str, under: str) -> None:
    """A numbered heading with a line of explanation."""
    axes.set_title(f"{number}  {text}", loc="left", fontsize=12, fontweight="bold", pad=34)
    axes.annotate(
        under, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", color=FAINT,
        linespacing=1.25,
    )  # fmt: skip


def counts(axes: Axes, totals: NDArray[np.int64]) -> None:
    """Records of one user of each kind, in each cell."""
    title(axes, 1, "Counts", "records of each user: public,\nno value is looked at")
    axes.set(xlim=(-1.75, 3), ylim=(4.4, -0.9), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    for cell, name in enumerate(CELLS):
        axes.text(cell + 0.5, -0.2, name, ha="center", color=COLOURS[cell], fontweight="bold")
        axes.text(cell + 0.5, 3.7, f"{totals[cell]}", ha="center", va="center", color=INK)
    for at, (kind, (users, row)) in enumerate(KINDS.items()):
        who = f"{users} {kind}{'s' if users > 1 else ''}"
        axes.text(-0.15, at + 0.5, who, ha="right", va="center", fontweight="bold")
        for cell, records in enumerate(row):
            shade = 0.12 + 0.6 * (records / 60) ** 0.5 if records else 0.0
            axes.add_patch(
                Rectangle((cell + 0.04, at + 0.04), 0.92, 0.92, fc=COLOURS[cell], alpha=shade)
            )
            axes.text(
                cell + 0.5, at + 0.5, f"{records}" if records else "-", ha="center", va="center"
            )
    axes.text(-0.15, 3.7, "all records", ha="right", va="center", color=FAINT)


def weights(axes: Axes, share: Floats, kept: Floats) -> None:
    """The share of one user of each kind in each cell, and what the plan keeps of it."""
    title(
        axes, 2, "Weights",
        "what one user's records make of the\ncell; the plan counts only the filled part",
    )  # fmt: skip
    for at in range(len(KINDS)):
        for cell in range(len(CELLS)):
            y = at + 0.27 * (cell - 1)
            axes.barh(y, share[at, cell], 0.23, fc="none", ec=COLOURS[cell], ls=":", lw=1.2)
            axes.barh(y, kept[at, cell], 0.23, color=COLOURS[cell])
            text = f"{share[at, cell]:.1%}"
            if kept[at, cell] < 0.9 * share[at, cell]:
                text += f", counts {kept[at, cell]:.1%}" if kept[at, cell] else ", not counted"
            if share[at, cell]:
                axes.text(share[at, cell] + 0.004, y, text, va="center", fontsize=8.5, color=INK)
    axes.set(xlim=(0, 0.345), ylim=(2.5, -0.5), yticks=range(len(KINDS)), xticks=[])
    axes.set_yticklabels([f"one {kind}" for kind in KINDS])
    axes.spines["bottom"].set_visible(False)


def losses(axes: Axes, lost: Floats) -> None:
    """What the release of each cell costs one user of each kind."""
    title(
        axes, 3, "Privacy loss of each user",
        "weight / noise, added up over the\ncells: nobody may lose more than ε = 1",
    )  # fmt: skip
    start = np.zeros(len(KINDS))
    for cell in range(len(CELLS)):
        axes.barh(range(len(KINDS)), lost[:, cell], 0.5, start, color=COLOURS[cell])
        start += lost[:, cell]
    for at, total in enumerate(start):
        axes.text(total + 0.02, at, f"{total:.2f}", va="center")
    axes.axvline(1, color=INK, ls="--", lw=1)
    axes.set(xlim=(0, 1.2), ylim=(2.5, -0.5), yticks=range(len(KINDS)), xticks=[0, 0.5, 1])
    axes.set_yticklabels([f"one {kind}" for kind in KINDS])


def noise(axes: Axes, scale: Floats) -> None:
    """The density of the noise of each cell."""
    title(
        axes, 4, "Noise of each cell",
        "random, but its size is public: b is how\nmany km/h it is off on average",
    )  # fmt: skip
    x = np.linspace(-15, 15, 121)
    for cell, b in enumerate(scale):
        bottom, top = 2.0 - cell, np.exp(-np.abs(x) / b)
        axes.fill_between(x, bottom, bottom + 0.75 * top, color=COLOURS[cell], alpha=0.75, lw=0)
        axes.text(15, bottom + 0.28, f"b = {b:.1f}", ha="right")
    axes.set(xlim=(-15, 15), ylim=(-0.08, 3), xticks=[-10, 0, 10])
    axes.set_yticks([2.0, 1.0, 0.0], CELLS)
    axes.tick_params(axis="y", length=0)


def errors(axes: Axes, bias: Floats, scale: Floats, plain: Floats, least: Floats) -> None:
    """The worst-case error of each cell, and what it is made of."""
    title(
        axes, 5, "Worst-case error of each cell, in km/h",
        "known before a value is read, valid whatever the values are: half of what\n"
        "is not counted (pale) plus noise (full)",
    )  # fmt: skip
    axes.axvline(WIDTH / 2, color=INK, ls="--", lw=1)
    axes.text(
        WIDTH / 2 + 0.5, -0.62, "from here on, guessing\n30 is as good: uninformative", va="top",
        fontsize=8.5,
    )  # fmt: skip
    for cell in range(len(CELLS)):
        total = bias[cell] + scale[cell]
        axes.barh(cell - 0.13, bias[cell], 0.3, color=COLOURS[cell], alpha=0.45)
        axes.barh(cell - 0.13, scale[cell], 0.3, bias[cell], color=COLOURS[cell])
        text = f"{total:.1f}  = {bias[cell]:.1f} + {scale[cell]:.1f}"
        axes.text(total + 0.6, cell - 0.13, text, va="center", fontweight="bold")
        axes.barh(cell + 0.22, plain[cell], 0.2, fc="none", ec=LEFT_OUT, lw=1.3)
        axes.text(
            0.5 if plain[cell] > WIDTH / 2 else plain[cell] + 0.6, cell + 0.215,
            f"{plain[cell]:.1f} if everybody counts in full (balanced)",
            va="center", fontsize=8.5, color=FAINT,
        )  # fmt: skip
        axes.plot([least[cell]] * 2, [cell - 0.33, cell + 0.07], color=INK, lw=1.6)
    axes.text(
        least[1] + 0.9, 0.545, "black line: no plan gets below, not even for this cell alone",
        fontsize=8.5, va="center",
    )  # fmt: skip
    axes.set(xlim=(0, 42), ylim=(2.5, -0.65), xticks=[0, 10, 20, 30])
    axes.set_yticks(range(len(CELLS)), CELLS)


def draw(path: Path) -> None:
    """The whole picture."""
    user_values = occupancy()
    plan = shoal.plan(user_values, bounds=(0, WIDTH), epsilon=1, method="optimal")
    full = shoal.plan(
        user_values, method="balanced", bounds=(0, WIDTH), epsilon=1, uninformative="keep"
    )
    kept = plan.design.part
    scale = plan.noise_scale
    style: Any = {
        "svg.hashsalt": "shoal", "font.size": 10, "text.color": INK, "axes.edgecolor": FAINT,
        "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False,
        "axes.spines.right": False, "font.family": "DejaVu Sans",
    }  # fmt: skip
    with plt.rc_context(style):
        figure = plt.figure(figsize=(12, 8.6), facecolor="white")
        top = figure.add_gridspec(1, 3, left=0.01, right=0.985, top=0.85, bottom=0.54, wspace=0.3)
        low = figure.add_gridspec(
            1, 2, left=0.075, right=0.985, top=0.39, bottom=0.05, width_ratios=(1, 2.05), wspace=0.2
        )
        figure.text(
            0.01, 0.975,
            "How fast is traffic in three places? Speeds from 0 to 60 km/h, ε = 1, method optimal",
            fontsize=11, color=FAINT,
        )  # fmt: skip
        counts(figure.add_subplot(top[0]), user_values.totals)
        weights(figure.add_subplot(top[1]), by_kind(plan, plan.design.share), by_kind(plan, kept))
        lost = kept / plan.relative_scale[plan.design.number]
        losses(figure.add_subplot(top[2]), by_kind(plan, lost))
        noise(figure.add_subplot(low[0]), scale)
        errors(
            figure.add_subplot(low[1]), plan.bias_bound, scale, full.worst_case_error,
            plan.lower_bound,
        )  # fmt: skip
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
