"""Faults in which cells are released, and in what is said of those that are not."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_CELLS = ("tests/cells/test_most_cells.py",)
_POOLED = ("tests/cells/test_pooled.py",)
_REASONS = ("tests/cells/test_left_out.py",)
_OPINION = ("tests/verification/cells/test_most_cells.py",)

FAULTS = (
    Fault(
        "cells with larger errors than asked for are released",
        "G-LARGEST",
        "cells/largest_error.py",
        "return bool((errors_compared(facts) <= most * (1 + _CLOSE)).all())",
        "return bool((errors_compared(facts).min() <= most * (1 + _CLOSE)))",
        _CELLS,
    ),
    Fault(
        "a larger delta takes cells away whose errors Laplace noise keeps",
        "G-LARGEST",
        "cells/noise_allocation.py",
        "return min(found, key=lambda each: (not within(each), judge(each)))",
        "return min(found, key=judge)",
        _CELLS,
    ),
    Fault(
        "the order of cells follows the public rules",
        "G-LARGEST",
        "cells/cell_order.py",
        "left, given_up = np.arange(occupancy.n_cells), []",
        "left, given_up = np.flatnonzero(occupancy.users_per_cell >= request.min_users), []",
        _CELLS,
    ),
    Fault(
        "a release does not look at the largest error",
        "G-TAMPER",
        "cells/request_rules.py",
        "and within(facts)\n",
        "and len(facts.released) >= 0\n",
        _CELLS,
    ),
    Fault(
        "any cells of an optimal plan may be left out for their errors",
        "G-TAMPER",
        "cells/derived.py",
        "return first_ones_released(facts, status)",
        "return True",
        _CELLS,
    ),
    Fault(
        "the ledger does not know the largest error of a question",
        "G-LEDGER",
        "cells/document.py",
        '"max_error": request.max_error,',
        '"max_error": None,',
        _CELLS,
    ),
    Fault(
        "pooled values pass for released ones",
        "G-POOLED",
        "cells/table.py",
        'absent = None if others is None else "pooled"',
        'absent = None if others is None else "released"',
        _POOLED,
    ),
    Fault(
        "intervals of pooled values forget that few users differ more",
        "G-POOLED",
        "cells/pooled.py",
        "np.sqrt(spread**2 + (_OF_RADIUS * radius) ** 2 * squares)",
        "np.sqrt(spread**2 + 0 * radius * squares)",
        _POOLED,
    ),
    Fault(
        "pooled values have intervals where nobody knows how users spread",
        "G-POOLED",
        "cells/pooled.py",
        "if radius is None or len(plan.released) < _FEWEST:",
        "radius = radius or 0.0\n    if len(plan.released) < 1:",
        _POOLED,
    ),
    Fault(
        "labels of left-out cells that no released cell has have an interval",
        "G-POOLED",
        "cells/pooled.py",
        "return found, np.all([each >= 0 for each in others], axis=0)",
        "return found, np.all([each >= -1 for each in others], axis=0)",
        _POOLED,
    ),
    Fault(
        "a cell is said to need the budget of its own noise alone",
        "G-LARGEST",
        "cells/left_out.py",
        "total[design.user[own]] += added[own]",
        "total[design.user[own]] = added[own]",
        _REASONS,
    ),
    Fault(
        "the second opinion does not compare errors with the largest",
        "G-LARGEST",
        "verification/cells/request.py",
        "errors.relative(name, at) > most * (1 + _CLOSE)",
        "errors.relative(name, at) > 1",
        _OPINION,
    ),
    Fault(
        "the second opinion is silent about forecasts",
        "G-VERIFY",
        "verification/cells/verify.py",
        'request["max_error"] is not None and plan["mechanism"]["name"] in selecting, _FORECAST',
        'request["max_error"] == 0 and plan["mechanism"]["name"] in selecting, _FORECAST',
        _OPINION,
    ),
    Fault(
        "the second opinion takes any word for a cell that is left out",
        "G-VERIFY",
        "verification/cells/request.py",
        'return {"error too large"}',
        'return {"error too large", "uninformative"}',
        _OPINION,
    ),
)
