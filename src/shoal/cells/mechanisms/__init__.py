"""How users count, where values are clipped, and the exact sums before noise."""
