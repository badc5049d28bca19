"""What the least-squares rankers share: a feature map or a kernel, in primal or dual form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from pairgram._support.types import Vector
from pairgram._support.words import Form
from pairgram.feature_maps.input_map import parts_of, whole_map
from pairgram.feature_maps.kernel_map import KernelMap
from pairgram.inputs.fitted import FittedInputs
from pairgram.kernels.settings import Kernel, KernelSettings
from pairgram.least_squares.constrained import NO_MAP, Constraints
from pairgram.least_squares.dual_gram import require_memory
from pairgram.least_squares.formulation import Coordinates
from pairgram.problem.data import RankingData
from pairgram.queries_and_pairs.pair_weights import PairSettings
from pairgram.rankers.base import LinearRanker
from pairgram.rankers.table_blocks import BlockReader

__all__ = ["FeaturesOrKernel"]


class FeaturesOrKernel(LinearRanker):
    """A ranker with a feature map or a kernel, in primal or dual form."""

    kernel: Kernel | None
    gamma: Any
    degree: int
    coef0: float
    form: Form
    _takes_path = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def _has_kernel(self) -> bool:
        """Whether the model uses a kernel, and so has dual coefficients only."""
        return callable(self.kernel) or self.kernel not in (None, "linear")

    def _applies_first(self, data: RankingData, feature_map: Any) -> bool:
        return self._has_kernel or super()._applies_first(data, feature_map)

    def _with_map(
        self, data: RankingData, feature_map: Any, inputs: FittedInputs | None = None
    ) -> RankingData:
        """Check that a kernel problem fits in memory before its rows are copied; apply the map."""
        if self._has_kernel:
            precomputed = self.kernel == "precomputed"
            X, n_rows = data.X, len(data.y)
            size = X.data.nbytes + X.indices.nbytes if scipy.sparse.issparse(X) else X.nbytes
            require_memory(
                n_rows,
                self._takes_path,
                None if precomputed else feature_map,
                X.dtype,
                feature_bytes=0.0 if precomputed else float(size),
            )
        return super()._with_map(data, feature_map, inputs)

    def _gammas(self) -> list[float | None]:
        """Return the candidate gammas. `_unfitted_map` uses the first."""
        return [self.gamma]

    @property
    def _no_columns(self) -> str:
        """Why the model has no columns that weights of a prior could belong to."""
        return f"kernel={self.kernel!r}" if self._has_kernel else ""

    def _unfitted_map(self) -> Any:
        kernel: Kernel = "linear" if self.kernel is None else self.kernel
        gammas = self._gammas()
        for gamma in gammas:
            KernelSettings(kernel, gamma, self.degree, self.coef0)  # checks them
        if self.kernel is None:
            return self._features()
        if getattr(self, "feature_map", None) is not None:
            raise ValueError(
                f"give kernel or feature_map, not both: got kernel={self.kernel!r} and "
                f"feature_map={self.feature_map!r}"
            )
        if self.kernel == "linear":
            return None
        return KernelMap(
            self.kernel,
            gamma=gammas[0],
            degree=self.degree,
            coef0=self.coef0,
        )

    def _kept(self, data: RankingData, models: dict[str, Vector]) -> dict[str, Any]:
        """Return the attributes for fitted models and the maps of their rows, by name.

        Weights of a prior are added. The map of a kernel drops rows whose coefficients are 0 in
        every model, such as rows of weight 0 and queries of one row.
        """
        inputs, feature_map = parts_of(whole_map(data))
        prior = self._prior_of(whole_map(data))
        if prior is not None and prior.coef is not None:
            models = {name: model + prior.coef for name, model in models.items()}
            measured = {"_column_sums": None}  # they were those of the difference alone
        else:
            measured = {}
        if self._has_kernel and self.kernel != "precomputed":
            used = np.any(
                [model.reshape(-1, model.shape[-1]).any(axis=0) for model in models.values()],
                axis=0,
            )
            if used.any() and not used.all():
                feature_map = feature_map.of_rows(np.flatnonzero(used))
                models = {name: model[..., used] for name, model in models.items()}
        return {"inputs_": inputs, "feature_map_": feature_map, **models, **measured}

    def _rows_to_score(self, X: Any) -> Any:
        try:
            return super()._rows_to_score(X)
        except ValueError as error:
            if self.kernel == "precomputed" and "is expecting" in str(error):
                raise ValueError(
                    f"{str(error).rstrip('.')}: with kernel='precomputed', the kernels of "
                    f"every row with the {self.n_features_in_} training rows"
                ) from None
            raise

    def _coordinates(
        self,
        data: RankingData,
        all_settings: list[PairSettings],
        scale: bool,
        *,
        path: bool = False,
        small: bool = False,
    ) -> Coordinates:
        """Choose how the problem is solved. A small problem always stays in features."""
        if small:
            return Coordinates.of_features(data, all_settings, small=True)
        constraints = self._constraints()
        if constraints is not None:
            inputs, feature_map = parts_of(data.feature_map)
            if feature_map is not None:
                raise ValueError(NO_MAP)
            n_columns = data.X.shape[1] if inputs is None else inputs.n_features_in_
            constraints.require_columns(n_columns, data.n_features)
            if self.form == "dual":
                raise ValueError(
                    "form must not be 'dual' with positive, l1_ratio or n_nonzero_coefs"
                )
            return Coordinates(data, scale=scale, constraints=constraints)
        return Coordinates.choose(
            data,
            all_settings,
            kernel=self._has_kernel,
            form=self.form,
            scale=scale,
            path=path,
            n_threads=self.n_threads,
        )

    def _table_coordinates(
        self, reader: BlockReader, all_settings: list[PairSettings], scale: bool
    ) -> tuple[BlockReader, Coordinates]:
        """Return the primal coordinates of a table, and the reader of its rows in them."""
        if scale or self._constraints() is not None:
            coordinates = self._coordinates(reader.pattern, all_settings, scale)
        else:
            coordinates = Coordinates.of_features(reader.pattern, all_settings)
        coordinates = coordinates.keeping_statistics()
        return replace(reader, pattern=coordinates.data), coordinates

    def _refuse_dual(self) -> None:
        """Raise a ValueError if a fit to a table would need all rows in memory."""
        if self._has_kernel:
            raise ValueError(
                f"kernel={self.kernel!r} needs all rows in memory, so a table cannot be fitted: "
                "give feature_map=Nystroem(...) or RandomFourier(...) in its place"
            )
        if self.form == "dual":
            raise ValueError("form='dual' needs all rows in memory, so a table cannot be fitted")

    @property
    def _is_batched(self) -> bool:
        """Whether compiled code can fit small problems side by side with others."""
        return not self._has_kernel and self.form == "auto" and self._constraints() is None

    def _constraints(self) -> Constraints | None:
        """Return the checked constraints of the weights, None if there are none."""
        return None

    def _kernel_parameters(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0", "form")
        }

    def _features(self) -> Any:
        """Return the unfitted feature map of a model without a kernel."""
        return self.feature_map
