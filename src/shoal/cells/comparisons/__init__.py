"""Methods side by side, and advice."""
