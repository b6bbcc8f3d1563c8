"""Paper 003, figure 8: the fuller version of the four panels of figure 2."""

from __future__ import annotations

from dataclasses import replace

from shoal_studies import trial_clusters, trial_tradeoffs
from shoal_studies import trial_lines as lines
from shoal_studies.registry import Study, study
from shoal_studies.simulate import Effort


@study(
    "003-figure-8",
    "Experiments 1 to 3 side by side",
    "paper 003, appendix A.10, figure 8",
)
def figure_8(effort: Effort) -> Study:
    """All of figures 2a to 2d from one run."""
    floors = trial_tradeoffs.by_floor(effort)
    losses = trial_tradeoffs.mixture_losses(effort)
    clusters = trial_clusters.by_homogeneity(effort)
    communities = trial_clusters.by_communities(effort)
    a = [row for part, found in floors.items() for row in found.rows(f"a: {part}")]
    b, c, d = losses.rows("b"), clusters.rows("c"), communities.rows("d")
    charts = [
        lines.variances([row for row in a if row["panel"] == "a: equal loss"], "gamma K"),
        *(lines.variances(rows, trial_tradeoffs.ACROSS, "xy") for rows in (b, d)),
        trial_clusters.homogeneity_chart(clusters),
    ]
    parts = {
        "a": trial_tradeoffs.floor_findings(floors),
        "b": trial_tradeoffs.loss_findings(losses),
        "c": trial_clusters.homogeneity_findings(clusters),
        "d": trial_clusters.community_findings(communities),
    }
    findings = [
        replace(each, claim=f"({part}) {each.claim}") for part, of in parts.items() for each in of
    ]
    return Study([*a, *b, *c, *d], charts, findings)
