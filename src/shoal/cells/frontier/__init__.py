"""Errors of several methods against the privacy loss, before any value is read."""
