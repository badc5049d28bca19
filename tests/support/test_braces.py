"""Braces in what callers name and give come through in messages, which name places in braces."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from axes import every
from pairgram import RankRLS, scan

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)


def frame(name, query="q"):
    return pd.DataFrame({"y": Y, "q": [query] * 3 + ["other"] * 3, name: X[:, 0], "b": X[:, 1]})


def fit_to_repeated_columns(name, path):
    RankRLS().fit(pd.DataFrame(X, columns=[name, name]), Y)


def fit_to_text_labels(name, path):
    RankRLS().fit(X, [name] * 6)


def fit_with_weights_that_differ(name, path):
    RankRLS().fit(X, Y, qid=[name] * 6, query_weight=Y + 1)


def fit_with_a_wrong_word(name, path):
    RankRLS(pairs=name).fit(X, Y)


def fit_to_missing(name, path):
    data = frame(name)
    data.loc[3, name] = np.nan
    data.to_parquet(path / f"{name}.parquet", index=False)
    RankRLS().fit(scan(path / f"{name}.parquet", label="y", qid="q"))


def fit_to_queries_apart(name, path):
    data = frame("a", name).iloc[[0, 3, 4, 5, 1, 2]]
    RankRLS().fit(scan(data, label="y", qid="q"))


def scan_without_the_column(name, path):
    scan(frame("a"), label="y", qid="q", features=["a", name])


def scan_a_column_of_text(name, path):
    scan(frame("a").assign(**{name: "low"}), label="y", qid="q")


def scan_the_label_as_a_feature(name, path):
    scan(frame(name), label=name, qid="q", features=["b", name])


@pytest.mark.parametrize(
    "refused",
    [
        fit_to_repeated_columns,
        fit_to_text_labels,
        fit_with_weights_that_differ,
        fit_with_a_wrong_word,
        fit_to_missing,
        fit_to_queries_apart,
        scan_without_the_column,
        scan_a_column_of_text,
        scan_the_label_as_a_feature,
    ],
)
@every(name=["{place}", "{argument}", "{x=1}", "{=x}", "{{place}}", "{{", "}"])
def test_messages_have_names_as_they_are(refused, name, tmp_path):
    with pytest.raises(ValueError) as usual:
        refused("usual", tmp_path)
    with pytest.raises(ValueError) as found:
        refused(name, tmp_path)
    message = str(found.value)
    assert message == str(usual.value).replace("usual", name)
    assert "'usual'" in str(usual.value)
    for other in (copy.copy(found.value), pickle.loads(pickle.dumps(found.value))):
        assert str(other) == message
