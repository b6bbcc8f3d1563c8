"""What was asked and decided for a plan, and what follows: losses, errors, certificates."""
