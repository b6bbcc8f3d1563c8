"""Holds formulas and numerical methods that use no data and no randomness."""
