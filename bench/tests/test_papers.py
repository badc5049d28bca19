"""The runs of the papers' tables: their own models, the data they make, and their tables."""

import sys
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold

import pairgram


def test_comparison(script):
    ours = {"a": np.array([[1.0, 0.5], [2.0, 0.5]]), "b": np.array([[3.0, 4.0]])}
    ours["c"] = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    paper = {"a": (1.25, 0.75), "b": (3.0, np.nan), "c": ((5.0, 0.1), (2.0, 0.25))}
    text = script("shared").comparison(paper, ours, ("x", "y"), spread=True, decimals=2)
    head, _, first, second = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()
    )
    assert head[1:4] == ["a: paper", "a: ours", "a: difference"]
    assert first[:7] == ["x", "1.25", "1.50 ± 0.71", "+0.25", "3.00", "3.00", "+0.00"]
    assert second[:7] == ["y", "0.75", "0.50 ± 0.00", "-0.25", "", "4.00", ""]
    assert first[7:] == ["5.00 ± 0.10", "", ""]
    assert second[7:] == ["2.00 ± 0.25", "1.50 ± 0.71", "-0.50"]
    rest = script("shared").comparison(paper, ours, ("x", "y"), decimals=2, difference=False)
    cells = [cell.strip() for cell in rest.splitlines()[-1].split("|")[1:-1]]
    assert cells == ["y", "0.75", "0.50", "", "4.00", "2.00 ± 0.25", "1.50"]


@pytest.fixture
def fold():
    parts = []
    for seed, n_queries in enumerate((30, 10, 10)):
        X, y, qid = pairgram.make_ranking(n_queries, (5, 15), 6, random_state=0, noise=0.5)
        parts.append(pairgram.datasets.LetorData(X, y, qid + 1000 * seed))
    return pairgram.datasets.Fold("Fold1", *parts)


def test_regression_has_an_intercept_and_no_ridge(script, fold):
    X, y, _ = fold.train
    A = np.column_stack([np.ones(len(X)), X])
    weights = np.linalg.solve(A.T @ A, A.T @ y)[1:]
    scores = script("zong_huang").train_regression(fold)(fold.test.X)
    np.testing.assert_allclose(scores, fold.test.X @ weights, rtol=1e-9)


def test_columns_of_zong_and_huang(script, fold, monkeypatch):
    zong_huang = script("zong_huang")
    monkeypatch.setattr(zong_huang, "stopwatch", lambda train: (2.0, train()))
    ways = zong_huang.trainers()
    assert all(set(ways) == set(columns) for columns in zong_huang.PAPER.values())
    assert all(
        len(cells) == len(zong_huang.ROWS[name])
        for name, columns in zong_huang.PAPER.items()
        for cells in columns.values()
    )
    for name, way in ways.items():
        rows, time = zong_huang.measure([fold] * 5, way, 2)
        assert rows.shape == (2, len(zong_huang.ROWS["OHSUMED"])) and time == 10
        np.testing.assert_allclose(rows[:, 5], rows[:, :5].mean(axis=1), rtol=1e-12)
        assert (rows[0] != rows[1]).any() == name.endswith("nodes")
    X, y, qid = fold.train
    theirs = zong_huang.train_at_their_C(fold, 0, column=zong_huang.PAIR_KERNEL)(X)
    expected = pairgram.RankRLS(2.0**20, pairs="with_ties").fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(theirs, expected, rtol=1e-9)
    assert "| Fold1 | 2^" in zong_huang.chosen_Cs([fold] * 5)


