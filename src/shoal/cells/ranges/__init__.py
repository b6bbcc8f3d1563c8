"""The range that values are clipped to, public or privately selected, one rule a file."""
