"""Estimates of means of unbounded values: one mechanism a file, each a frozen description."""
