"""Statistics of public counts beside means: sums, standard deviations, and distributions."""
