"""Exported models on the test parts of OHSUMED and MQ2008: no order changes that float32 allows."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from pairgram import (
    ELMRank,
    Kernel,
    Nystroem,
    RandomFourier,
    RandomNodes,
    RankRLS,
    RankRLSCV,
    Standard,
    export,
    load_letor,
)

MODELS = {
    "linear": lambda: RankRLSCV(),
    "standard": lambda: RankRLS(feature_map="standard"),
    "quantile": lambda: RankRLS(feature_map="quantile"),
    "raw+quantile": lambda: RankRLS(feature_map="raw+quantile"),
    "sigmoid": lambda: RankRLS(
        feature_map=make_pipeline(Standard(), RandomNodes(200, random_state=0))
    ),
    "elm": lambda: ELMRank(n_nodes=50, n_estimators=2, random_state=0),
    "fourier": lambda: RankRLS(feature_map=RandomFourier(200, random_state=0)),
    "nystroem": lambda: RankRLS(feature_map=Nystroem(n_components=200, random_state=0)),
    "rbf": lambda: RankRLS(feature_map=Kernel("rbf")),
}
LINEAR, COLUMNS = ("linear", "standard"), ("quantile", "raw+quantile")


@pytest.fixture(scope="module", params=["OHSUMED", "MQ2008"])
def parts(request, benchmark_data):
    folder = benchmark_data / request.param
    return [load_letor(folder / f"S{number}.txt.xz") for number in (1, 5)]


@pytest.mark.parametrize("name", MODELS)
def test_parity(parts, name):
    (X, y, qid), (X_test, _, qid_test) = parts
    rows = slice(500) if name == "rbf" else slice(None)
    model = MODELS[name]().fit(X[rows], y[rows], qid=qid[rows])
    names = [f"f{number}" for number in range(1, X.shape[1] + 1)]
    n_rows = 30 if name in COLUMNS else 200  # long expressions take Python milliseconds a row
    X_test, qid_test = X_test[:n_rows], qid_test[:n_rows]
    exported = [export.to_onnx(model, features=names)]
    if name in LINEAR + COLUMNS:
        exported += [
            export.to_vespa(model, "m", features=names),
            export.to_sql(model, features=names, dialect="sqlite"),
            export.to_python(model, features=names),
        ]
    if name in LINEAR:
        exported += [
            export.to_ltr_plugin(model, "m", features=names),
            export.to_ranklib(model, features=names),
        ]
    if name in (*LINEAR, "sigmoid", "elm"):
        exported.append(export.to_solr(model, "m", features=names))
    for one in exported:
        parity = export.verify(one, model, X_test, qid_test)
        assert parity.n_reordered == 0, (type(one), str(parity))
        assert parity.max_error <= parity.bound, (type(one), str(parity))
        if name in LINEAR:  # of the range of the scores, in float32
            assert parity.max_error <= 1e-6 * np.ptp(model.predict(X_test)), (
                type(one),
                str(parity),
            )
        assert parity.max_error <= 1e-3 * parity.spread, (type(one), str(parity))
        assert np.isfinite(parity.bound)
