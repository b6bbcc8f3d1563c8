"""Mechanisms that release means of cells, one a file."""
