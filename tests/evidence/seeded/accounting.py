"""Faults in budgets and their sums."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_BUDGET = ("tests/privacy/test_budget.py",)

FAULTS = (
    Fault(
        "a charge fits if one of its parts fits",
        "G-LEDGER",
        "privacy/budget.py",
        "self.epsilon <= other.epsilon and self.delta <= other.delta",
        "self.epsilon <= other.epsilon or self.delta <= other.delta",
        _BUDGET,
    ),
    Fault(
        "a charge of exactly what is left is refused",
        "G-LEDGER",
        "privacy/budget.py",
        "self.epsilon <= other.epsilon and",
        "self.epsilon < other.epsilon and",
        _BUDGET,
    ),
    Fault(
        "sums of charges forget delta",
        "G-LEDGER",
        "privacy/budget.py",
        "return Budget(self.epsilon + other.epsilon, self.delta + other.delta)",
        "return Budget(self.epsilon + other.epsilon, self.delta)",
        _BUDGET,
    ),
    Fault(
        "what is left forgets delta",
        "G-LEDGER",
        "privacy/budget.py",
        "return Budget(self.epsilon - other.epsilon, self.delta - other.delta)",
        "return Budget(self.epsilon - other.epsilon, self.delta)",
        _BUDGET,
    ),
    Fault(
        "charges below zero are charges",
        "G-REFUSE",
        "checks/amounts.py",
        "found is None or found < 0 or",
        "found is None or",
        _BUDGET,
    ),
    Fault(
        "amounts are what their classes print",
        "G-BOOKED",
        "checks/amounts.py",
        "if type(value) not in _PLAIN:",
        "if not isinstance(value, _PLAIN):",
        _BUDGET,
    ),
    Fault(
        "a float counts with all of its binary digits",
        "G-LEDGER",
        "checks/amounts.py",
        "    return Fraction(written)\n",
        "    return Fraction(float(written))\n",
        _BUDGET,
    ),
    Fault(
        "shown charges are rounded downwards",
        "G-LEDGER",
        "privacy/budget.py",
        "ROUND_CEILING if up else ROUND_FLOOR",
        "ROUND_FLOOR if up else ROUND_CEILING",
        _BUDGET,
    ),
    Fault(
        "a delta of 1 is a budget",
        "G-REFUSE",
        "privacy/budget.py",
        "if budget.delta >= 1:",
        "if budget.delta > 1:",
        _BUDGET,
    ),
    Fault(
        "a loss is rounded to the nearest float",
        "G-ACCOUNTING",
        "privacy/displayed_loss.py",
        "return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)",
        "return nearest",
        _BUDGET,
    ),
    Fault(
        "a shown loss is rounded downwards",
        "G-ACCOUNTING",
        "privacy/displayed_loss.py",
        "math.ceil(value / scale) * scale",
        "math.floor(value / scale) * scale",
        _BUDGET,
    ),
    Fault(
        "pure plans are events of half their loss",
        "G-ACCOUNTING",
        "privacy/events.py",
        "flip = 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))",
        "flip = 2 * math.exp(-epsilon / 2) / (1 + math.exp(-epsilon / 2))",
        ("tests/privacy/test_events.py",),
    ),
    Fault(
        "Gaussian plans are events of half their loss",
        "G-CONVERSION",
        "privacy/events.py",
        "dp_event.ZCDpEvent(rho)",
        "dp_event.ZCDpEvent(rho / 2)",
        ("tests/privacy/test_events.py",),
    ),
)
