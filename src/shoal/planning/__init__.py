"""Choosing bounding and noise for all cells at once, from public facts only."""