def test_whole_run_of_zong_and_huang(script, fold, tmp_path, monkeypatch, capsys):
    """The paper's cells stand alone where there are no files; times are of made data."""
    zong_huang = script("zong_huang")
    monkeypatch.setattr(zong_huang, "SHAPES", {"TD2003": (300, 10, 5), "TD2004": (400, 10, 6)})
    monkeypatch.setattr(zong_huang, "stopwatch", lambda train: (2.0, train()))
    monkeypatch.setattr(zong_huang, "figure_2", lambda *_: "")
    loaded = []
    monkeypatch.setattr(
        pairgram, "load_letor_folds", lambda folder: loaded.append(folder.name) or [fold] * 5
    )
    (tmp_path / "TD2004").mkdir()
    arguments = ["zong_huang.py", "--data", str(tmp_path), "--seeds", "1", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    zong_huang.main()
    assert loaded == ["TD2004", "OHSUMED"]
    text = capsys.readouterr().out
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    (at,) = (i for i, cells in enumerate(lines) if "TD2004: 400 rows in 10 queries × 6" in cells)
    assert [cells[0] for cells in lines[at + 2 : at + 6]] == [
        "pointwise nodes",
        "pointwise kernel",
        "pairwise nodes",
        "pairwise kernel",
    ]
    assert all(cells[1:] == [zong_huang.seconds(2.0)] * 2 for cells in lines[at + 2 : at + 6])
    # RankSVM and the pairwise columns: paper, ours, difference
    found = [cells for cells in lines if cells[:1] == ["MAP F2"] and len(cells) == 10]
    td2003, td2004, ohsumed = found
    assert td2003 == ["MAP F2", "0.2576", "", "", "0.2965", "", "", "0.3138", "", ""]
    assert td2004[1] == "0.2091" and td2004[7] == td2004[9] == "" and all(ohsumed)
    assert td2004[2::3] == ohsumed[2::3]  # of the same made fold
    cuts = [cells[0] for cells in lines if cells[:1] and "@10" in cells[0]]
    assert cuts == ["P@10 mean"] * 6 + ["NDCG@10 mean"] * 4


def test_figure_2(script, fold, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    zong_huang = script("zong_huang")
    monkeypatch.setattr(zong_huang, "NODES", (3, 8))
    text = zong_huang.figure_2(fold, tmp_path / "new")
    assert (tmp_path / "new" / "zong_huang_figure_2.png").stat().st_size > 1000
    assert "zong_huang_figure_2.png" in capsys.readouterr().out
    model = pairgram.PairwiseELMCV(
        zong_huang.CS, scoring=zong_huang.MAP, n_nodes=8, random_state=0
    ).fit(fold.train.X, fold.train.y, qid=fold.train.qid, validation=fold.valid)
    cells = [cell.strip() for cell in text.splitlines()[-1].split("|")[1:-1]]
    assert cells[4:6] == [f"2^{np.log2(model.C_):.0f}", f"{model.best_score_:.4f}"]


@pytest.mark.parametrize("name", ["MPRank", "LSSVR", "RankRLS"])
def test_kernel_models_are_chosen_by_held_out_rows(script, name):
    chen = script("chen_elmrank")
    rng = np.random.default_rng(1)
    X = rng.random((40, 3))
    y = np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=40)
    folds = KFold(4, shuffle=True, random_state=0)
    model = chen.choose_kernel_model(name, X, y, folds)
    settings, scoring = chen.KERNEL_MODELS[name]
    assert model.feature_map.kernel == "rbf"
    assert model.get_params().items() >= settings.items()
    metric = pairgram.get_metric(scoring)
    means = {}
    for gamma in chen.GAMMAS:
        path = pairgram.RankRLSCV(
            feature_map=pairgram.Kernel("rbf", gamma=gamma), cv=folds, **settings
        ).fit(X, y)
        for alpha in path.alphas_[::4]:
            rest = pairgram.RankRLS(
                alpha, feature_map=pairgram.Kernel("rbf", gamma=gamma), **settings
            )
            parts = [
                metric(y[test], rest.fit(X[train], y[train]).predict(X[test]))
                for train, test in folds.split(X)
            ]
            means[gamma, alpha] = np.mean(parts)
    rest = clone(model)
    own = np.mean(
        [
            metric(y[test], rest.fit(X[train], y[train]).predict(X[test]))
            for train, test in folds.split(X)
        ]
    )
    sign = 1 if metric.greater_is_better else -1
    assert all(sign * own >= sign * mean - 1e-9 for mean in means.values())


@pytest.mark.parametrize("name", ["MPRank", "LSSVR"])
def test_the_presets_solve_the_systems_of_their_papers(script, name):
    """MPRank minimises over all ordered pairs, and LSSVR has a bias without a ridge."""
    settings, _ = script("chen_elmrank").KERNEL_MODELS[name]
    rng = np.random.default_rng(0)
    X, y, C, n = rng.normal(size=(30, 3)), rng.normal(size=30), 0.7, 30
    K = pairgram.kernel_matrix(X, kernel="rbf")
    if name == "LSSVR":
        system = np.zeros((n + 1, n + 1))
        system[0, 1:] = system[1:, 0] = 1
        system[1:, 1:] = K + np.eye(n) / C
        alpha, wanted = 1 / C, K @ np.linalg.solve(system, np.append(0.0, y))[1:]
    else:
        i, j = (part.ravel() for part in np.indices((n, n)))
        H = np.linalg.cholesky(K)
        D, d = H[i] - H[j], y[i] - y[j]
        alpha, wanted = 1 / (2 * C), H @ np.linalg.solve(C * D.T @ D + np.eye(n), C * D.T @ d)
    found = (
        pairgram.RankRLS(alpha, feature_map=pairgram.Kernel("rbf"), **settings).fit(X, y).predict(X)
    )
    np.testing.assert_allclose(found - found.mean(), wanted - wanted.mean(), atol=1e-9)


def test_qsar_tables(script, tmp_path):
    (tmp_path / "qsar").mkdir()
    head = '\t"Activity"\t"Structure Name"\t"set"\t"Order"\t"d1"\t"d2"'
    lines = [
        '"1"\t5.5\t"a"\t1\t9\t-2\t7',
        '"2"\t6.5\t"b"\t2\t9\t2\t7',
        '"3"\tNA\t"c"\t3\t9\t50\t8',
        '"4"\t4.5\t"d"\t1\t9\t0\t7',
    ]
    (tmp_path / "qsar" / "cox2_25d_desc.txt").write_text("\n".join([head, *lines, ""]))
    data = script("qsar").load_qsar(tmp_path, "COX2")
    assert data.X_train.tolist() == [[0, 0], [0.5, 0]] and data.y_train.tolist() == [5.5, 4.5]
    assert data.X_test.tolist() == [[1, 0]] and data.y_test.tolist() == [6.5]


def test_qsar_data(script, benchmark_data):
    sizes = {"DHFR": (237, 124, 70), "COX2": (188, 94, 74)}
    for name, (n_train, n_test, n_descriptors) in sizes.items():
        data = script("qsar").load_qsar(benchmark_data, name)
        assert data.X_train.shape == (n_train, n_descriptors)
        assert data.X_test.shape == (n_test, n_descriptors)


@pytest.fixture
def ratings(tmp_path):
    """Write ratings of 60 reviewers of 100 items as both data sets have them."""
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.integers(low, low + 20, 15) for low in (20, 40, 60, 80)])
    taste = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 100))
    stars = np.clip(np.rint(3 + taste + 0.3 * rng.normal(size=taste.shape)), 1, 5)
    rated = np.zeros((60, 100), dtype=bool)
    for row, n in zip(rated, counts, strict=True):
        row[rng.choice(100, n, replace=False)] = True
    lines = [f"{u + 7}::{m * 3}::{stars[u, m]:.0f}::9" for u, m in np.argwhere(rated)]
    movielens = tmp_path / "ratings.dat"
    movielens.write_text("\n".join(lines) + "\n")
    jokes = np.where(rated, 4 * (stars - 3) + 0.5, 99)
    files = [tmp_path / "jester-data-1.csv", tmp_path / "jester-data-2.csv"]
    for path, rows in zip(files, np.split(np.column_stack([counts, jokes]), 2), strict=True):
        np.savetxt(path, rows, delimiter=",", fmt="%g")
    return movielens, files, np.where(rated, stars, np.nan)


