"""Means of values without bounds."""
