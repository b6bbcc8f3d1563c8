"""Decides how users count and where values are clipped, and adds up exactly before noise."""
