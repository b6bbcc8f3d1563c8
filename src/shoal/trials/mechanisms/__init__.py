"""Private mechanisms of trials: outcomes of units one by one, and noisy sums of clusters."""
