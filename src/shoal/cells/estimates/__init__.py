"""Draws noisy numbers, and estimates values, intervals and typical errors from them."""
