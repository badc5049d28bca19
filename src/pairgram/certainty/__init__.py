"""How sure a fitted model is, which `posterior` tells. `propose` says what to measure next."""
