"""Randomised experiments with private outcomes and valid effects."""
