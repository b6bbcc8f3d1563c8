"""Variances of the speeds of flights by destination: certificates against the truth.

The bundled flights are public, so that what a release would show can be compared with what it
hides. Noise is simulated: nothing here is private, and no budget is spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.cells.draw import draw
from shoal.cells.estimates import Estimates
from shoal.cells.plan_facts import PlanFacts
from shoal.cells.planner import make_plan
from shoal.cells.request import Request
from shoal.data.aggregate import Aggregate
from shoal.data.records import Records
from shoal.privacy.noise import Simulated
from shoal_studies import drawing
from shoal_studies.measure import Effort
from shoal_studies.study import Outcome, Row, Study, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Floats = NDArray[np.float64]

# Airliners: public knowledge. One flight in a thousand or so is outside and clipped.
BOUNDS = (100, 600)
MIN_RECORDS = 200
_EPSILONS, _FEW_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (1.0, 8.0)
_SHOWN, _FULLEST, _CONFIDENCE = 8.0, 30, 0.95
_DRAWS, _FEW_DRAWS = 200, 20
_TRUE, _OURS, _CERTIFIED = "#333333", "#d1495b", "#1f6f8b"


@dataclass(frozen=True, eq=False)
class Compared:
    """One plan, carried out with simulated noise several times, beside the truth.

    Attributes:
        plan: Balanced, variances only.
        truth: Variance of the clipped speeds of each released destination, (mph)^2.
        value: Of each draw, shape (draws, destinations).
        low: Lower ends of the intervals, same shape.
        high: Upper ends, same shape.
    """

    plan: PlanFacts
    truth: Floats
    value: Floats
    low: Floats
    high: Floats

    @property
    def error(self) -> Floats:
        """Mean absolute error of each destination."""
        return np.asarray(np.abs(self.value - self.truth).mean(axis=0))

    @property
    def covered(self) -> Floats:
        """How often each interval covers."""
        return np.asarray(((self.low <= self.truth) & (self.truth <= self.high)).mean(axis=0))

    @property
    def names(self) -> list[str]:
        """Of the destinations."""
        labels = self.plan.counts.labels
        return [labels[at] for at in self.plan.released.tolist()]

    @property
    def records(self) -> NDArray[np.int64]:
        """Flights to each destination."""
        return np.asarray(self.plan.counts.totals[self.plan.released])

    @property
    def epsilon(self) -> float:
        """What was asked for."""
        return float(self.plan.request.epsilon or 0)


def _run(effort: Effort) -> Outcome:
    drawing.check()
    with as_file(files("shoal") / "datasets" / "flights_2013.parquet") as path:
        records = Records(
            path, user="tailnum", value="speed", bounds=BOUNDS, by="dest", missing="public"
        )
        aggregate, truth = records.aggregate(), _truth(path)
    epsilons, draws = (_EPSILONS, _DRAWS) if effort.full else (_FEW_EPSILONS, _FEW_DRAWS)
    found = [
        _compare(aggregate, truth, epsilon, draws, effort.seed)
        for epsilon in effort.progress(epsilons, len(epsilons))
    ]
    return Outcome([row for each in found for row in _rows(each)], _picture(found), _reading(found))


def _truth(path: Path) -> dict[str, float]:
    """The variance of the clipped speeds by destination."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["tailnum", "dest", "speed"]).drop_null()
    low, high = (float(end) for end in BOUNDS)
    clipped = pc.min_element_wise(pc.max_element_wise(table.column("speed"), low), high)
    table = table.set_column(2, "speed", clipped)
    made = table.group_by("dest").aggregate([("speed", "variance")])
    return {str(row["dest"]): float(row["speed_variance"]) for row in made.to_pylist()}


def _compare(
    aggregate: Aggregate, truth: dict[str, float], epsilon: float, draws: int, seed: int
) -> Compared:
    request = Request.of(
        method="balanced", bounds=aggregate.lattice.bounds, tick_bits=aggregate.lattice.bits,
        epsilon=epsilon, statistics=["variance"], uninformative="keep", min_records=MIN_RECORDS,
    )  # fmt: skip
    plan = make_plan(aggregate.occupancy, request)
    labels = plan.counts.labels
    found: list[tuple[Floats, Floats, Floats]] = []
    for turn in range(draws):
        noise = Simulated(seed * _DRAWS + turn)
        numbers = Estimates(plan, *draw(plan, aggregate, noise))
        found.append((numbers.value, *numbers.intervals(_CONFIDENCE)))
    true = np.array([truth[labels[at]] for at in plan.released.tolist()])
    value, low, high = (np.array(each) for each in zip(*found, strict=True))
    return Compared(plan, true, value, low, high)


def _rows(found: Compared) -> list[Row]:
    certificate, cells = found.plan.worst_case_error, found.plan.counts.users_per_cell
    return [
        {
            "epsilon": found.epsilon,
            "destination": name,
            "flights": int(found.records[at]),
            "aircraft": int(cells[found.plan.released[at]]),
            "true_variance": round(float(found.truth[at]), 3),
            "simulated_variance": round(float(found.value[0, at]), 3),
            "low": round(float(found.low[0, at]), 3),
            "high": round(float(found.high[0, at]), 3),
            "certificate": round(float(certificate[at]), 3),
            "mean_error": round(float(found.error[at]), 3),
            "covered": round(float(found.covered[at]), 4),
            "draws": len(found.value),
        }
        for at, name in enumerate(found.names)
    ]


