"""Mechanisms that release means."""
