"""Model files: refused, or models that predict, and predict the same when they are saved again."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from pairgram import BatchFit, RankRLS, fit_many, load_model, save_model

from .. import fitted
from ..forge import parse
from ..mutated_files import predicted
from .descriptions import AS_IT_IS, described, file_of

FOLDER = tempfile.TemporaryDirectory()
PATH = Path(FOLDER.name) / "f"
MOST_COLUMNS = 5000  # of rows that are predicted


def seeds() -> Iterator[bytes]:
    """Yield a description of a model of every kind, and the first as a file."""
    X, y, qid = fitted.rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [make()[0] for _, make in fitted.models()]
        for steps in ([StandardScaler()], [RobustScaler(), MinMaxScaler(clip=True)]):
            models.append(make_pipeline(*steps, RankRLS()).fit(X, y))
        models.append(
            make_pipeline(ColumnTransformer([("c", OneHotEncoder(), [0, 2])]), RankRLS()).fit(
                np.round(X), y
            )
        )
    models.append(fit_many(RankRLS(), [(X, y, qid), (X[:9], y[:9], qid[:9])]))
    for number, model in enumerate(models):
        _save(model)
        if not number:
            yield AS_IT_IS + PATH.read_bytes()
        yield described(PATH.read_bytes())


def check(data: bytes) -> None:
    """Raise unless a file is refused by name, or the model in it works and comes back."""
    PATH.write_bytes(file_of(data))
    load = BatchFit.load if data.startswith(b"BatchFit\n") else load_model
    try:
        model = load(PATH)
    except ValueError as error:
        assert str(error).startswith(f"{PATH}: "), error
        return
    scores = _scores(model)
    _save(model)
    whole = PATH.read_bytes()
    again = load(PATH)
    for found, expected in zip(_scores(again), scores, strict=True):
        assert found is expected or np.array_equal(found, expected, equal_nan=True), "other scores"
    _save(again)
    assert parse(PATH.read_bytes()) == parse(whole)


def _save(model: Any) -> None:
    save_model(model, PATH) if isinstance(model, Pipeline) else model.save(PATH)


def _scores(model: Any) -> list[Any]:
    """Return what a model, or each of some, predicts for rows of its width; None if it refuses."""
    repr(model)
    if isinstance(model, BatchFit):
        return [scores for each in model.models[:3] if each is not None for scores in _scores(each)]
    X = fitted.rows()[0]
    if not isinstance(model, Pipeline):
        predicted(model, X)
    width = getattr(model, "n_features_in_", X.shape[1])
    try:
        with np.errstate(all="ignore"):
            return [model.predict(np.resize(X, (4, width)))] if width <= MOST_COLUMNS else []
    except ValueError:
        return [None]
