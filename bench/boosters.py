"""Boosted trees that learn to rank: LightGBM, XGBoost and CatBoost, which need not be installed.

Each function trains on the first part of a fold with several settings, ends each training by the
second part, and returns what predicts by the setting of the best MAP on the second part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import pairgram
from pairgram.datasets import Fold

Predict = Callable[[Any], np.ndarray]

MAX_ROUNDS = 500
PATIENCE = 30
# Small trees with many rows in a leaf: of the grids tried, the one that serves LightGBM best.
LIGHTGBM_SETTINGS: tuple[dict[str, Any], ...] = tuple(
    {"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": 100}
    for leaves in (7, 15)
    for rate in (0.05, 0.1)
)
XGBOOST_SETTINGS: tuple[dict[str, Any], ...] = tuple(
    {"objective": objective, "max_depth": depth, "learning_rate": 0.1}
    for objective in ("rank:ndcg", "rank:map")
    for depth in (3, 6)
)
CATBOOST_SETTINGS: Mapping[str, Any] = {"iterations": 300, "depth": 5}


def random_lightgbm_settings(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return settings of LightGBM, drawn where small collections have their best ones."""
    rng = np.random.default_rng(seed)
    return [
        {
            "num_leaves": int(rng.choice([4, 7, 15, 31])),
            "learning_rate": float(np.exp(rng.uniform(np.log(0.03), np.log(0.2)))),
            "min_data_in_leaf": int(np.exp(rng.uniform(np.log(50), np.log(300)))),
            "feature_fraction": float(rng.uniform(0.5, 1.0)),
            "lambda_l2": float(np.exp(rng.uniform(np.log(1e-3), np.log(10)))),
        }
        for _ in range(n)
    ]


def train_lightgbm(
    fold: Fold, threads: int, settings: Iterable[Mapping[str, Any]] = LIGHTGBM_SETTINGS
) -> Predict:
    """Boost lambdarank with each of some settings until validation NDCG@10 stalls."""
    import lightgbm

    def boost(**own: Any) -> Predict:
        train, valid = (
            lightgbm.Dataset(part.X, part.y, group=_run_lengths(part.qid))
            for part in (fold.train, fold.valid)
        )
        parameters = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "num_threads": threads,
            "seed": 0,
            "deterministic": True,
            "verbosity": -1,
            **own,
        }
        stop = [lightgbm.early_stopping(PATIENCE, verbose=False)]
        return lightgbm.train(
            parameters, train, MAX_ROUNDS, valid_sets=[valid], callbacks=stop
        ).predict

    return _best(fold, (boost(**own) for own in settings))


def train_xgboost(fold: Fold, threads: int) -> Predict:
    """Boost rank:ndcg and rank:map, with two depths, until their validation metric stalls."""
    import xgboost

    def boost(objective: str, **own: Any) -> Predict:
        binary = objective == "rank:map"  # XGBoost has MAP of two grades alone
        model = xgboost.XGBRanker(
            objective=objective,
            n_estimators=MAX_ROUNDS,
            eval_metric="map" if binary else "ndcg@10",
            early_stopping_rounds=PATIENCE,
            random_state=0,
            n_jobs=threads,
            **own,
        )
        (X, y, qid), (X_valid, y_valid, qid_valid) = (
            (part.X, (part.y > 0).astype(float) if binary else part.y, _numbers(part.qid))
            for part in (fold.train, fold.valid)
        )
        model.fit(X, y, qid=qid, eval_set=[(X_valid, y_valid)], eval_qid=[qid_valid], verbose=False)
        return model.predict

    return _best(fold, (boost(**own) for own in XGBOOST_SETTINGS))


def train_catboost(fold: Fold, threads: int) -> Predict:
    """Boost YetiRank; what remains are the trees up to the best validation NDCG@10."""
    import catboost

    train, valid = (
        catboost.Pool(part.X, part.y, group_id=_numbers(part.qid))
        for part in (fold.train, fold.valid)
    )
    model = catboost.CatBoost(
        {
            "loss_function": "YetiRank",
            "eval_metric": "NDCG:top=10",
            "random_seed": 0,
            "thread_count": threads,
            "allow_writing_files": False,
            "verbose": False,
            **CATBOOST_SETTINGS,
        }
    )
    return model.fit(train, eval_set=valid).predict


def _best(fold: Fold, models: Iterable[Predict]) -> Predict:
    """Return the model of the best validation MAP."""
    valid, metric = fold.valid, pairgram.get_metric("map")
    return max(models, key=lambda predict: metric(valid.y, predict(valid.X), valid.qid))


def _numbers(qid: np.ndarray) -> np.ndarray:
    """Return queries as rising integers, in the order of their rows."""
    return np.repeat(np.arange(len(lengths := _run_lengths(qid))), lengths)


def _run_lengths(qid: np.ndarray) -> np.ndarray:
    bounds = np.flatnonzero(qid[1:] != qid[:-1]) + 1
    return np.diff(np.concatenate(([0], bounds, [len(qid)])))
