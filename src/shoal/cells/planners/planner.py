"""Makes a plan: chooses its method and its cells, and calls the planner of the method."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from shoal.arrays import Ints
from shoal.cells.facts.decision import Task, check_counts, public_status
from shoal.cells.facts.facts import Facts
from shoal.cells.facts.request import Request
from shoal.cells.mechanisms.cell_statistics import MIDPOINT_ERROR
from shoal.cells.mechanisms.methods import Planner, method_of
from shoal.cells.planners.by_cell import by_cell
from shoal.cells.planners.clip_user import clip_user_plan
from shoal.cells.planners.largest_error import most_cells
from shoal.cells.planners.objective import choose
from shoal.cells.planners.optimal.plan import optimal
from shoal.cells.planners.shared_noise import shared_noise
from shoal.cells.planners.user_clipped import user_clipped
from shoal.data.counts import Counts
from shoal.data.value_lattice import Bounds
from shoal.errors import InputError
from shoal.privacy.budget import Amount
from shoal.theory.allocation import Problem, given_up

_PLANNERS: dict[Planner, Callable[[Task], Facts]] = {
    "shared": shared_noise,
    "by cell": by_cell,
    "clip user": clip_user_plan,
    "user clipped": user_clipped,
    "optimal": optimal,
}


def make_plan(counts: Counts, request: Request, counting: float = 1.0) -> Facts:
    """Returns the plan for a request: public facts alone decide on cells and noise.

    Where far users are counted, `counting` times the usual part of epsilon is for that.
    """
    method, reason = choose(request, counts)
    check_counts(counts, request, method)
    status = tuple(public_status(counts, request))
    task = Task(counts, request, method, status, reason, counting)
    if request.max_error is not None:
        return most_cells(task, _plan)
    is_optimal = method.planner == "optimal"
    equal_errors = is_optimal and method.settings.get("targets", "equal") == "equal"
    if equal_errors and request.uninformative == "drop":
        return _fewest_left_out(task)
    while True:
        plan = _plan(task)
        useless = plan.cell_error >= MIDPOINT_ERROR
        if request.uninformative == "keep" or not useless.any():
            return plan
        if request.uninformative == "refuse":
            raise _uninformative(plan, useless)
        task = task.with_status(_without(task, _to_leave_out(plan)))


def plan_means(
    counts: Counts,
    bounds: Bounds | tuple[float, float],
    method: str,
    epsilon: Amount,
    settings: Mapping[str, str | int | float] | None = None,
    *,
    delta: Amount = 0,
    tick_bits: int = 20,
) -> Facts:
    """Returns a plan by one method for the means of all cells, also uninformative ones."""
    asked = {"epsilon": epsilon, "delta": delta, "method": method, "settings": settings or {}}
    request = Request.of(
        bounds=bounds, tick_bits=tick_bits, uninformative="keep", min_users=1, **asked
    )
    return make_plan(counts, request)


def _plan(task: Task) -> Facts:
    """Returns the plan by the planner of the method; refuses a task without cells."""
    if len(task.cells) == 0:
        raise _nothing_left(task)
    return _PLANNERS[task.method.planner](task)


def _without(task: Task, places: Ints) -> np.ndarray:
    """Returns the statuses of cells, with the planned cells at these places left out."""
    status = np.array(task.status, dtype=object)
    status[task.cells[places]] = "uninformative"
    return status


def _fewest_left_out(task: Task) -> Facts:
    """Returns an optimal plan of equal errors that leaves out as few cells as possible.

    With equal errors either all cells are uninformative or none is. So bisection finds how many
    cells to leave out. Their order is that in which an equalised plan, without weights and delta,
    gives cells up.
    """
    plan = _plan(task)
    if not (plan.cell_error >= MIDPOINT_ERROR).any():
        return plan
    unweighted = task.request.model_copy(update={"weights": {}, "delta": Fraction(0)})
    equal = shared_noise(replace(task, request=unweighted, method=method_of("equalised")))
    # Without a loss to stop at, the order has every cell.
    order = given_up(_problem(equal), 0.0)
    # Leaving out `too_few` cells is not enough, `enough` cells are, or are all.
    too_few = 0
    enough = len(task.cells)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = _plan(task.with_status(_without(task, order[:middle])))
        if (tried.cell_error >= MIDPOINT_ERROR).any():
            too_few = middle
        else:
            enough = middle
            plan = tried
    if enough == len(task.cells):
        raise _nothing_left(task)
    return plan


def _problem(plan: Facts) -> Problem:
    """Returns the problem of sharing the plan's noise among its cells."""
    return plan.numbers.problem(plan.importance, plan.decision.scale)


def _to_leave_out(plan: Facts) -> Ints:
    """Returns the places of the planned cells to give up next."""
    error = plan.cell_error
    if plan.method == "equalised":
        # Once cells are given up until the loss at today's noise is at most `allowed`, noise can
        # shrink so far that the largest error is only that of guessing.
        problem = _problem(plan)
        loss = float(problem.loss(np.ones(problem.n_cells)).max())
        allowed = loss * (MIDPOINT_ERROR / float(error.max())) ** plan.numbers.power
        return given_up(problem, allowed)
    # Only the worse half is given up at a time: the loss that it frees may save the other half.
    uninformative = int((error >= MIDPOINT_ERROR).sum())
    return np.argsort(-error, kind="stable")[: (uninformative + 1) // 2]


def _nothing_left(task: Task) -> InputError:
    """Returns the error that says why a plan would have no cell."""
    request = task.request
    rules = {"users": request.min_users, "records": request.min_records}
    # A least number of 1 leaves no cell out.
    rules = {what: least for what, least in rules.items() if least > 1}
    lower = [f"lower min_{what}={least}" for what, least in rules.items()]
    if not (public_status(task.counts, request) == "planned").any():
        few = " or ".join(f"{least:,} {what}" for what, least in rules.items())
        return InputError(
            f"every cell has fewer than {few}, and would be left out",
            f"use larger cells, or {' and '.join(lower)}: min_users=1 plans all cells, also those "
            "of a single user",
        )
    steps = ", ".join(["raise epsilon", "use larger cells", *lower])
    return InputError(
        "the plan would have no cell",
        f'{steps}, or give uninformative="keep", which also plans cells that are no better than '
        "guessing",
    )


def _uninformative(plan: Facts, useless: np.ndarray) -> InputError:
    """Returns the error that names one of the planned cells that are `useless`."""
    first = plan.planned[useless][0]
    return InputError(
        f"{int(useless.sum())} cells are uninformative, such as {plan.counts.labels[first]!r}",
        'raise epsilon, use larger cells, or leave them out with uninformative="drop"',
    )
