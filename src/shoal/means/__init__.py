"""Means of unbounded values."""
