"""Speeds side by side, measured in one run."""
