"""Validation sets, whose rows searches hold out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from pairgram._support.checks import ArgumentError, Vector, require_finite, verbatim
from pairgram.data.dataset import RankingData, RowInfo, read_labelled
from pairgram.data.streams import Stream
from pairgram.features.feature_map import is_known
from pairgram.features.gaps import filled
from pairgram.features.inputs import prepared_as

if TYPE_CHECKING:
    from pairgram._support.types import BaseEstimator, RowsLike

    Validation = (
        tuple[RowsLike, ArrayLike]
        | tuple[RowsLike, ArrayLike, ArrayLike | None]
        | tuple[RowsLike, ArrayLike, ArrayLike | None, ArrayLike | None]
        | Stream
        | None
    )

# What errors of a validation set call it.
_VALIDATION = ("validation", "X of validation", "y of validation")


def held_rows(
    model: BaseEstimator,
    validation: Validation,
    pattern: RankingData,
    started: Callable[[RowsLike, RankingData], Vector] | None,
    info: RowInfo,
    fill: Vector | None = None,
) -> RankingData:
    """Return the rows of a validation set, with the scores of the prior.

    `pattern` has the inputs and the map of the rows of `fit`. `started` returns the scores of the
    prior, if there is one. `fill` takes the place of missing values, also before the prior.

    Raises
    ------
    ValueError
        If `validation` is not as described.
    """
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3, 4):
        raise ArgumentError(
            "validation",
            f"must be (X, y), (X, y, qid) or (X, y, qid, offset), got {type(validation).__name__}",
        )
    X, y, qid, offset = (*validation, None, None)[:4]
    try:
        if qid is None and info.qid is not None:
            raise ArgumentError("validation", "is (X, y), but fit has query ids: give (X, y, qid)")
        if (offset is None) != (info.offset is None):
            wanted = "an offset: give (X, y, qid, offset)"
            wanted = wanted if offset is None else "no offset: give (X, y) or (X, y, qid)"
            raise ArgumentError("validation", f"must be as the rows of fit, which have {wanted}")
        rows, y = read_labelled(X, y, " of validation", estimator=model)
        rows = filled(rows, fill)
        if pattern.feature_map is None or is_known(pattern.feature_map):
            require_finite(rows, "X of validation")  # maps of other packages may take NaN
        data = RankingData.delimit(rows, y, qid, offset=offset)
        if type(data.judgements) is not type(pattern.judgements):
            wanted = (pattern.judgements and type(pattern.judgements).__name__) or "labels"
            raise ArgumentError("validation", f"must be as the rows of fit, whose y are {wanted}")
        if started is None:
            return data
        return data.plus_offset(started(X if fill is None else rows, prepared_as(data, pattern)))
    except ValueError as error:
        if getattr(error, "parameter", None) in _VALIDATION:
            raise
        raise ArgumentError(
            "validation", f": {verbatim(error)}"
        ) from error  # not X, y and qid of fit