def test_rating_files(script, ratings):
    movielens, jester, stars = ratings
    recommendation = script("recommendation")
    found = recommendation.load_movielens(movielens)
    np.testing.assert_array_equal(found.table, stars)
    assert (found.low, found.high) == (1, 5)
    np.testing.assert_array_equal(recommendation.load_jester(jester).table, 4 * (stars - 3) + 0.5)
    movielens.write_text("1::2::3\n")
    with pytest.raises(ValueError, match=r"ratings\.dat: want lines such as"):
        recommendation.load_movielens(movielens)


def test_problems_of_reviewers(script, ratings):
    recommendation = script("recommendation")
    given = recommendation.load_movielens(ratings[0])
    counts = np.isfinite(given.table).sum(axis=1)
    tested = np.flatnonzero(counts >= 50)
    group = np.flatnonzero((counts >= 40) & (counts < 60))
    scaled = (given.table - 1) / 4
    medians = np.nanmedian(scaled, axis=1)
    made = list(
        recommendation.problems(
            given, (40, 60), np.random.default_rng(3), n_reviewers=len(tested), n_references=14
        )
    )
    owners = []
    for X_train, y_train, X_test, y_test in made:
        X, y = np.vstack([X_train, X_test]), np.concatenate([y_train, y_test])
        assert 0 <= len(y_test) - len(y_train) <= 1 and X.shape == (len(y), 14)
        (owner,) = (
            u
            for u in tested
            if counts[u] == len(y)
            and sorted(given.table[u][np.isfinite(given.table[u])]) == sorted(y)
            and u not in owners
        )
        owners.append(owner)
        # a column is one reference's ratings of the items, his median where he has none
        filled = np.where(np.isfinite(scaled[group]), scaled[group], medians[group][:, None])
        items = np.flatnonzero(np.isfinite(given.table[owner]))
        columns = {
            tuple(sorted(row)) for u, row in zip(group, filled[:, items], strict=True) if u != owner
        }
        assert columns.issuperset(tuple(sorted(column)) for column in X.astype(np.float32).T)
    assert sorted(owners) == tested.tolist()
    for name in ("n_reviewers", "n_references"):
        with pytest.raises(ValueError, match=r"found \d+ reviewers with .* want 300"):
            next(
                recommendation.problems(
                    given,
                    (40, 60),
                    np.random.default_rng(0),
                    **{"n_reviewers": 5, "n_references": 5, name: 300 - (name == "n_references")},
                )
            )


