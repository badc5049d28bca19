"""Result lists of several systems: `fuse` makes one of them. Weights of systems may be learnt."""
