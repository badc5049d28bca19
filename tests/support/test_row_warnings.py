"""Warnings of columns that a kernel hardly sees."""

import contextlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pairgram as pg
from axes import every

X, Y, QID = pg.make_ranking(30, 10, 6, random_state=0)
WIDE = X * [1, 1, 1, 1, 1e5, 1]
NODES = {"n_nodes": 3, "random_state": 0}
SEES = {
    "rbf": pg.RankRLS(feature_map=pg.Kernel("rbf")),
    "laplacian": pg.RankRLS(feature_map=pg.Kernel("laplacian")),
    "polynomial": pg.RankRLS(feature_map=pg.Kernel("polynomial", degree=2)),
    "fourier": pg.RankRLS(feature_map=pg.RandomFourier(3, random_state=0)),
    "nystroem": pg.RankSVM(feature_map=pg.Nystroem(n_components=3, random_state=0)),
    "search": pg.RankSVMCV([1.0], feature_map=pg.Nystroem(n_components=3, random_state=0), cv=2),
    "sigmoid": pg.PairwiseELM(activation="sigmoid", **NODES),
    "sine": pg.PointwiseELM(activation="sine", **NODES),
    "elmrank": pg.ELMRank(**NODES),
}
BLIND = {
    "linear": pg.RankRLS(),
    "linear kernel": pg.RankRLS(feature_map=pg.Kernel("linear")),
    "linear nodes": pg.PairwiseELM(**NODES),
    "elmrank": pg.ELMRank(activation="linear", **NODES),
    "tanimoto": pg.RankRLS(feature_map=pg.Kernel("tanimoto")),
    "linear nystroem": pg.RankRLS(feature_map=pg.Nystroem("linear", n_components=3)),
}


@every(model=SEES.values())
def test_columns_of_other_spread_are_named(model):
    names = [f"col{k}" for k in range(6)]
    message = r"hardly see 5 of 6: the standard deviation is largest in {} \(1.*e\+04\) and small"
    for rows, name in (
        (WIDE, "4"),
        (pd.DataFrame(WIDE, columns=names), "'col4'"),
        (WIDE.astype(np.float32), "4"),
        (sp.csr_array(WIDE), "4"),
    ):
        with pytest.warns(UserWarning, match=message.format(name)) as caught:
            model.fit(rows, Y, qid=QID)
        assert {warning.filename for warning in caught} == {__file__}
    model.fit(X, Y, qid=QID)
    model.fit(WIDE[:19], Y[:19])  # too few rows tell nothing
    with pytest.warns(UserWarning, match="^(of some data sets: )?columns of X") as caught:
        pg.fit_many(model, [(WIDE, Y, QID), (X, Y, QID), (WIDE, Y, QID)])
    assert len(caught) == 1


@pytest.mark.parametrize("model", BLIND.values(), ids=BLIND)
def test_linear_models_are_not_warned_of(model):
    model.fit(np.abs(WIDE), Y, qid=QID)


def test_maps_by_themselves_and_in_a_pipeline():
    for feature_map in (
        pg.RandomNodes(**NODES),
        pg.RandomFourier(3),
        pg.Nystroem(n_components=3),
    ):
        with pytest.warns(UserWarning, match="columns of X differ so much in spread"):
            feature_map.fit(WIDE)
        make_pipeline(StandardScaler(), feature_map).fit(WIDE)
    with pytest.warns(UserWarning, match="the rbf kernel will hardly see"):
        pg.kernel_matrix(WIDE)


def test_known_data_sets():
    for load, warned in (
        (load_iris, False),
        (load_digits, False),
        (load_wine, True),
        (load_breast_cancer, True),
    ):
        rows = load().data
        with pytest.warns(UserWarning, match="spread") if warned else contextlib.nullcontext():
            pg.RandomFourier(3).fit(rows)
        pg.RandomFourier(3).fit(StandardScaler().fit_transform(rows))


def test_rare_bits_and_a_column_that_does_not_vary_are_no_reason():
    rng = np.random.default_rng(0)
    rare = (rng.random((5000, 30)) < 0.001).astype(float)
    rows = np.hstack([rare, rng.normal(size=(5000, 5)), np.full((5000, 4), 1e9)])
    pg.RandomFourier(3).fit(rows)
    pg.RandomFourier(3).fit(sp.csr_array(rare))
    pg.RandomFourier(3).fit(np.zeros((50, 3)))