@pytest.fixture
def few_settings(script, monkeypatch):
    """Return the run of ELMRank's tables, with grids at whose ends all solvers converge."""
    chen = script("chen_elmrank")
    for name in ("RankSVM", "SVRank"):
        model, _, scoring = chen.COMPARATORS[name]
        grid = {"C": [100.0], "gamma": [0.01, 0.1]}
        monkeypatch.setitem(chen.COMPARATORS, name, (model, grid, scoring))
    model, _, scoring = chen.COMPARATORS["RankBoost"]
    monkeypatch.setitem(chen.COMPARATORS, "RankBoost", (model, {"n_rounds": [5, 20]}, scoring))
    return chen


@pytest.fixture
def books(tmp_path):
    """Write Book-Crossing's file: twelve who have rated many books, and what must be left out."""
    rng = np.random.default_rng(1)
    lines = []
    for reviewer in range(12):
        shared = rng.choice(20, 16, replace=False)  # the rest are books that he alone has read
        many = [f"ISBN{k:04}" for k in shared] + [f"alone {reviewer}-{k}" for k in range(184)]
        lines += [(reviewer, book, int(rng.integers(1, 11))) for book in many]
    lines += [(1, "ISBN9999", 0), (99, "ISBN0000", 7)]  # no rating; a reviewer of one book
    lines += [(100, f"ISBN{k:04}", 5) for k in range(20)] + [(100, f"b{k}", 5) for k in range(179)]
    lines = [lines[i] for i in rng.permutation(len(lines))]
    path = tmp_path / "BX-Book-Ratings.csv"
    text = "".join(f'"{who}";"{what}";"{rating}"\n' for who, what, rating in lines)
    path.write_bytes(('"User-ID";"ISBN";"Book-Rating"\n' + text).encode("latin-1"))
    counts = Counter(what for who, what, rating in lines if who < 12 and rating)
    kept = sorted(what for what, n in counts.items() if n >= 10)
    given = {(who, what): rating for who, what, rating in lines}
    # the reviewers' names are sorted as text
    names = sorted(range(12), key=str)
    return path, np.array([[given.get((who, what), np.nan) for what in kept] for who in names])


def test_book_file(script, books):
    recommendation = script("recommendation")
    path, table = books
    found = recommendation.load_books(path)
    assert 0 < table.shape[1] < 20
    np.testing.assert_array_equal(found.table, table)
    assert (found.low, found.high) == (1, 10)
    text = path.read_text()
    path.write_text(text + '"3";"x"\n')
    n_lines = text.count("\n") + 1
    with pytest.raises(ValueError, match=rf'csv, line {n_lines}: want "276725"'):
        recommendation.load_books(path)
    path.write_text('"User-ID";"ISBN";"Book-Rating"\n"3";"x";"7"\n')
    with pytest.raises(ValueError, match=r"no book with 10 ratings by reviewers .* 200 books"):
        recommendation.load_books(path)
    path.write_text('"User-ID";"ISBN";"Book-Rating"\n"3";"x";"0"\n')
    with pytest.raises(ValueError, match="found no ratings"):
        recommendation.load_books(path)


