"""difflab beside its peers: equal work, equal answers, ratios."""
