"""How users contribute to every released cell, one rule a file."""
