"""Noise drawn and taken back out: numbers, values, intervals, typical errors."""
