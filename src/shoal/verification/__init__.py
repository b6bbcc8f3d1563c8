"""The second opinion: every claim of a manifest recomputed, with code of its own."""
