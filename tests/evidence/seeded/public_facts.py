"""Faults in what keeps public facts as they are, and numbers within what can be written."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_FROZEN = ("tests/checks/test_frozen.py",)
_FINITE = ("tests/release/test_finite.py",)

FAULTS = (
    Fault(
        "bounds reach as far as floating point",
        "G-REFUSE",
        "data/value_lattice.py",
        "_FARTHEST, _NARROWEST = 1e50, 1e-100",
        "_FARTHEST, _NARROWEST = 1e300, 1e-100",
        (f"{_FINITE[0]}::test_bounds_are_no_further_than_numbers_reach",),
    ),
    Fault(
        "bounds are as near as floating point",
        "G-REFUSE",
        "data/value_lattice.py",
        "or self.width < _NARROWEST",
        "or self.width <= 0",
        (f"{_FINITE[0]}::test_bounds_are_no_nearer_than_squares_reach",),
    ),
    Fault(
        "noise of a plan may be as wide as floating point",
        "G-LEDGER",
        "cells/plan_form.py",
        "MOST_SCALE = 2.0**100",
        "MOST_SCALE = 2.0**1000",
        (f"{_FINITE[0]}::test_the_widest_noise_that_a_plan_may_have",),
    ),
    Fault(
        "arrays of a plan are those that were given",
        "G-ACCOUNTING",
        "checks/frozen.py",
        "return np.frombuffer(_Kept(value.tobytes()), dtype=value.dtype).reshape(value.shape)",
        "return value",
        _FROZEN,
    ),
    Fault(
        "cells of an occupancy are in the caller's memory",
        "G-ACCOUNTING",
        "data/occupancy.py",
        'object.__setattr__(self, "cells", keys.own_table(self.cells))',
        'object.__setattr__(self, "cells", self.cells)',
        (f"{_FROZEN[0]}::test_cells_that_callers_keep_are_not_the_occupancys",),
    ),
    Fault(
        "what an occupancy derives can be opened and written into",
        "G-ACCOUNTING",
        "checks/frozen.py",
        "kept = vars(instance)[self.attrname] = _kept(found)",
        "kept = found",
        (f"{_FROZEN[0]}::test_what_occupancies_derive_cannot_be_opened_again",),
    ),
    Fault(
        "weights of a design can be opened and written into",
        "G-ACCOUNTING",
        "cells/contributions/design.py",
        "class Design(Frozen):",
        "class Design:",
        _FROZEN,
    ),
    Fault(
        "lists among public facts stay lists",
        "G-ACCOUNTING",
        "checks/frozen.py",
        "if type(value) in (tuple, list):",
        "if type(value) is tuple:",
        (f"{_FROZEN[0]}::test_nothing_public_can_be_written_into",),
    ),
    Fault(
        "a balanced plan may lose the duals that prove it",
        "G-REFUSE",
        "cells/plan_form.py",
        "and (facts.duals is not None or not facts.request.parts.allocation.proved)",
        "and True",
        (f"{_FROZEN[0]}::test_parts_of_another_kind_are_refused",),
    ),
    Fault(
        "an optimal plan may lose the duals that prove it",
        "G-READABLE",
        "cells/allocation/base.py",
        '    title = "linear program"\n    proved = True\n',
        '    title = "linear program"\n    proved = False\n',
        (f"{_FROZEN[0]}::test_a_plan_keeps_the_prices_that_prove_it",),
    ),
    Fault(
        "duals that prove a plan may all be 0",
        "G-READABLE",
        "cells/plan_form.py",
        "not 0 < duals.max() <= _MOST_DUAL",
        "not 0 <= duals.max() <= _MOST_DUAL",
        (f"{_FROZEN[0]}::test_a_plan_keeps_the_prices_that_prove_it",),
    ),
    Fault(
        "an error may cost any epsilon",
        "G-READABLE",
        "cells/request_rules.py",
        "        and facts.exact_epsilon <= MOST_EPSILON\n",
        "",
        ("tests/cells/test_kept.py",),
    ),
    Fault(
        "the estimator of another method makes a plan of a mean",
        "G-REFUSE",
        "means/plan_facts.py",
        "and self.estimator.name == self.request.method",
        "and True",
        (f"{_FROZEN[0]}::test_parts_of_another_mean_are_refused",),
    ),
    Fault(
        "copies of a plan keep what was derived and can be written into",
        "G-ACCOUNTING",
        "checks/frozen.py",
        "        for name, value in state.items():\n"
        "            object.__setattr__(self, name, value)\n"
        "        self.__post_init__()",
        "        vars(self).update(state)",
        _FROZEN,
    ),
    Fault(
        "counts stay in the type they are given in",
        "G-ACCOUNTING",
        "checks/frozen.py",
        "fits and value.dtype == np.dtype(kind) and value.dtype.isnative",
        "fits",
        _FROZEN,
    ),
    Fault(
        "memberships of an occupancy may come in any order",
        "G-REFUSE",
        "data/occupancy.py",
        "and bool((right | (step == 1)).all())",
        "and True",
        _FROZEN,
    ),
    Fault(
        "parameters of a plan need not be the mechanism's",
        "G-REFUSE",
        "cells/plan_form.py",
        "sound = mechanism.check(facts.parameters, facts.occupancy, facts.released)",
        "sound = True",
        _FROZEN,
    ),
    Fault(
        "a symmetric mean may be certified for means that cannot be verified",
        "G-VERIFY",
        "means/request.py",
        "most=min(2.0**59 * size, _MOST_FARTHEST)",
        "most=2.0**59 * size",
        (f"{_FINITE[0]}::test_the_farthest_mean_is_one_that_can_be_verified",),
    ),
)
