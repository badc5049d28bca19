"""`Constraint`: what the weights of a least-squares problem must be like, besides fitting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg
from sklearn.base import BaseEstimator

from pairgram._support.checks import Vector
from pairgram._support.parameters import Setting, check_setting
from pairgram.solvers.ridge_path import default_alphas

NO_MAP = "constraint is about the columns of X: leave it out with nodes or a kernel"
NO_PRIOR = (
    "prior must be None with a constraint, which is about the weights and not their difference "
    "from a prior: give its scores to fit, as offset"
)


class Constraint(ABC, BaseEstimator):  # type: ignore[misc]
    """A value of the parameter `constraint`.

    Attributes
    ----------
    settings : mapping of str to Setting
        What a file holds of the parameters.
    """

    settings: ClassVar[Mapping[str, Setting]]

    def of_columns(self, n_columns: int, n_weights: int, names: Any) -> Self:
        """Return the constraint of these columns, which it knows by their numbers.

        Parameters
        ----------
        n_columns, n_weights : int
            The number of columns of X, and of their weights.
        names : sequence of str or None
            The names of the columns of X.

        Raises
        ------
        ValueError
            If a parameter is not as described; if columns are not there, or need one weight each.
        """
        for name, setting in self.settings.items():
            check_setting(name, getattr(self, name), setting)
        return self

    @abstractmethod
    def solve(self, G: Vector, g: Vector, alphas: Vector) -> Vector:
        """Return the weights that minimise ``wᵀGw − 2 gᵀw`` and the penalty, for every alpha.

        Parameters
        ----------
        G, g : ndarray of shape (n_weights, n_weights) and (n_weights,), float64
        alphas : ndarray of shape (n_alphas,), each ≥ 0

        Returns
        -------
        ndarray of shape (n_alphas, n_weights), float64
        """

    def default_alphas(self, G: Vector, g: Vector, started: bool) -> Vector:
        """Return a descending grid; for `started` see `ridge_path.default_alphas`."""
        largest = scipy.linalg.eigvalsh(G, subset_by_index=[len(g) - 1, len(g) - 1])[0] or 1.0
        return default_alphas(largest, started)

    def in_file(self) -> dict[str, dict[str, Any]]:
        """Return the name of the class with the parameters, as JSON has them."""
        named = self.get_params(deep=False).items()
        values = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in named}
        return {type(self).__name__: values}
