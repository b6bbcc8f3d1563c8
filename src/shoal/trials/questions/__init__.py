"""Questions that are known before outcomes are read: effects, means of arms, regressions."""
