"""Errors of mechanisms on assumed distributions, before any value is read."""
