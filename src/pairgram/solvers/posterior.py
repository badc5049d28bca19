"""`Posterior`: how sure differences of scores are, given the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg

from pairgram._support.arrays import blocks
from pairgram._support.checks import Flags, Rows, Vector
from pairgram._support.machine import single_threaded_blas

Kind = Literal["exact", "approximate"]

# The names of arrays in model files begin with this.
PREFIX = "posterior_"
# A triangular root is multiplied in at most so many panels of rows, or panels of so many rows.
PANELS, PANEL = 8, 48


@dataclass(frozen=True, eq=False)
class Posterior:
    """Variances of scores: ``noise · ‖A h‖²``, or ``noise · (prior k(h, h) − ‖A h‖²)``.

    Only those of differences mean something. Here h are differences of the features of two rows, or
    with a kernel of their kernel values with the support, and k is their product in the space of
    the ridge.

    Attributes
    ----------
    root : ndarray of shape (n_dimensions, n_coefs)
        A, upper triangular or trapezoidal. Without a prior, ``AᵀA = (G + alpha I)⁻¹``.
    noise : float
        σ², in the unit of the objective.
    prior : float
        1 / alpha where scores have directions that no training row has: with a kernel, or with
        more features than rows. Otherwise 0.
    label_noise : float or None
        The variance of a label of weight 1, and half of that of a margin. None if it is not the
        same in all lists.
    mean : ndarray of shape (n_coefs,), or None
        The weighted mean of h over the training rows that count. None for statistics alone.
    shares : ndarray of shape (n_coefs,), or None
        With a kernel, the shares of the training rows in this mean, of which there is one for each
        coefficient.
    kind : {"exact", "approximate"}
    list_weight : float
        The mean weight of a list, as its labels see it: about ``noise / list_weight`` is the
        variance of a label, also where this differs from list to list.
    """

    root: Vector
    noise: float
    prior: float = 0.0
    label_noise: float | None = None
    mean: Vector | None = None
    shares: Vector | None = None
    kind: Kind = "exact"
    list_weight: float = 1.0

    def __repr__(self) -> str:
        of_labels = "" if self.label_noise is None else f", label_noise={self.label_noise:.4g}"
        size = f"{self.root.shape[1]} coefficients"
        return f"<Posterior of {size}, {self.kind}, noise={self.noise:.4g}{of_labels}>"

    def variances(self, H: Vector, squares: Vector | None = None) -> Vector:
        """Return the variances of differences of scores, (n_rows,).

        Parameters
        ----------
        H : ndarray of shape (n_rows, n_coefs)
            Differences of features, or of kernel values.
        squares : ndarray of shape (n_rows,), or None
            With a kernel, the squared lengths of the differences in its space.
        """
        explained = np.zeros(len(H))
        for _, Z in self._panels(H):
            explained += np.einsum("ij,ij->i", Z, Z)
        if not self.prior:
            return self.noise * explained
        if squares is None:
            squares = np.einsum("ij,ij->i", H, H)
        return self.noise * np.maximum(self.prior * squares - explained, 0.0)

    def draws(self, coef: Vector, n_draws: int, random: Any) -> Vector:
        """Return draws of the coefficients, (n_draws, n_coefs), around those of the model.

        Raises
        ------
        ValueError
            If scores have directions that no coefficient has.
        """
        if self.prior:
            raise ValueError(
                "weights cannot be drawn for a model with a kernel, or with more features than "
                "rows, because its scores also vary in directions that no weight describes: take a "
                "feature_map such as Nystroem or RandomFourier, or form='primal'"
            )
        normal = random.normal(size=(n_draws, len(self.root)))
        with single_threaded_blas:
            return coef + self.noise**0.5 * (normal @ self.root)

    def deviations_of_coefs(self) -> Vector:
        """Return the standard deviations of the coefficients of features, (n_coefs,)."""
        explained = np.einsum("ij,ij->j", self.root, self.root)
        variances = self.prior - explained if self.prior else explained
        return np.sqrt(self.noise * np.maximum(variances, 0.0))

    def rooted(self, H: Vector) -> Vector:
        """Return ``A h`` of rows h, (n_rows, n_dimensions)."""
        found = np.empty((len(H), len(self.root)))
        for part, Z in self._panels(H):
            found[:, part] = Z
        return found

    def _panels(self, H: Vector) -> Iterator[tuple[slice, Vector]]:
        """Yield slices of A's rows, and their products with rows h; what is 0 is not multiplied."""
        width = max(PANEL, len(self.root) // PANELS)
        with single_threaded_blas:
            for part in blocks(len(self.root), width):
                yield part, H[:, part.start :] @ self.root[part, part.start :].T

    def in_file(self) -> tuple[dict[str, Vector], dict[str, Any]]:
        """Return what a model file holds: arrays, whose names have a prefix, and settings."""
        arrays = {"root": self.root, "mean": self.mean, "shares": self.shares}
        kept = {f"{PREFIX}{name}": array for name, array in arrays.items() if array is not None}
        told = ("noise", "prior", "label_noise", "kind", "list_weight")
        return kept, {name: getattr(self, name) for name in told}

    @classmethod
    def of_file(cls, arrays: Mapping[str, Vector], settings: Mapping[str, Any]) -> Posterior:
        """Return what `in_file` described."""
        mean, shares = (arrays.get(f"{PREFIX}{name}") for name in ("mean", "shares"))
        return cls(arrays[f"{PREFIX}root"], mean=mean, shares=shares, **settings)

    def of_columns(self, used: Rows | slice) -> Posterior:
        """Return the same for some of the coefficients; the others have no part in it."""
        mean, shares = (None if one is None else one[used] for one in (self.mean, self.shares))
        return replace(self, root=triangular(self.root[:, used]), mean=mean, shares=shares)

    @property
    def used(self) -> Flags:
        """The coefficients that have a part in it, (n_coefs,)."""
        found = self.root.any(axis=0)
        return np.asarray(found if self.shares is None else found | (self.shares != 0))


def triangular(root: Vector) -> Vector:
    """Return a root of the same matrix with as few rows as it can have."""
    if len(root) <= root.shape[1] and scipy.linalg.bandwidth(root)[0] == 0:
        return np.ascontiguousarray(root)
    with single_threaded_blas:
        (found,) = scipy.linalg.qr(root, mode="r", check_finite=False)
    return np.ascontiguousarray(found[: root.shape[1]])
