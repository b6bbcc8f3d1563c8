"""Accounts for what releases cost, and draws their noise: budgets, units, ledger, selections."""
