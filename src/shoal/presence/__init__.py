"""Private counts: statistics of public cells that do not tell who was there."""
