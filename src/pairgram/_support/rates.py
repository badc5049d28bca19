"""How long kinds of work take: the one table that estimates of time ask."""

from __future__ import annotations

from collections.abc import Mapping

# Seconds on two cores for one of a kind of work. They are measured, and each road and trial asks
# this table. Which road is taken follows from ratios of sums, so it is the same on any
# machine.
SECONDS = {
    "trial": 2e-3,  # what every fit takes
    "inputs": 2e-8,  # a value whose place among the others of its column or list is looked up
    "map": 2e-10,  # a product of a feature map or a kernel
    "gram": 1.5e-11,  # a product in a dense Gram matrix or in a matrix product
    "sparse gram": 5e-9,  # a product of two entries of sparse rows, which lands anywhere in it
    "solution": 1e-11,  # times the cube of the order of a system that is solved for one ridge,
    "square": 5e-8,  # and the square of it
    "eigenvectors": 2e-10,  # times the cube, if it is decomposed for many in the primal form,
    "band": 9e-11,  # in the dual one or for many folds,
    "basis": 2.7e-10,  # and if all eigenvectors are needed
    "held out": 1.2e-9,  # a feature of a row that is held out exactly, at one ridge
    "step": 1e-4,  # a product of conjugate gradients,
    "step entry": 1.4e-9,  # an entry of sparse rows in it,
    "step column": 4e-8,  # and a feature,
    "step value": 6e-10,  # or a number of the right side of products
}


def seconds_of(work: Mapping[str, float]) -> float:
    """Return the seconds that amounts of the kinds of work in `SECONDS` take."""
    seconds = 0.0
    for kind, amount in work.items():
        seconds += SECONDS[kind] * amount
    return seconds
