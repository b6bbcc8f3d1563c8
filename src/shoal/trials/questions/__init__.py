"""Answers questions that are asked before outcomes are read: effects, means, regressions."""
