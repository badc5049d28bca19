"""Kernels of parts in engines: ONNX computes them, and sums of linear ones are weights."""

import numpy as np
import pandas as pd
import pytest

from pairgram import (
    Kernel,
    KernelMap,
    Nystroem,
    Product,
    RankRLS,
    RankSVM,
    Sum,
    export,
    load_model,
)

NAMES = [f"bit {j}" for j in range(6)] + ["a", "b", "c"]
BITS = Kernel("tanimoto", NAMES[:6])
KERNELS = {
    "product": Product(BITS, Kernel("rbf", ["b", "a"], gamma=0.5)),
    "sum": Sum(
        Kernel("linear", ["c"]),
        Kernel("minmax", NAMES[2:8]),
        Product(BITS, Kernel("linear", ["a", "c"]), Kernel("laplacian")),
        weights=[2.0, 0.5, 3.0],
    ),
    "sum in a product": Product(
        Sum(Kernel("polynomial", ["a"], degree=2), Kernel("linear", ["b"]), weights=[0.1, 3.0]),
        BITS,
    ),
    "columns": Kernel("rbf", ["c", "bit 5"]),
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.random((200, 6)) < 0.5, np.round(rng.normal(size=(200, 3)), 2)])
    return pd.DataFrame(X, columns=NAMES).astype(np.float32), np.repeat(np.arange(20), 10)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_onnx_computes_the_parts(name, precision, frame, tmp_path):
    X, qid = frame
    y = (X["a"] * X["bit 1"]).to_numpy() + np.sin(3 * X["b"].to_numpy())
    for model in (
        RankRLS(kernel=KERNELS[name], inputs="maxabs"),
        RankRLS(kernel=KERNELS[name], inputs="quantile"),
        RankRLS(feature_map=KernelMap(KERNELS[name])),
        RankSVM(feature_map=Nystroem(KERNELS[name], n_components=20, random_state=0)),
    ):
        model.fit(X, y, qid=qid).save(tmp_path / "model")
        for one in (model, load_model(tmp_path / "model")):
            parity = export.verify(export.to_onnx(one, precision=precision), one, X, qid)
            assert parity.max_error <= parity.bound
            assert precision == "float32" or parity.max_error <= 1e-5 * parity.spread
            assert parity.n_reordered == 0


def test_a_sum_of_linear_kernels_is_linear_in_every_engine(frame):
    X, qid = frame
    y = X["a"].to_numpy() - 2 * X["c"].to_numpy()
    kernel = Sum(Kernel("linear", ["a", "c"]), Kernel("linear", ["c", "bit 0"]), weights=[1.0, 4.0])
    model = RankRLS(kernel=kernel).fit(X, y, qid=qid)
    for exported in (
        export.to_sql(model),
        export.to_python(model),
        export.to_ltr_plugin(model, "m"),
        export.to_onnx(model),
    ):
        parity = export.verify(exported, model, X, qid)
        assert parity.max_error <= 1e-5 * parity.spread
    model = RankRLS(feature_map=Nystroem(kernel, n_components=20)).fit(X, y, qid=qid)
    assert export.verify(export.to_sql(model), model, X, qid).n_reordered == 0


@pytest.mark.parametrize(
    ("name", "called"),
    [("product", "Product"), ("sum", "minmax"), ("columns", "rbf")],
)
def test_what_an_engine_does_not_have_is_named(name, called, frame):
    X, qid = frame
    model = RankRLS(kernel=KERNELS[name]).fit(X, X["a"], qid=qid)
    with pytest.raises(ValueError, match=f"a model with the {called} kernel: take to_onnx"):
        export.to_sql(model)
    with pytest.raises(ValueError, match=f"linear models, and this has the {called} kernel"):
        export.to_ltr_plugin(model, "m")
    with pytest.raises(ValueError, match=f"has no {called} kernel: take to_onnx"):
        export.to_solr(model, "m")
