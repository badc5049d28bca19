"""Groups of a table are held out as those of the same rows in memory are."""

import numpy as np
import pandas as pd
import pytest

import pairgram as pg
from pairgram import QueryKFold, RankRLSCV, RankSVMCV, scan

ALPHAS = [100.0, 1.0, 0.01]


@pytest.fixture
def files(tmp_path):
    """Three files of rows, whose groups have rows in all of them."""
    X, y, qid = pg.make_ranking(30, 7, 4, random_state=0)
    groups = np.array(["b", "d", "a", "c", "e"])[(qid * 3) % 5]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, q=qid, day=groups)
    for number, part in enumerate(np.array_split(np.arange(len(y)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"{number}.parquet")  # queries are cut
    return tmp_path, frame


def both(search, files, cv, **options):
    folder, frame = files
    table = scan(folder, label="y", qid="q", groups="day", **options)
    found = search.set_params(cv=cv).fit(table)
    scores, splits = found.scores_, {k: v for k, v in found.cv_results_.items() if "split" in k}
    again = search.fit(frame[list("abcd")], frame["y"], qid=frame["q"], groups=frame["day"])
    return scores, again.scores_, splits, again.cv_results_


@pytest.mark.parametrize("cv", [None, 3, QueryKFold(2, shuffle=True, random_state=0), "forward"])
@pytest.mark.parametrize("group_queries", [False, True])
def test_folds_of_a_table(files, cv, group_queries):
    found, expected, splits, table = both(RankRLSCV(ALPHAS), files, cv, group_queries=group_queries)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    for name in splits if cv is not None else ():
        np.testing.assert_allclose(splits[name], table[name], rtol=1e-10)
    assert len(splits) == {None: 5, 3: 3, "forward": 4}.get(cv, 2)


@pytest.mark.parametrize("cv", [None, 3, "forward"])
def test_other_searches_and_settings(files, cv):
    for search in (RankSVMCV([0.1, 1.0]), RankRLSCV(ALPHAS, inputs="standard", scale=True)):
        found, expected, _, _ = both(search, files, cv)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_text_files_and_frames(files):
    folder, frame = files
    frame.assign(day=(frame["q"] * 3) % 5).to_csv(folder / "all.csv", index=False)
    named = {"label": "y", "qid": "q", "groups": "day"}
    of_text = RankRLSCV(ALPHAS).fit(scan(folder / "all.csv", **named))
    of_frame = RankRLSCV(ALPHAS).fit(scan(frame, **named))
    np.testing.assert_allclose(of_text.scores_, of_frame.scores_, rtol=1e-10)
    assert of_text.n_features_in_ == 4
    assert "groups 'day'" in repr(scan(frame, **named))
