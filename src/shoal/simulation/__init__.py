"""Errors of every mechanism before a value is read: assumed distributions, measured errors."""
