"""Questions of randomised experiments that are known before outcomes: weights, noise, variances."""