def _picture(found: list[Compared]) -> Figure:
    title = (
        "Spread of speeds by destination, flights of 2013 out of New York (simulated noise: not "
        "private)"
    )
    figure, (left, right) = drawing.sheet(title, (11.5, 4.6), 2, widths=(1.5, 1))
    _spreads(left, next(each for each in found if each.epsilon == _SHOWN))
    _errors(right, found)
    return figure


def _spreads(axis: Axes, found: Compared) -> None:
    """Standard deviations of the fullest destinations: true, and as one draw shows them."""
    order = np.argsort(-found.records, kind="stable")[:_FULLEST]
    place = np.arange(len(order))
    value, low, high = (np.sqrt(each[0, order]) for each in (found.value, found.low, found.high))
    axis.vlines(place, low, high, color=_OURS, alpha=0.35, linewidth=5,
                label=f"{_CONFIDENCE:.0%} interval, holds for every data set")  # fmt: skip
    axis.plot(place, value, "D", color=_OURS, markersize=4, label="one simulated release")
    axis.plot(place, np.sqrt(found.truth[order]), "o", color=_TRUE, markersize=4, label="truth")
    axis.set_xticks(place, [found.names[at] for at in order.tolist()], rotation=90, fontsize=7)
    axis.set_ylim(0, 1.35 * float(high.max()))
    axis.set_ylabel("standard deviation (root of the variance), mph")
    axis.set_title(
        f"epsilon {found.epsilon:g} in total: the {len(order)} destinations with most flights",
        fontsize=10,
    )
    axis.legend(fontsize=8, frameon=False, loc="upper left")


def _errors(axis: Axes, found: list[Compared]) -> None:
    """Errors of the median destination against the loss."""
    epsilon = [each.epsilon for each in found]
    axis.plot(epsilon, [float(np.median(each.plan.worst_case_error)) for each in found],
              "^-", color=_CERTIFIED, label="certificate, before any value is read")  # fmt: skip
    axis.plot(epsilon, [float(np.median(each.error)) for each in found],
              "D-", color=_OURS, label="mean absolute error, measured")  # fmt: skip
    axis.axhline(float(np.median(found[0].truth)), color=_TRUE, linestyle="--",
                 label="the true variance itself")  # fmt: skip
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="epsilon in total",
        ylabel="error of the variance, (mph)^2",
    )
    axis.set_xticks(epsilon)
    axis.minorticks_off()
    for side in (axis.xaxis, axis.yaxis):
        drawing.plain_numbers(side)
    axis.set_title("the median destination", fontsize=10)
    axis.legend(fontsize=8, frameon=False)


def _reading(found: list[Compared]) -> str:
    least, most = found[0], found[-1]
    over = np.concatenate([each.error / each.plan.worst_case_error for each in found])
    holds = bool((over < 1).all())
    covered = np.array([each.covered.mean() for each in found])
    deviation = np.sqrt(most.truth)
    within = all(
        bool((each.value >= 0).all() and (each.value <= each.plan.statistic_range).all())
        for each in found
    )
    useful = [
        each for each in found if np.median(each.plan.worst_case_error) < np.median(each.truth)
    ]
    start = f"from epsilon {useful[0].epsilon:g} on" if useful else "at none of these losses"
    return (
        f"Speeds of {int(most.records.sum()):,} flights to {len(most.truth)} destinations with at "
        f"least {MIN_RECORDS}, clipped to the public bounds {BOUNDS[0]} and {BOUNDS[1]} mph; the "
        f"user is the aircraft, the method is balanced. True variances are "
        f"{most.truth.min():.0f} to {most.truth.max():.0f} (mph)^2, standard deviations "
        f"{span(deviation, 0)} mph. The certificate of the median destination is "
        f"{np.median(least.plan.worst_case_error):,.0f} at epsilon {least.epsilon:g} and "
        f"{np.median(most.plan.worst_case_error):,.0f} at {most.epsilon:g}; it is below the median "
        f"variance {start}. Measured mean errors are {span(over)} times their certificates: "
        f"{'never above' if holds else 'above in some cells, by chance'}; where the noise is wide, "
        "moving values into the range, which is free, cuts them. Intervals at "
        f"{_CONFIDENCE:.0%} cover {covered.min():.1%} to {covered.max():.1%} of the time. "
        f"{'No value is' if within else 'Some values are'} negative or above U^2/4. A variance is "
        "small against its range of U^2/4, so that it needs far more privacy loss than a mean. "
        f"{len(most.value)} simulated releases at each loss, which are not private and spend no "
        "budget; the records are public."
    )


STUDY = Study(
    "flights-variance",
    "Variances of speeds by destination, certificates against the truth",
    "our own, on the bundled flights of 2013",
    _run,
)