def test_problems_that_leave_one_reviewer_out(script):
    recommendation = script("recommendation")
    rng = np.random.default_rng(0)
    table = np.where(rng.random((9, 14)) < 0.7, rng.integers(1, 11, (9, 14)), np.nan)
    table[4, 7:] = np.nan  # seven items at most
    made = list(
        recommendation.leave_one_out(
            recommendation.Ratings(table, 1.0, 10.0), np.random.default_rng(0)
        )
    )
    owners = [u for u in range(9) if np.isfinite(table[u]).sum() >= 8]
    assert 4 not in owners and len(made) == len(owners) > 5
    filled = np.where(np.isfinite(table), table, np.nanmedian(table, axis=1)[:, None])
    for owner, (X_train, y_train, X_test, y_test) in zip(owners, made, strict=True):
        items = np.isfinite(table[owner])
        rest = np.delete(filled, owner, axis=0)[:, items]
        expected = np.column_stack([table[owner, items], (rest.T - 1) / 9])
        found = np.column_stack([np.append(y_train, y_test), np.vstack([X_train, X_test])])
        order = [np.lexsort(rows.T) for rows in (expected, found)]
        np.testing.assert_allclose(found[order[1]], expected[order[0]], rtol=1e-12)
        assert len(y_train) == items.sum() // 2


@pytest.mark.parametrize("name", ["MovieLens", "Jester", "Books"])
def test_made_ratings(script, name, monkeypatch):
    recommendation = script("recommendation")
    shape = recommendation.SHAPES[name]
    if name != "Books":
        shape = shape._replace(n_reviewers=900)
        monkeypatch.setitem(recommendation.SHAPES, name, shape)
    found = recommendation.made_ratings(name)
    given = found.table[np.isfinite(found.table)]
    counts = np.isfinite(found.table).sum(axis=1)
    assert found.table.shape == (shape.n_reviewers, shape.n_items)
    assert (given.min(), given.max()) == (shape.low, shape.high) == (found.low, found.high)
    assert (given == np.rint(given)).all() == shape.whole
    assert counts.min() >= shape.fewest and shape.mean * 0.8 < counts.mean() < shape.mean * 1.2
    if name != "Books":
        for low, high in recommendation.GROUPS:
            assert ((counts >= low) & (counts < high)).sum() > 40
        assert ((counts >= 50) & (counts <= 300)).sum() > 200
    np.testing.assert_array_equal(recommendation.made_ratings(name).table, found.table)


