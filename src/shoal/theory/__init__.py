"""Closed forms: no data, no randomness."""
