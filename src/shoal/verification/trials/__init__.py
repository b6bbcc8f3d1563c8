"""The second opinion on releases of trials."""