def cells_of(text, name):
    """Return {row: cells} of the first table after a data set's line."""
    lines = text[text.index(f"Tables 1-3, {name}") :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        row, *cells = (cell.strip() for cell in line.split("|")[1:-1])
        rows[row] = cells
    return rows


def test_tables_1_to_3_from_files(few_settings, ratings, books, monkeypatch, capsys):
    if not hasattr(pairgram, "fit_many"):
        pytest.skip("this version has no fit_many")
    chen = few_settings
    # a collection of garbage before each of many small fits takes most of the test's time
    monkeypatch.setattr(chen, "stopwatch", lambda fit: (1.0, fit()))
    movielens, jester, _ = ratings
    monkeypatch.setattr(
        sys,
        "argv",
        [
            *("chen_elmrank.py", "--no-qsar", "--threads", "1", "--movielens", str(movielens)),
            *("--jester", *(str(path) for path in jester), "--books", str(books[0])),
            *("--experiments", "2", "--reviewers", "2", "--references", "12"),
        ],
    )
    chen.main()
    text = capsys.readouterr().out
    ways = ("MPRank", "SVRank", "RankBoost", "ELMRank")
    for name in ("MovieLens", "Jester", "Books"):
        rows = cells_of(text, name)
        assert len(rows) == (3 if name == "Books" else 9)
        for row, cells in rows.items():
            found = dict(zip(ways, cells[1::3], strict=True))
            if not row.endswith("misranked %"):
                assert found.pop("RankBoost") == ""
            assert all(float(cell.split("±")[0]) > 0 and "±" in cell for cell in found.values())
            if row.endswith("misranked %") and name != "Books":  # the books' ratings are chance
                assert all(float(cell.split("±")[0]) < 45 for cell in found.values())  # 50: chance
    assert text.count("training and choosing, a reviewer") == 3


def test_tables_1_to_3_without_files(script, monkeypatch, capsys):
    """The paper's cells stand alone, or beside those of made ratings."""
    chen = script("chen_elmrank")
    monkeypatch.setattr(sys, "argv", ["chen_elmrank.py", "--no-qsar"])
    chen.main()
    text = capsys.readouterr().out
    assert cells_of(text, "Books")["M1D"][:6] == ["1.38 ± 0.60", "", "", "1.32 ± 0.56", "", ""]
    jester = cells_of(text, "Jester")["60-80: misranked %"]
    assert jester[::3] == ["37.10 ± 0.60", "", "41.70 ± 0.80", "37.50 ± 0.50"]
    assert not any(cell for i, cell in enumerate(jester) if i % 3)
    seen = {}
    monkeypatch.setattr(chen, "recommend", lambda name, given, **rest: seen.update({name: given}))
    monkeypatch.setattr(chen, "made_ratings", lambda name: f"made {name}")
    monkeypatch.setattr(sys, "argv", ["chen_elmrank.py", "--no-qsar", "--made"])
    chen.main()
    assert seen == {name: f"made {name}" for name in ("MovieLens", "Jester", "Books")}
    assert "Jester: made ratings" in capsys.readouterr().out


def test_tables_of_chen_ranksvm(script, fold, tmp_path, monkeypatch):
    chen = script("chen_ranksvm")
    monkeypatch.setattr(chen, "CS", np.array([0.01, 1.0]))
    monkeypatch.setattr(chen, "GAMMAS", np.array([0.1, 1.0]))
    monkeypatch.setattr(chen, "N_COMPONENTS", 12)
    folds = [fold] * 5
    for way, kind in (
        (chen.LINEAR, None),
        (chen.NYSTROEM, pairgram.Nystroem),
        (chen.FOURIER, pairgram.RandomFourier),
    ):
        C, gamma, best = chen.choose(way, folds)
        rows = chen.table_rows(way, folds, C, gamma, 2)
        assert (
            rows.shape
            == (1 if kind is None else 2, len(chen.ROWS))
            == (
                len(rows),
                len(chen.PAPER[way]),
            )
        )
        np.testing.assert_allclose(rows[0, chen.ROWS.index("validation MAP")], best, rtol=1e-12)
        model = pairgram.RankSVM(C)
        if kind is not None:
            features = kind(n_components=12, gamma=gamma, random_state=0)
            model = pairgram.RankSVM(C, feature_map=features)
        X, y, qid = fold.test
        scores = model.fit(fold.train.X, fold.train.y, qid=fold.train.qid).predict(X)
        for row, name in (("MAP", "map"), ("NDCG@3", "ndcg@3"), ("MeanNDCG", "mean_ndcg")):
            expected = pairgram.get_metric(name, "letor")(y, scores, qid)
            np.testing.assert_allclose(rows[0, chen.ROWS.index(row)], expected, rtol=1e-12)
        np.testing.assert_allclose(rows[:, -5:], rows[:, [chen.ROWS.index("MAP")]] * np.ones(5))


def test_figure_and_times_of_chen_ranksvm(script, fold, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    chen = script("chen_ranksvm")
    monkeypatch.setattr(chen, "CURVE", (3, 12))
    settings = {way: (0.1, gamma, 0.0) for way, gamma in zip(chen.PAPER, (None, 1, 1), strict=True)}
    drawn = {"made": chen.curves([fold], settings, 2)}
    curve = drawn["made"][chen.FOURIER]
    assert curve.shape == (4, 2)
    found = []
    for seed in range(2):
        model = pairgram.RankSVM(
            0.1, feature_map=pairgram.RandomFourier(n_components=12, gamma=1, random_state=seed)
        )
        scores = model.fit(fold.train.X, fold.train.y, qid=fold.train.qid).predict(fold.test.X)
        metric = pairgram.get_metric("map", "letor")
        found.append(metric(fold.test.y, scores, fold.test.qid))
    at = chen.FIGURE_METRICS.index("map")
    np.testing.assert_allclose(curve[at, 1], np.mean(found), rtol=1e-12)
    assert f"{curve[at, 1]:.4f}" in chen.figure_2(drawn, tmp_path)
    assert (tmp_path / "chen_ranksvm_figure_2.png").stat().st_size > 1000
    monkeypatch.setattr(chen, "MQ2007_SHAPE", (400, 12, 10))
    text = chen.table_2([100], repeat=1)
    assert "| exact kernel | 100 |" in text
    assert "| RankSVM-Struct, linear | 42,158 | 2.2 s | 0.5268 |" in text


def test_published_cells_of_chen_ranksvm(script):
    chen = script("chen_ranksvm")
    ours = {chen.NYSTROEM: np.arange(2.0 * len(chen.ROWS)).reshape(2, -1)}
    for name, ways in chen.PUBLISHED.items():
        head, _, *lines = (
            [cell.strip() for cell in line.split("|")[1:-1]]
            for line in chen.published(name, ours).splitlines()
        )
        assert [cells[0] for cells in lines] == list(ways)
        for cells in lines:
            known = [f"{v:.4f}" if np.isfinite(v) else "" for v in ways[cells[0]]]
            assert cells[1::2] == known
            assert any(cells[2::2]) == (cells[0] == chen.NYSTROEM)
        (own,) = (cells for cells in lines if cells[0] == chen.NYSTROEM)
        at = head.index("MAP: ours")
        assert own[at] == f"{ours[chen.NYSTROEM][:, chen.ROWS.index('MAP')].mean():.4f}"


def test_columns_of_pahikkala(script, fold):
    pahikkala = script("pahikkala")
    for columns in pahikkala.PAPER.values():
        assert all(len(column) == len(pahikkala.MEASURES) for column in columns.values())
    ways = (pahikkala.train_rank_rls, pahikkala.train_rls, pahikkala.train_rank_svm)
    for train in ways:
        values, time = pahikkala.measure([fold] * 2, train)
        assert values.shape == (1, len(pahikkala.MEASURES)) and time > 0
    X, y, _ = fold.train
    at, level = X.mean(axis=0), y.mean()
    scores = {}
    for alpha in pahikkala.ALPHAS:
        w = np.linalg.solve(
            (X - at).T @ (X - at) + alpha * np.eye(X.shape[1]), (X - at).T @ (y - level)
        )
        valid = pairgram.evaluate([pahikkala.MAP], fold.valid.y, fold.valid.X @ w, fold.valid.qid)
        scores[alpha] = (valid["map"], alpha), w
    w = max(scores.values(), key=lambda found: found[0])[1]
    predicted = pahikkala.train_rls(fold)(fold.test.X)
    np.testing.assert_allclose(predicted, fold.test.X @ w, rtol=1e-7)


def test_tables_of_pahikkala_with_and_without_files(script, fold):
    pahikkala = script("pahikkala")
    heads = {}
    for folds in ([], [fold] * 2):
        text = pahikkala.tables_1_to_3("TREC2003", folds)
        (cells,) = (
            [cell.strip() for cell in line.split("|")[2:-1]]
            for line in text.splitlines()
            if line.startswith("| MAP")
        )
        assert cells[::3] == ["0.257", "0.212", "0.256", "0.212"]  # the last is RankBoost's
        heads[bool(folds)] = [bool(cell) for cell in cells[1::3]]
    assert heads == {False: [False] * 4, True: [True] * 3 + [False]}


def labelled(labels, edges):
    graph = nx.Graph()
    graph.add_nodes_from((node, {"label": label}) for node, label in labels.items())
    graph.add_edges_from(edges)
    return graph


def test_subtree_patterns(script):
    """Paths a-b-a and a triangle a-b-a: alike in labels, at depth 1 in the pattern of b alone."""
    pahikkala = script("pahikkala")
    path = labelled({0: "a", 1: "b", 2: "a"}, [(0, 1), (1, 2)])
    turned = labelled({"x": "b", "y": "a", "z": "a"}, [("z", "x"), ("x", "y")])
    triangle = labelled({0: "a", 1: "b", 2: "a"}, [(0, 1), (1, 2), (2, 0)])
    graphs = [path, turned, triangle]
    counts = pahikkala.subtree_counts(iter(graphs), 1)
    assert (counts @ counts.T).toarray().tolist() == [[10, 10, 6], [10, 10, 6], [6, 6, 10]]
    expected = [[1, 1, 0.6], [1, 1, 0.6], [0.6, 0.6, 1]]
    assert pahikkala.subtree_kernel(iter(graphs), 1).tolist() == expected
    out = nx.DiGraph(path.edges)  # 0 -> 1 -> 2
    nx.set_node_attributes(out, "a", "label")
    (of_labels, of_successors) = next(pahikkala.subtree_names([out], 1))
    assert len(set(of_labels.values())) == 1
    assert of_successors[0] == of_successors[1] != of_successors[2]
    with pytest.raises(KeyError, match="label"):
        pahikkala.subtree_counts([nx.path_graph(3)], 1)


@st.composite
def labelled_graphs(draw):
    """Draw four graphs with nodes labelled 0 or 1, so sparse and small that patterns recur."""
    graphs = []
    for seed in draw(st.lists(st.integers(0, 10_000), min_size=4, max_size=4)):
        rng = np.random.default_rng(seed)
        graph = nx.gnp_random_graph(int(rng.integers(1, 12)), rng.uniform(0.1, 0.5), seed=seed)
        nx.set_node_attributes(graph, {v: int(rng.integers(2)) for v in graph}, "label")
        graphs.append(graph)
    return graphs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labelled_graphs(), st.integers(1, 4))
def test_subtrees_are_those_of_networkx(script, graphs, depth):
    pahikkala = script("pahikkala")
    named = list(pahikkala.subtree_names(graphs, depth))
    hashed = [nx.weisfeiler_lehman_subgraph_hashes(g, None, "label", depth) for g in graphs]
    nodes = [(row, node) for row, graph in enumerate(graphs) for node in graph]
    for k in range(depth + 1):
        ours = [named[row][k][node] for row, node in nodes]
        theirs = [
            hashed[row][node][k - 1] if k else graphs[row].nodes[node]["label"]
            for row, node in nodes
        ]
        assert len(set(zip(ours, theirs, strict=True))) == len(set(ours)) == len(set(theirs))
    counters = [
        Counter((k, h) for hashes in of.values() for k, h in enumerate(hashes)) for of in hashed
    ]
    for counter, graph in zip(counters, graphs, strict=True):
        counter.update(label for _, label in graph.nodes(data="label"))
    expected = [[counter[key] for counter in counters] for key in sum(counters, Counter())]
    counts = pahikkala.subtree_counts(graphs, depth)
    assert counts.has_canonical_format
    assert sorted(counts.T.toarray().tolist()) == sorted(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labelled_graphs(), st.randoms(use_true_random=False))
def test_isomorphic_graphs_are_one_to_the_kernel(script, graphs, random):
    pahikkala = script("pahikkala")
    turned = []
    for graph in graphs:
        names = dict(zip(graph, random.sample("abcdefghijkl", len(graph)), strict=True))
        nodes = random.sample(list(graph.nodes(data="label")), len(graph))
        edges = [random.sample((names[a], names[b]), 2) for a, b in graph.edges]
        random.shuffle(edges)
        turned.append(labelled({names[node]: label for node, label in nodes}, edges))
    counts = pahikkala.subtree_counts([*graphs, *turned], 3).toarray()
    np.testing.assert_array_equal(counts[:4], counts[4:])
    K = pahikkala.subtree_kernel([*graphs, *turned], 3)
    assert (K.diagonal() == 1).all() and (K.diagonal(4) == 1).all()
    assert (K >= 0).all() and (K <= 1).all()


def test_pairs_within_sentences_beat_labels(script):
    pahikkala = script("pahikkala")
    data = pahikkala.make_parses(0, 3)
    shape = (3 * pahikkala.N_PARSES,)
    assert data.share.shape == data.level.shape == data.qid.shape == shape == (len(data.graphs),)
    n_right = data.share * [graph.number_of_edges() for graph in data.graphs]
    np.testing.assert_allclose(n_right, np.rint(n_right), rtol=1e-12)
    assert data.share.min() < 0.6 and data.share.max() > 0.9
    found = pahikkala.parse_correlations(0, 15)
    assert 1 > found["RankRLS"] > found["RLS"] > 0
    text = pahikkala.table_8(1, 15)
    assert "% of 1 seeds" in text
    assert f"| {pahikkala.RLS_ONE_LEVEL} |  | {found[pahikkala.RLS_ONE_LEVEL]:.3f} |" in text


def test_levels_of_sentences_are_nothing_to_rank_rls(script, monkeypatch):
    """RankRLS finds the same without them, and RLS what it finds on goodness free of them."""
    pahikkala = script("pahikkala")
    found = pahikkala.parse_correlations(1, 15)
    make = pahikkala.make_parses
    monkeypatch.setattr(
        pahikkala, "make_parses", lambda *sizes: make(*sizes)._replace(level=np.zeros(450))
    )
    flat = pahikkala.parse_correlations(1, 15)
    assert flat["RankRLS"] == pytest.approx(found["RankRLS"], rel=1e-9)
    assert flat["RLS"] == flat[pahikkala.RLS_ONE_LEVEL]
    assert flat["RLS"] == pytest.approx(found[pahikkala.RLS_ONE_LEVEL], rel=1e-9)
    assert flat["RLS"] > found["RLS"]


def test_table_4_of_made_rows(script, few_settings):
    chen = few_settings
    rng = np.random.default_rng(0)
    X = rng.random((50, 4))
    y = 5 + X @ rng.normal(size=4) + 0.1 * rng.normal(size=50)
    data = script("qsar").Qsar(X[:35], y[:35], X[35:], y[35:])
    head, _, *rows = (line.split("|")[1:-1] for line in chen.table_4("COX2", data, 2).split("\n"))
    ways = [cell.strip() for cell in head]
    assert ways[1:4] == ["paper: SVR", "paper: RankSVM", "paper: ELMRank"]
    assert ways[6:8] == ["SVR", "RankSVM"]
    assert ways[-3:] == ["MPRank, rbf", "LSSVR, rbf", "RankRLS, rbf"]
    for cell in rows[2][4:]:  # Kendall's τ
        assert 0.5 < float(cell.split("±")[0]) < 1
