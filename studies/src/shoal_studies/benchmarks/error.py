"""Mean absolute errors of every mechanism on eight made-up cells, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal_studies import collections
from shoal_studies.lines import ADAPTIVE, PAPERS
from shoal_studies.measure import Curve, Effort, Setting, measure
from shoal_studies.values import BOUNDS, speeds

_SHORT = (
    *("baseline", "arr-med", "arr-levy", "arr-opt", "levy", "q-fixed", "q-opt", "akmv"),
    *("wc-opt", "adaptive"),
)
_CELLS = {
    "ITMS-like": collections.itms,
    "one heavy user": collections.heavy,
    "all equal": collections.equal,
    "geometric": collections.geometric,
}
_LEFT, _WIDE = 25, 9


def run(epsilons: Sequence[float], effort: Effort) -> Iterator[str]:
    """One line for each cell and loss, as it is measured.

    Values are normal with the mean and variance of the ITMS cell, clipped to 0..65 km/h; either
    iid, or with a standard deviation of 6 km/h between users within the same variance.

    Args:
        epsilons: Losses.
        effort: Repetitions, seed, processes.

    Raises:
        InputError: An unusable loss.
    """
    yield (
        f"mean absolute error in km/h on [0, 65]; {effort.repetitions:,} data sets a figure, "
        "expectation over Laplace noise in closed form"
    )
    yield (
        "arr: array averaging at the median, Levy, minimax cap; q: quantile; wc-opt: worst-case "
        "optimal; last: adaptive over the best of the others"
    )
    yield "".join(
        [f"{'cell, values':<{_LEFT}}{'epsilon':>{_WIDE}}"]
        + [f"{each:>{_WIDE}}" for each in _SHORT]
        + [f"{'last/best':>{_WIDE + 1}}"]
    )
    for name, counts in _CELLS.items():
        cell = collections.one_cell(counts())
        for kind, differ in (("iid", False), ("differ", True)):
            setting = Setting(cell, speeds(differ=differ), BOUNDS, tuple(epsilons))
            curves = measure(setting, (*PAPERS, ADAPTIVE), effort)
            yield from _lines(f"{name}, {kind}", curves)


def _lines(name: str, curves: list[Curve]) -> Iterator[str]:
    for at, epsilon in enumerate(curves[0].epsilon.tolist()):
        errors = [float(curve.error[at]) for curve in curves]
        numbers = "".join(f"{error:>{_WIDE}.4f}" for error in errors)
        ratio = errors[-1] / min(errors[:-1])
        yield f"{name:<{_LEFT}}{epsilon:>{_WIDE}g}{numbers}{ratio:>{_WIDE + 1}.2f}"
