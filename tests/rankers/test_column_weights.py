"""The table of weights and the contributions of columns, against explicit pairs of rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import forms
import pairgram as pg
from axes import every
from row_value import inputs_of

UNITS = np.array([100.0, 1.0, 0.01, 1.0, 5.0])
X, y, qid = pg.make_ranking(12, (3, 9), 5, random_state=3)
ROWS = X, y, qid = X * UNITS, y, qid


def pairs_of(X, y, qid, omega):
    """Differences of all ordered pairs within queries, and their weights."""
    differences, weights = [], []
    for query in np.unique(qid):
        for i in np.flatnonzero(qid == query):
            for j in np.flatnonzero(qid == query):
                differences.append(X[i] - X[j])
                weights.append(omega(y[i], y[j]))
    return np.array(differences), np.array(weights, dtype=float)


def expected_table(X, y, qid, coef, omega=lambda a, b: 1.0):
    D, W = pairs_of(X, y, qid, omega)
    spread = np.sqrt(0.5 * (W @ D**2) / W.sum())
    f = D @ coef
    share = np.array([W @ (coef[j] * D[:, j] * f) for j in range(X.shape[1])]) / (W @ f**2)
    return spread, share


def check_table(table, model, spread, share, rtol=1e-9):
    order = table["column"]
    np.testing.assert_allclose(table["weight"], model.coef_[order], rtol=1e-12)
    np.testing.assert_allclose(table["spread"], spread[order], rtol=rtol)
    np.testing.assert_allclose(table["share"], share[order], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(table["importance"], abs(table["weight"]) * table["spread"])
    assert (np.diff(table["importance"]) <= 0).all()
    assert table["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    "model",
    [
        pg.RankRLS(0.5),
        pg.RankRLS(0.5, scale=True),
        pg.RankRLSCV([0.1, 1.0]),
        pg.RankRLSCV([0.1], scale=[True, False]),
        forms.RankRLSCV(feature_map=pg.Kernel("linear"), form="primal"),
    ],
    ids=repr,
)
def test_the_table_has_spreads_and_shares_of_the_pairs(model):
    model = model.fit(X, y, qid=qid)
    expected = expected_table(X, y, qid, model.coef_)
    check_table(model.column_weights(), model, *expected)
    shuffled = np.random.default_rng(0).permutation(len(y))
    check_table(model.column_weights(X[shuffled], qid=qid[shuffled]), model, *expected)
    check_table(model.column_weights(sp.csr_array(X), qid=qid), model, *expected)


@pytest.mark.parametrize(
    "model", [pg.RankSVM(0.1), pg.RankSVMCV([0.1, 1.0]), pg.RankRLS(pairs="without_ties")]
)
def test_spreads_are_those_of_the_pairs_that_count(model):
    model = model.fit(X, y, qid=qid)
    expected = expected_table(X, y, qid, model.coef_, lambda a, b: a != b)
    check_table(model.column_weights(), model, *expected)
    check_table(model.column_weights(X, qid=qid), model, *expected_table(X, y, qid, model.coef_))


def test_a_search_measures_its_choice_of_pairs():
    model = pg.RankRLSCV([1.0], pairs=["with_ties", "without_ties"]).fit(X, y, qid=qid)
    alone = pg.RankRLS(model.alpha_, pairs=model.pairs_).fit(X, y, qid=qid)
    np.testing.assert_allclose(
        model.column_weights()["spread"], alone.column_weights()["spread"], rtol=1e-12
    )


def test_the_importance_does_not_depend_on_units():
    ours, plain = (pg.RankRLS(1e-9).fit(A, y, qid=qid).column_weights() for A in (X, X / UNITS))
    assert ours["column"].tolist() == plain["column"].tolist()
    np.testing.assert_allclose(ours["importance"], plain["importance"], rtol=1e-4)
    assert abs(ours["weight"]).argmax() != 0  # a rare unit makes a large weight


def test_a_frame_of_the_table_has_names():
    model = pg.RankRLS().fit(pd.DataFrame(X, columns=list("abcde")), y, qid=qid)
    frame = pd.DataFrame(model.column_weights())
    assert [*frame] == ["column", "name", "weight", "spread", "importance", "share"]
    assert sorted(frame["name"]) == list("abcde")
    assert frame["name"][0] == "abcde"[frame["column"][0]]
    assert pg.RankRLS().fit(X, y, qid=qid).column_weights()["name"][0] == f"x{frame['column'][0]}"


@pytest.mark.parametrize("names", [list("abcde"), None])
def test_columns_and_their_quantiles_have_names(names, tmp_path):
    given = X if names is None else pd.DataFrame(X, columns=names)
    plain = names or ["x0", "x1", "x2", "x3", "x4"]
    both = [*plain, *(f"quantile of {name}" for name in plain)]
    for inputs, expected in ((None, plain), ("quantile", plain), ("raw+quantile", both)):
        model = pg.RankRLS(feature_map=inputs).fit(given, y, qid=qid)
        model.save(tmp_path / "m")
        for known in (model, pg.load_model(tmp_path / "m")):
            assert known.column_names_.tolist() == expected
            parts = pd.DataFrame(known.contributions(given), columns=known.column_names_)
            table = known.column_weights(given, qid=qid)
            made = given if inputs is None else inputs_of(model).transform(given)
            for name, column, weight in zip(
                table["name"], table["column"], table["weight"], strict=True
            ):
                assert name == expected[column]
                np.testing.assert_allclose(parts[name], np.asarray(made)[:, column] * weight)


@pytest.mark.filterwarnings("ignore:no query has two rows with different labels")
def test_a_score_that_does_not_vary_has_shares_of_0():
    table = pg.RankRLS().fit(X, 0 * y, qid=qid).column_weights()
    assert not table["share"].any() and (table["spread"] > 0).all()


def test_models_of_statistics_and_files_know_their_spreads(tmp_path):
    model = pg.RankRLS(0.5).fit(X, y, qid=qid)
    streamed = pg.RankRLS.from_pairgram(pg.Pairgram.from_rows(X, y, qid=qid), 0.5)
    model.save(tmp_path / "m")
    for other in (streamed, pg.load_model(tmp_path / "m")):
        for name, values in model.column_weights().items():
            if values.dtype == float:
                np.testing.assert_allclose(other.column_weights()[name], values, rtol=1e-13)
            else:
                np.testing.assert_array_equal(other.column_weights()[name], values)


def test_a_refit_that_does_not_measure_forgets():
    X, y, qid = ROWS
    X = X / UNITS
    for change in ({"pairs": None}, {"feature_map": pg.Kernel("rbf")}):
        model = pg.RankRLS().fit(X, y, qid=qid)
        assert len(model.column_weights()["spread"]) == 5
        with pytest.raises(ValueError, match=r"weights needs"):
            model.set_params(**change).fit(X, y, qid=qid).column_weights()


def test_models_that_did_not_measure_take_rows():
    for model in (pg.RankRLS(pairs=None), forms.RankRLS(form="dual")):
        model = model.fit(X, y, qid=qid)
        with pytest.raises(ValueError, match=r"needs rows here, column_weights\(X, qid=qid\)"):
            model.column_weights()
        check_table(
            model.column_weights(X, qid=qid),
            model,
            *expected_table(X, y, qid, model.coef_),
            rtol=1e-7,
        )
    nodes = pg.PairwiseELM(n_nodes=4, random_state=0).fit(X, y, qid=qid)
    (small,) = pg.fit_many(pg.RankRLS(), [(X, y, qid)]).models
    wide = sp.diags_array([3.0, -2, 1, 5], offsets=range(4), shape=(4_100, 4_100), format="csr")
    for model, reason in (
        (pg.RankRLS(pairs=None).fit(X, y, qid=qid), "there are no pairs$"),
        (pg.RankRLSCV(pairs=[None]).fit(X, y, qid=qid), "there are no pairs$"),
        (pg.RankRLS(pairs=pg.Pairs(None)).fit(X, y, qid=qid), "there are no pairs$"),
        (forms.RankRLS(form="dual").fit(X, y, qid=qid), "it was solved in the dual form$"),
        (pg.RankRLS(prior=np.ones(5)).fit(X, y, qid=qid), "it starts from a prior$"),
        (nodes, "it has nodes$"),
        (small, "it needed no Gram matrix of all pairs .models of fit_many"),
        (
            pg.RankRLS(1e3).fit(wide, np.arange(4_100) % 7, qid=np.arange(4_100) // 9),
            ".*, wide CSR rows",
        ),
    ):
        with pytest.raises(ValueError, match=f"within queries, because {reason}"):
            model.column_weights()
    table = nodes.column_weights(X, qid=qid)
    folded = nodes.feature_map_.weights_ @ nodes.coef_
    np.testing.assert_allclose(table["weight"], folded[table["column"]], rtol=1e-10)


@every(
    form=["array", "frame", "float32", "csr"],
    model=[
        pg.RankRLS(),
        forms.RankRLSCV(form="dual"),
        pg.RankSVM(),
        pg.PairwiseELMCV(n_nodes=6, random_state=0),
    ],
)
def test_contributions_sum_to_the_score_but_for_a_constant(model, form):
    X, y, qid = ROWS
    X = X / UNITS
    given = {
        "array": X,
        "frame": pd.DataFrame(X, columns=list("abcde")),
        "float32": X.astype(np.float32),
        "csr": sp.csr_array(X),
    }[form]
    model = model.fit(given, y, qid=qid)
    parts = model.contributions(given)
    assert parts.shape == X.shape and parts.dtype == np.float64
    assert sp.issparse(parts) == (form == "csr")
    error = parts.sum(axis=1) - model.predict(given)
    assert np.ptp(error) < (1e-4 if form == "float32" else 1e-12)


def test_weights_that_were_changed_need_rows(tmp_path):
    model = pg.RankRLS().fit(X, y, qid=qid)
    model.coef_ = -model.coef_
    model.save(tmp_path / "model")
    for changed in (model, pg.load_model(tmp_path / "model")):
        with pytest.raises(ValueError, match="needs rows here"):
            changed.column_weights()
        assert changed.column_weights(X, qid=qid)["share"].sum() == pytest.approx(1)
