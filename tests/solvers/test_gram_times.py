"""Statistics times a number: what it does to sums, weights, ids and files."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import forms
from axes import drawn, every
from fuzz import forge
from pairgram import ElasticNet, Nystroem, Pairgram, Pairs, RandomNodes, RankRLS, make_ranking, scan

PAIRS = ["with_ties", "without_ties", "gain_difference", "label_difference", None]
WEIGHTINGS = ["pairs", "documents", "queries"]
FACTORS = [0.0, 1e-3, 0.3, 0.95, 1.0, 2.5, 1e4]
X, Y, QID = make_ranking(30, (3, 9), 5, random_state=0)
RNG = np.random.default_rng(0)
V = RNG.choice([0.5, 1.0, 2.5], len(Y))
WEIGHT = RNG.choice([0.5, 1.0, 3.0], 30)[QID]


def is_one_list(settings):
    return Pairs.of(settings.get("pairs", "with_ties")).joins_all_rows


def of(rows=slice(None), factor=None, **settings):
    """Statistics of some rows whose queries, or rows of a single list, weigh `factor` more."""
    factor, v, weight = 1.0 if factor is None else factor, V[rows], WEIGHT[rows]
    if is_one_list(settings):
        v, weight = factor * v, None
    else:
        weight = factor * weight
    return Pairgram.from_rows(
        X[rows], Y[rows], qid=QID[rows], sample_weight=v, query_weight=weight, **settings
    )


def numbers(total):
    return np.concatenate([total.G.ravel(), total.g, [total.yy, total.pair_weight]])


def assert_same(found, wanted, rtol=1e-12):
    scale = np.abs(numbers(wanted)).max()
    np.testing.assert_allclose(numbers(found), numbers(wanted), rtol=rtol, atol=rtol * scale)


def state(total):
    """All that the sums hold, the scatter about a mean too."""
    held = total._total
    parts = [held.sums.ravel(), [held.sums_weight, held.n_rows, held.n_queries], total.n_varying]
    if held.mean is not None:
        parts += [[held.mean.weight], held.mean.origin, held.mean.offset]
    return np.concatenate(parts)


ALL_SETTINGS = [
    {"pairs": Pairs(pairs, scope=scope, weighting=weighting)}
    for pairs in PAIRS
    for scope in ("query", "global")
    for weighting in WEIGHTINGS
]
MAPS = [RandomNodes(4, random_state=0), Nystroem(n_components=4, random_state=0)]


@drawn(12, settings=ALL_SETTINGS, feature_map=[None, *MAPS])
def test_a_factor_is_a_weight_of_queries_or_of_the_rows_of_a_single_list(settings, feature_map):
    total = of(feature_map=feature_map, **settings)
    for factor in (1e-3, 0.95, 3, np.float32(2.5), Fraction(1, 3), np.int64(7)):
        wanted = of(factor=float(factor), feature_map=feature_map, **settings)
        for found in (factor * total, total * factor):
            assert type(found) is Pairgram
            assert_same(found, wanted)
            assert (found.n_rows, found.n_queries) == (total.n_rows, total.n_queries)
            np.testing.assert_array_equal(found.n_varying, total.n_varying)
            np.testing.assert_allclose(found.solve(0.7), wanted.solve(0.7), rtol=1e-9)


@drawn(10, weighting=WEIGHTINGS, pairs=PAIRS, feature_map=[None, MAPS[0]])
def test_a_decayed_sum_is_a_fit_with_weights_that_decay(pairs, weighting, feature_map):
    named = {"pairs": Pairs(pairs, weighting=weighting)}
    day, total = QID // 6, None
    for number in range(5):
        rows = day == number
        today = Pairgram.from_rows(
            X[rows], Y[rows], qid=QID[rows], feature_map=feature_map, **named
        )
        total = today if total is None else 0.8 * total + today
    weight = 0.8 ** (4 - day)
    fit = forms.RankRLS(0.5, feature_map=feature_map, form="primal", **named)
    model = fit.fit(X, Y, qid=QID, query_weight=weight)
    found = RankRLS.from_pairgram(total, 0.5)
    scale = np.abs(model.coef_).max()
    np.testing.assert_allclose(found.coef_, model.coef_, rtol=0, atol=2e-12 * scale)
    assert (found.uses_qid_, total.n_rows, total.n_queries) == (True, len(Y), 30)
    if feature_map is None and pairs is not None:
        for name in ("spread", "share"):
            wanted = model.column_weights()[name]
            np.testing.assert_allclose(found.column_weights()[name], wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_decayed_sum_of_one_list_is_a_fit_with_weights_of_rows_that_decay(weighting):
    named = {"pairs": Pairs(scope="global", weighting=weighting)}
    day, total = QID // 6, None
    for number in range(5):
        today = Pairgram.from_rows(X[day == number] + 1e5, Y[day == number], **named)
        total = today if total is None else 0.8 * total + today
    model = forms.RankRLS(0.5, form="primal", **named).fit(
        X + 1e5, Y, sample_weight=0.8 ** (4 - day)
    )
    found = RankRLS.from_pairgram(total, 0.5)
    np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-9)
    spread = model.column_weights()["spread"]
    np.testing.assert_allclose(found.column_weights()["spread"], spread, rtol=1e-9)
    assert total.n_queries == 1
    rest = total - Pairgram.from_rows(X[day == 4] + 1e5, Y[day == 4], **named)
    older = day < 4
    wanted = Pairgram.from_rows(
        X[older] + 1e5, Y[older], sample_weight=0.8 ** (4 - day[older]), **named
    )
    assert_same(rest, wanted, 1e-8)


MERGED = [one for one in ALL_SETTINGS if not is_one_list(one) or one["pairs"] == "with_ties"]


@given(
    st.sampled_from(MERGED),
    st.sampled_from([None, MAPS[0]]),
    st.sampled_from(FACTORS),
    st.sampled_from(FACTORS),
    st.integers(1, 28),
)
def test_laws_of_multiplication(settings, feature_map, a, b, cut):
    named = {"feature_map": feature_map, **settings}
    x, y = of(cut > QID, **named), of(cut <= QID, **named)
    before = state(x)
    assert_same(a * (x + y), a * x + a * y, 1e-10)
    assert_same(a * (b * x), (a * b) * x)
    if not is_one_list(settings):
        assert_same(a * x + b * x * 0 + y, y + a * x)
        np.testing.assert_allclose(numbers(a * x), a * numbers(x), rtol=1e-13)
    np.testing.assert_array_equal(state(1 * x), before)
    np.testing.assert_array_equal(state(x * 1.0), before)
    np.testing.assert_array_equal(state(x), before)  # which nothing has changed


@every(settings=ALL_SETTINGS)
def test_zero_times_statistics_are_those_of_no_query(settings):
    x = of(QID < 9, feature_map=MAPS[0], **settings)
    for nothing in (0 * x, x * 0.0, -0.0 * x, Pairgram.from_bytes((0 * x).to_bytes())):
        assert not numbers(nothing).any() and not np.signbit(nothing._total.sums).any()
        assert (nothing.n_rows, nothing.n_queries, nothing.n_features) == (0, 0, x.n_features)
        assert (nothing.settings, nothing.ids) == (x.settings, "check")
        assert not nothing.n_varying.any()
        if not is_one_list(settings) or settings["pairs"] == "with_ties":
            assert_same(nothing + x, x)
            assert_same(x + nothing, x)
            assert_same(x - nothing, x)
            assert (nothing + x).n_queries == x.n_queries
            rows = QID >= 9
            more = copy.deepcopy(nothing).update(X[rows], Y[rows], qid=QID[rows])
            assert more.n_rows == rows.sum()
    empty = 0.5 * Pairgram(**settings)
    assert empty.update(X, Y, qid=QID).n_rows == len(Y)


def test_days_that_decayed_are_subtracted_with_their_factor():
    days = [of((k <= QID) & (k + 10 > QID)) for k in (0, 10, 20)]
    total = 0.5 * (0.5 * days[0] + days[1]) + days[2]
    rest = total - 0.25 * days[0]
    assert_same(rest, 0.5 * days[1] + days[2])
    assert rest.n_queries == 20
    assert_same(total - (0.5 * days[1] + days[2]), 0.25 * days[0])


def test_zero_times_statistics_have_no_ids():
    part, others = of(QID < 9), of(QID >= 9)
    assert ((0 * part + part) + others).n_queries == 30
    assert (0 * part).update(X[:3], Y[:3], qid=["a", "a", "b"]).n_queries == 2
    assert (0 * of(QID < 9, ids=None)).ids is None


@pytest.mark.parametrize("scope", ["query", "global"])
@pytest.mark.parametrize("feature_map", [None, MAPS[0]], ids=["columns", "nodes"])
def test_statistics_with_factors_travel(scope, feature_map):
    named = {"pairs": Pairs(scope=scope), "feature_map": feature_map}
    total = 0.5 * (0.5 * of(QID < 10, **named) + of((QID >= 10) & (QID < 20), **named))
    total = total + of(QID >= 20, **named)
    sent = Pairgram.from_bytes(total.to_bytes())
    for same in (sent, pickle.loads(pickle.dumps(total)), copy.deepcopy(total), copy.copy(total)):
        np.testing.assert_array_equal(state(same), state(total))
        assert forge.parse(same.to_bytes()).metadata == forge.parse(total.to_bytes()).metadata
        assert_same(same - 0.25 * of(QID < 10, **named), total - 0.25 * of(QID < 10, **named))


def test_updates_enter_with_factor_one():
    frame = pd.DataFrame(X, columns=list("abcde"))
    old, new = QID < 12, QID >= 12
    for rows in (
        {"X": frame[new], "y": Y[new], "qid": QID[new]},
        {"X": scan(frame[new].assign(y=Y[new], q=QID[new]), label="y", qid="q")},
    ):
        total = 0.5 * Pairgram.from_rows(frame[old], Y[old], qid=QID[old])
        total.update(**rows)
        part = Pairgram.from_rows(frame[new], Y[new], qid=QID[new])
        assert_same(total - part, 0.5 * Pairgram.from_rows(frame[old], Y[old], qid=QID[old]), 1e-10)


def test_alphas_follow_the_weight_and_not_the_number_of_rows():
    total = of()
    for factor in (1e-3, 7.0):
        found = factor * total
        np.testing.assert_allclose(found.default_alphas(), factor * total.default_alphas())
        np.testing.assert_allclose(found.path(), total.path(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            found.default_alphas(scale=True), total.default_alphas(scale=True)
        )
        constraints = {
            "constraint": ElasticNet(0.5, positive=True),
        }
        np.testing.assert_allclose(
            found.solve(factor * 3.0, **constraints), total.solve(3.0, **constraints), rtol=1e-7
        )
        prior = np.arange(5.0)
        np.testing.assert_allclose(
            found.solve(factor * 3.0, prior=prior), total.solve(3.0, prior=prior), rtol=1e-10
        )
