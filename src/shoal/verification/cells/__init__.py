"""The second opinion on releases of cells."""
