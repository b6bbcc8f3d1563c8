"""Paper 003: all studies, and figure 8, the fuller version of the four panels of figure 2."""

from __future__ import annotations

from shoal_studies import drawing, trial_clusters, trial_drawing, trial_tradeoffs
from shoal_studies.measure import Effort
from shoal_studies.study import Outcome, Study
from shoal_studies.trial_bias import FIGURE_6
from shoal_studies.trial_bounds import FIGURE_5
from shoal_studies.trial_distributions import FIGURE_3, FIGURE_4, FIGURE_7


def _figure_8(effort: Effort) -> Outcome:
    drawing.check()
    floors = trial_tradeoffs.by_floor(effort)
    losses = trial_tradeoffs.mixture_losses(effort)
    clusters = trial_clusters.by_homogeneity(effort)
    communities = trial_clusters.by_communities(effort)
    figure, axes = drawing.canvas("Paper 003, figure 8: experiments 1 to 3", 2, 2)
    shown = [
        trial_tradeoffs.draw_floors(axes[0], floors, trial_tradeoffs.PARTS[0]),
        trial_tradeoffs.draw_losses(axes[1], losses, "(b) Gaussian mixture, delta 1e-4"),
        trial_clusters.draw_homogeneity(axes[2], clusters),
        trial_tradeoffs.draw_losses(axes[3], communities, "(d) fifty communities, delta 1e-4"),
    ]
    drawing.legend(figure, trial_drawing.together(shown))
    parts = {
        **{f"a: {part}": found for part, found in floors.items()},
        "b": losses,
        "c": clusters,
        "d": communities,
    }
    reading = (
        f"(a) {trial_tradeoffs.read_floors(floors, effort)} "
        f"(b) {trial_tradeoffs.read_losses(losses, effort)} "
        f"(c) {trial_clusters.read_homogeneity(clusters, effort)} "
        f"(d) {trial_clusters.read_communities(communities, effort)}"
    )
    rows = [row for part, found in parts.items() for row in found.rows(part)]
    return Outcome(rows, figure, reading)


FIGURE_8 = Study(
    "003-figure-8",
    "Experiments 1 to 3 side by side",
    "paper 003, appendix A.10, figure 8",
    _figure_8,
)

FIGURES: tuple[Study, ...] = (
    trial_tradeoffs.FIGURE_2A,
    trial_tradeoffs.FIGURE_2B,
    trial_clusters.FIGURE_2C,
    trial_clusters.FIGURE_2D,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
)
