"""`check` runs no foreign text, and says the truth about scores that are wrong or missing."""

import copy
import json

import numpy as np
import pytest

from axes import every
from pairgram import Fill, RandomNodes, RankRLS, export, make_ranking
from row_value import fill_of
from table_sources import scanned


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, 10, 4, random_state=0)


def test_names_of_a_model_run_no_code(data, tmp_path):
    X, y, qid = data
    target = tmp_path / "made"
    model = RankRLS().fit(X, y, qid=qid)
    call = (
        "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']"
        f"[0].__init__.__globals__['system']('touch {target}')"
    )
    parity = export.verify(export.to_vespa(model, "m", features=["a", "b", "c", "x[0]"]), model, X)
    assert parity.n_reordered == 0
    with pytest.raises(ValueError, match="is no rank feature of Vespa"):
        export.to_vespa(model, "m", features=["a", "b", "c", call])
    assert not target.exists()
    for broken in (f"{call}\nrest", "a\x00", "a\u2028b"):
        with pytest.raises(ValueError, match="line breaks"):
            export.to_vespa(model, "m", features=["a", "b", "c", broken])
    profile = export.to_vespa(model, "m", features=list("abcd"))
    profile.template = call
    with pytest.raises(ValueError, match="changed"):
        export.verify(profile, model, X)


@pytest.mark.parametrize("inputs", [None, "quantile"])
def test_names_that_look_like_parts_of_an_expression(data, inputs):
    X, y, qid = data
    model = RankRLS(feature_map=inputs).fit(X, y, qid=qid)
    for names in (["a", "e", "min", "x1"], ["max", "e0", "x", "min(a, max(x, 0.0))"]):
        parity = export.verify(export.to_vespa(model, "m", features=names), model, X, qid)
        assert parity.max_error <= parity.bound
        assert parity.n_reordered == 0


def test_rows_of_a_table(data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    exported = export.to_solr(model, "m", features=list("abcd"))
    whole = export.verify(exported, model, X, qid)
    cuts = np.array_split(np.arange(len(y)), 7)  # in the middle of queries
    table = scanned(*((X[rows], y[rows], qid[rows]) for rows in cuts))
    assert export.verify(exported, model, table) == whole
    body = copy.deepcopy(exported)
    body["params"]["weights"]["b"] *= -1
    assert export.verify(body, model, table) == export.verify(body, model, X, qid)
    assert export.verify(body, model, table).n_reordered > 20


def test_scores_that_are_not_finite_count_as_wrong(data):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    body = export.to_solr(model, "m", features=list("abcd"))
    for weight in (float("nan"), 1e300):
        body["params"]["weights"]["b"] = weight
        with np.errstate(over="ignore", invalid="ignore"):
            parity = export.verify(body, model, X, qid)
        assert parity.n_reordered == parity.n_queries == 30
        assert parity.max_error == np.inf


def test_reordered_pairs_are_those_of_all_pairs():
    from parts.export import _is_reordered

    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        own = -np.sort(-rng.integers(0, 12, 6).astype(float))
        theirs = own + rng.integers(-3, 4, 6)
        pairs = [(i, j) for i in range(6) for j in range(6) if own[i] - own[j] > 2]
        expected = any(theirs[j] >= theirs[i] for i, j in pairs)
        assert _is_reordered(own, theirs, 2.0) == expected
        found.append(expected)
    assert 10 < sum(found) < 290


def test_many_rows_without_ids():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 4))
    model = RankRLS().fit(X[:500], X[:500, 0])
    body = export.to_solr(model, "m", features=list("abcd"))
    assert export.verify(body, model, X).n_reordered == 0
    body["params"]["weights"]["a"] *= -1
    assert export.verify(body, model, X).n_reordered == 1


def test_a_bound_that_is_not_below_the_spread_is_said(data):
    X, y, qid = data
    for offset, expected in ((0.0, False), (1e9, True)):
        model = RankRLS().fit(X + offset, y, qid=qid)
        parity = export.verify(
            export.to_solr(model, "m", features=list("abcd")), model, X + offset, qid
        )
        assert ("not below the spread" in str(parity)) == expected


WRITERS = [
    export.to_solr,
    export.to_ltr_plugin,
    export.to_vespa,
    lambda m, _, features: export.to_ranklib(m, features=features),
    lambda m, _, features: export.to_onnx(m, features=features),
]


@every(offset=[0.0, 1e9], write=WRITERS)
def test_scores_that_become_equal_do_not_pass(data, write, offset):
    X, y, qid = data
    X = X + offset
    model = RankRLS().fit(X, y, qid=qid)
    exported = write(model, "m", features=list("abcd"))
    parity = export.verify(exported, model, X, qid)
    assert parity.passes == (offset == 0)
    assert ("subtract the offset" in str(parity)) == (offset != 0)
    constant = copy.copy(model)
    constant.coef_ = 0 * model.coef_
    parity = export.verify(write(constant, "m", features=list("abcd")), model, X, qid)
    assert not parity.passes
    assert parity.n_reordered == (0 if offset else parity.n_queries)


def test_rows_of_frames_and_sparse_rows(data):
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    X, y, qid = data
    frame = pandas.DataFrame(X, columns=list("abcd"))
    turned = frame[["d", "c", "b", "a"]]
    by_place = RankRLS().fit(X, y, qid=qid)
    by_name = RankRLS().fit(frame, y, qid=qid)
    for model in (by_place, by_name):
        for features in (list("abcd"), list("stuv")):
            exported = export.to_solr(model, "m", features=features)
            rows = [frame, X, sparse.csr_matrix(X)]
            if model is by_name or features == list("abcd"):
                rows.append(turned)
            for given in rows:
                parity = export.verify(exported, model, given, qid)
                assert parity.max_error <= parity.bound


