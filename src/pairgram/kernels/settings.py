"""The named kernels, and the checks of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

from pairgram._support.words import KERNEL_PARAMETERS, KernelName, words

__all__ = ["KERNELS", "Kernel", "KernelSettings"]

Kernel = KernelName | Callable[[Any, Any], Any]
KERNELS = KERNEL_PARAMETERS
# Polynomial kernels have at most this degree.
MAX_DEGREE = 1000


@dataclass(frozen=True)
class KernelSettings:
    """A kernel and its parameters, as described in `kernel_matrix`.

    Raises
    ------
    ValueError
        If a parameter is not as described. The message names it.
    """

    kernel: Kernel = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        known = words(KernelName)
        if not (callable(self.kernel) or (isinstance(self.kernel, str) and self.kernel in known)):
            names = ", ".join(map(repr, known))
            size = isinstance(self.kernel, Integral)
            hint = f"; give a number of landmarks as n_components={self.kernel}" if size else ""
            raise ValueError(
                f"kernel must be one of {names}, or a callable; got {self.kernel!r}{hint}"
            )
        if self.gamma is not None and not (_is_number(self.gamma) and self.gamma > 0):
            raise ValueError(f"gamma must be None or a finite number > 0, got {self.gamma!r}")
        degree = self.degree
        if not (_is_number(degree) and degree == int(degree) and 1 <= degree <= MAX_DEGREE):
            raise ValueError(f"degree must be an integer from 1 to {MAX_DEGREE}, got {degree!r}")
        if not (_is_number(self.coef0) and self.coef0 >= 0):
            raise ValueError(f"coef0 must be a finite number >= 0, got {self.coef0!r}")

    def with_gamma(self, n_features: int) -> float:
        """Return gamma, or ``1 / n_features`` if it is None."""
        return 1.0 / n_features if self.gamma is None else float(self.gamma)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
