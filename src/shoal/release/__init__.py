"""Carrying a plan out: the draw, the record, the manifest, the second opinion."""