def with_holes(X, y, qid):
    holes = X + np.array([0, 0, 50, 0])
    holes[::7, 2] = np.nan
    return holes, y, qid


def test_missing_values_of_a_table_count_as_in_the_engine(data):
    holes, y, qid = with_holes(*data)
    parts = (slice(150), slice(150, None))
    table = scanned(*((holes[part], y[part], qid[part]) for part in parts))
    filled = scanned((holes, y, qid))
    model = RankRLS(feature_map=Fill()).fit(filled)
    with pytest.warns(UserWarning, match="default"):
        exported = export.to_solr(model, "m", features=list("abcd"))
    expected = export.verify(exported, model, holes, qid)
    assert expected.n_reordered == 0
    for one in (table, filled):
        assert export.verify(exported, model, one) == expected
    onnx = export.to_onnx(model, features=list("abcd"))  # which fills them itself
    assert export.verify(onnx, model, table).n_reordered == 0


@pytest.mark.parametrize("write", [w for w in WRITERS[:-1] if w is not export.to_vespa])
def test_default_values_that_an_engine_must_be_told(data, write):
    holes, y, qid = with_holes(*data)
    model = RankRLS(feature_map=Fill()).fit(scanned((holes, y, qid)))
    with pytest.warns(UserWarning, match=r"for 4 features: .* engine: 'a': .*'c': 50\.\d"):
        exported = write(model, "m", features=list("abcd"))
    full = ~np.isnan(holes[:, 2])
    assert export.verify(exported, model, holes[full], qid[full]).n_reordered == 0
    parity = export.verify(exported, model, holes, qid)
    assert parity.passes
    assert parity.defaults == {"c": fill_of(model)[2]}  # of the column that has gaps
    assert str(parity).endswith(f"which the engine must have: 'c': {parity.defaults['c']!r}")
    filled = np.where(np.isnan(holes), fill_of(model), holes)
    assert export.verify(exported, model, filled, qid).n_reordered == 0
    model = RankRLS(feature_map=Fill(0)).fit(scanned((holes, y, qid)))
    exported = write(model, "m", features=list("abcd"))
    assert export.verify(exported, model, holes, qid).n_reordered == 0


def test_a_shift_has_a_margin_for_float32(data):
    X, y, qid = data
    X = X - 1000.0
    model = RankRLS(feature_map="standard").fit(X, y, qid=qid)
    lowest = model.predict(X).min()
    body = export.to_ltr_plugin(model, "m", features=list("abcd"), shift="one", lowest=lowest)
    weights = json.loads(body["model"]["model"]["definition"])
    exact = model.predict(np.zeros((1, 4)))[0] - lowest
    assert 5e-7 < weights["one"] / exact - 1 < 1e-5
    scores = np.zeros(len(X), np.float32)
    for name, column in zip("abcd", X.astype(np.float32).T, strict=True):
        scores += np.float32(weights[name]) * column
    scores += np.float32(weights["one"])
    assert 0 <= scores.min() < 1e-2


@every(n=[30, 47, 50, 69, 85, 86, 87], inputs=["quantile", "raw+quantile"])
def test_quantiles_of_tied_values_in_float32(inputs, n):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 3, (n, 2)).astype(float)
    y = rng.integers(0, 3, n) + X[:, 0]
    model = RankRLS(feature_map=inputs).fit(X, y, qid=np.repeat(np.arange(18), 5)[:n])
    for body in (
        export.to_onnx(model, features=["a", "b"]),
        export.to_solr(model, "m", features=["a", "b"]),
    ):
        parity = export.verify(body, model, X)
        assert parity.max_error <= parity.bound < 1e-5


def test_values_that_float32_cannot_tell_apart():
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0, 1 + 1e-9, 2.0], (200, 2))
    y = 2.0 * (X[:, 0] > 1) + rng.normal(0, 0.1, 200)
    model = RankRLS(feature_map="quantile").fit(X, y, qid=np.repeat(np.arange(20), 10))
    names = ["a", "b"]
    for write in (
        lambda: export.to_onnx(model, features=names),
        lambda: export.to_solr(model, "m", features=names),
        lambda: export.to_vespa(model, "m", features=names),
    ):
        with pytest.warns(
            UserWarning, match=r"column 'a' has the knots 1\.0 and 1\.0000000\d+, "
        ) as w:
            body = write()
        assert len(w) == 1
        assert w[0].filename == __file__
        for rows in (X, np.vstack([X, X + 3e-9])):
            parity = export.verify(body, model, rows)
            assert parity.max_error > 0.5 * parity.spread
            assert parity.max_error <= 2 * parity.bound < 10 * parity.spread
    for exact in (
        export.to_python(model, features=names),
        export.to_sql(model, features=names, dialect="sqlite"),
    ):
        assert export.verify(exact, model, X).max_error < 1e-12


def test_scores_of_float32_around_a_level():
    """The labels' level takes the digits of differences; the bound says so."""
    X, y, qid = make_ranking(20, 10, 4, random_state=0)
    model = RankRLS(pairs=None, feature_map=RandomNodes(5, "linear", random_state=0))
    model.fit(X * 1e-9, y + 1, qid=qid)
    parity = export.verify(export.to_onnx(model), model, X * 1e-9, qid)
    assert parity.max_error > 0.01 * parity.spread
    assert parity.max_error <= parity.bound
    assert "shows nothing about the order" in str(parity)
