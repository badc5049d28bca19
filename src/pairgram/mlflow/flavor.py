"""`save_model`, `log_model` and `load_model`: the flavor of MLflow, whose files hold no code."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

import pairgram
from pairgram._support.arrays import require_columns

try:
    import mlflow
    import mlflow.pyfunc
    from mlflow.models import Model, infer_signature
except ImportError as error:
    message = "pairgram.mlflow needs MLflow: pip install 'pairgram[mlflow]'"
    raise ImportError(message) from error

FLAVOR_NAME = "pairgram"
FILE = "model.safetensors"


def save_model(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    mlflow_model: Model | None = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    conda_env: Any = None,
    **options: Any,
) -> None:
    """Write a fitted ranker, or a pipeline, to a folder as a model of MLflow.

    Parameters
    ----------
    model : ranker or sklearn.pipeline.Pipeline
        What `pairgram.save_model` takes.
    path : str or path-like
        A folder that does not exist yet, or is empty.
    mlflow_model : mlflow.models.Model or None, default=None
        The MLflow model to which the flavors are added. None makes a new one.
    signature : mlflow.models.ModelSignature or None, default=None
        None infers it from the input example, if there is one.
    input_example : data frame or ndarray, or None, default=None
        Some rows.
    pip_requirements : list of str, path, or None, default=None
        None takes the versions of pairgram and scikit-learn that are installed.
    conda_env : dict, path, or None, default=None
        As in ``mlflow.pyfunc.save_model``.
    **options
        Other arguments of ``mlflow.pyfunc.save_model``, such as `extra_pip_requirements`,
        `code_paths` and `metadata`.

    Raises
    ------
    TypeError, ValueError
        As in `pairgram.save_model`.

    Examples
    --------
    >>> import mlflow
    >>> import pairgram.mlflow
    >>> X, y, qid = pairgram.make_ranking(random_state=0)
    >>> model = pairgram.RankRLSCV().fit(X, y, qid=qid)
    >>> pairgram.mlflow.save_model(model, "kept", input_example=X[:5])
    >>> loaded = pairgram.mlflow.load_model("kept")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    >>> mlflow.pyfunc.load_model("kept").predict(X).shape
    (2000,)
    """
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, FILE)
        pairgram.save_model(model, file)
        if signature is None and input_example is not None:
            signature = infer_signature(input_example, _Scores(model).predict(input_example))
        if pip_requirements is None and conda_env is None:
            pip_requirements = [
                f"pairgram{'[skops]' * hasattr(model, 'steps')}=={pairgram.__version__}",
                f"scikit-learn=={sklearn.__version__}",
            ]
        mlflow_model = Model() if mlflow_model is None else mlflow_model
        mlflow_model.add_flavor(
            FLAVOR_NAME, data=f"data/{FILE}", pairgram_version=pairgram.__version__
        )
        mlflow.pyfunc.save_model(
            os.fspath(path),
            loader_module=__package__,
            data_path=file,
            mlflow_model=mlflow_model,
            signature=signature,
            input_example=input_example,
            pip_requirements=pip_requirements,
            conda_env=conda_env,
            **options,
        )


def log_model(model: BaseEstimator, name: str = "model", **options: Any) -> Any:
    """Log a fitted ranker, or a pipeline, to the current run of MLflow.

    Parameters
    ----------
    model : ranker or sklearn.pipeline.Pipeline
    name : str, default="model"
    **options
        The arguments of `save_model`, and those of ``mlflow.models.Model.log``, such as
        `registered_model_name`, `params` and `tags`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what `load_model` and ``mlflow.pyfunc.load_model`` read.

    Raises
    ------
    TypeError, ValueError
        As in `save_model`.
    """
    flavor = sys.modules[__package__]
    return Model.log(artifact_path=None, flavor=flavor, name=name, model=model, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Read a model that `save_model` or `log_model` wrote. This runs no code from the file.

    Parameters
    ----------
    model_uri : str
        As in MLflow: a folder, ``runs:/…`` or ``models:/…``.
    dst_path : str or None, default=None
        An existing folder to which MLflow downloads the model. None makes a temporary one.

    Returns
    -------
    ranker or sklearn.pipeline.Pipeline
        A search comes back as the model that it chose.

    Raises
    ------
    ValueError
        If the model is of another flavor, or if `pairgram.load_model` refuses its file.
    """
    folder = mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri), dst_path=dst_path)
    flavors = Model.load(folder).flavors
    if FLAVOR_NAME not in flavors:
        raise ValueError(f"model_uri has the flavors {', '.join(flavors)}, and not {FLAVOR_NAME}")
    return pairgram.load_model(os.path.join(folder, flavors[FLAVOR_NAME]["data"]))


def _load_pyfunc(path: str) -> _Scores:
    """Return what ``mlflow.pyfunc.load_model`` wraps."""
    return _Scores(pairgram.load_model(path))


class _Scores:
    """What MLflow calls: it scores arrays, and the columns of frames that the model knows."""

    def __init__(self, model: BaseEstimator) -> None:
        self._model = model

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> Any:
        """Return the scores of rows, (n_rows,)."""
        import pandas

        if isinstance(rows, dict):
            rows = pandas.DataFrame(rows)
        if not isinstance(rows, pandas.DataFrame):
            return self._model.predict(rows)
        names = _names_of(self._model)
        if names is None:
            return self._model.predict(rows.to_numpy())
        lists = {name: name.rpartition("[")[0] for name in {*names}.difference(rows.columns)}
        found = (lists[name] if lists.get(name) in rows.columns else name for name in names)
        columns = list(dict.fromkeys(found))
        require_columns(columns, [*rows.columns], "rows")
        return self._model.predict(rows[columns])


def _names_of(model: BaseEstimator) -> Any:
    """Return the names of the columns that a model was fitted to, or None."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    first = next(step for step in steps if step not in (None, "passthrough"))
    return getattr(first, "feature_names_in_", None)
