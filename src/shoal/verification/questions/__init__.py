"""The second opinion on releases of questions."""
