"""Pipelines that encode text score and judge tables as they do frames in memory."""

import gzip
import sys
import time

import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow.compute
import pyarrow.dataset
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import forms
import shop
from axes import every
from pairgram import RandomNodes, RankRLS, evaluate, export, predict, row_scorer, scan

ROWS = shop.frame()
NEW = shop.others()
QID = np.arange(len(NEW)) // 10
LABELS = shop.targets(NEW).round().clip(0, 4)
ONE_HOT = OneHotEncoder(handle_unknown="ignore")


def scores_of(model, table, **named):
    return np.concatenate([part["score"].to_numpy() for part in predict(model, table, **named)])


def table_of(source, names=tuple(ROWS), **named):
    return scan(source, label="y", qid="q", features=list(names), **named)


def told(frame=NEW):
    n = len(frame)
    others = {"title": "no feature", "when": pd.Timestamp("2026-01-01"), "y": LABELS[:n]}
    return frame.assign(**others, q=QID[:n])


def pieces(frame):
    return lambda: iter([frame[:33], frame[33:40], frame[40:]])


def files(ending):
    def written(frame, folder):
        frame = frame.assign(brand=frame["brand"].replace("", "unknown"))  # empty is missing there
        for number, part in enumerate((frame[:33], frame[33:40], frame[40:])):
            path = folder / f"{number}{ending}"
            if ending == ".parquet":
                part.to_parquet(path, row_group_size=7)
            else:
                text = part.to_csv(None, index=False, sep="\t" if ".tsv" in ending else ",")
                path.write_bytes((gzip.compress if "gz" in ending else bytes)(text.encode()))
        return f"{folder}/*{ending}"

    return written


SOURCES = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pytest.importorskip("polars").from_pandas(frame),
    "function": lambda frame, _: pieces(frame),
    "dask": lambda frame, _: dask.dataframe.from_pandas(frame, npartitions=3, sort=False),
    **{ending: files(ending) for ending in (".parquet", ".csv", ".tsv.gz")},
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source(kind, tmp_path):
    frame = told(NEW.assign(brand=NEW["brand"].str.replace("[\n\t]", "", regex=True)))
    model = shop.fitted("shop", ROWS)
    table = table_of(SOURCES[kind](frame, tmp_path))
    wanted = row_scorer(model)(frame)
    assert_allclose(scores_of(model, table), wanted, atol=1e-12)
    found = evaluate(["ndcg@10", "map"], table, model)
    assert found == pytest.approx(evaluate(["ndcg@10", "map"], LABELS, wanted, QID))


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@every(name=shop.TRANSFORMERS)
def test_every_transformer(name):
    model = shop.fitted(name, ROWS)
    assert_allclose(scores_of(model, table_of(told())), model.predict(NEW), atol=1e-9)


def sized(*sizes):
    rng = np.random.default_rng(0)
    size = np.array(sizes, object)[rng.integers(0, len(sizes), 60)]
    frame = pd.DataFrame({"size": size, "price": rng.random(60)})
    columns = make_column_transformer((ONE_HOT, ["size"]), remainder="passthrough")
    return frame, make_pipeline(columns, RankRLS()).fit(frame, rng.normal(size=60))


def test_text_of_digits_in_files_of_text(tmp_path, limits_of):
    frame, model = sized("38", "040", "XL")
    new = frame[frame["size"] != "XL"].assign(y=0.0, q=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    table = table_of(tmp_path / "new.csv", frame)
    assert_allclose(scores_of(model, table), model.predict(new))
    numbers = new.assign(size=new["size"].astype(int))
    wanted = "must hold text, as in the fit, got (38|40)(.0)?, which no text is equal to"
    later = [frame.assign(y=0.0, q=1), numbers]  # of which each is a batch of its own
    with limits_of(fewest_batch_rows=1):
        for source in (numbers, lambda: iter(later)):
            table = table_of(source, frame)
            with pytest.raises(ValueError, match=wanted):
                evaluate("ndcg", table, model)


def test_texts_that_stand_for_a_missing_one(tmp_path):
    """They are those of pandas, unless one is a category that the fit has seen."""
    frame, model = sized("S", "NA", np.nan)
    new = pd.DataFrame({"size": ["S", "NA", "null", "", "n/a", np.nan], "price": 0.5, "y": 0.0})
    new.assign(q=1).to_csv(tmp_path / "new.csv", index=False)
    known = pd.DataFrame({"size": ["S", "NA", *[np.nan] * 4], "price": 0.5})
    wanted = model.predict(known)
    assert_allclose(scores_of(model, table_of(tmp_path / "new.csv", frame)), wanted)
    new.assign(q=1).to_parquet(tmp_path / "new.parquet")  # which tells text from what is missing
    unknown = known.assign(size=["S", "NA", "null", "", "n/a", np.nan])
    found = scores_of(model, table_of(tmp_path / "new.parquet", frame))
    assert_allclose(found, model.predict(unknown))
    assert abs(found[2] - wanted[2]) > 1e-6


def test_an_encoder_of_words_is_refused():
    frame, _ = sized("S", "M")
    words = make_column_transformer((TfidfVectorizer(), "size"), remainder="passthrough")
    of_words = make_pipeline(words, RankRLS()).fit(frame.assign(size="red shoe"), frame["price"])
    with pytest.raises(ValueError, match="TfidfVectorizer"):
        predict(of_words, table_of(frame.assign(y=0.0, q=1), frame))


@pytest.mark.filterwarnings("ignore::pairgram.MissingQueryWarning")
def test_a_search_of_scikit_learn_and_dropped_columns():
    frame, model = sized("S", "M", "L")
    frame = frame.assign(title="a", when=pd.Timestamp("2026-01-01"))
    model = make_pipeline(
        make_column_transformer((ONE_HOT, ["size"]), ("passthrough", ["price"])), RankRLS()
    )
    search = GridSearchCV(model, {"rankrls__alpha": [0.1, 1.0]}, cv=2).fit(frame, np.arange(60.0))
    new = frame.assign(y=0.0, q=1)
    for named in (frame, ["price", "size"]):  # what the steps drop need not be there
        assert_allclose(scores_of(search, table_of(new, named)), search.predict(frame))


def test_pipelines_of_numbers_fill_the_gaps_of_tables():
    frame = NEW[shop.NUMBERS]
    model = make_pipeline(SimpleImputer(), RankRLS()).fit(ROWS[shop.NUMBERS], shop.targets(ROWS))
    table = table_of(told(), shop.NUMBERS)
    assert_allclose(scores_of(model, table), model.predict(frame))
    without = make_pipeline(StandardScaler(), RankRLS()).fit(frame.fillna(0.0), LABELS)
    with pytest.raises(ValueError, match=r"the table, rows 0 to 199.*NaN"):
        scores_of(without, table)


def test_exports_are_verified_on_a_table(tmp_path):
    model = shop.fitted("shop", shop.frame(brands=shop.HARMLESS))
    new = told(shop.others(brands=shop.HARMLESS)).assign(brand="Sony")
    new["colour"] = new["colour"].astype(object).where(new["colour"].notna(), None)
    new.to_parquet(tmp_path / "new.parquet")
    exported = export.to_solr(model, "shop")
    parity = export.verify(exported, model, table_of(tmp_path / "new.parquet"))
    assert parity.n_reordered == 0 and parity.n_queries == len(set(QID))
    numbers = make_pipeline(StandardScaler(), RankRLS()).fit(ROWS[["stock"]], shop.targets(ROWS))
    table = table_of(tmp_path / "new.parquet", ["stock"])
    assert export.verify(export.to_sql(numbers), numbers, table).n_reordered == 0


def test_columns_of_lists_beside_text():
    """All entries of a list are read, also those that the steps leave out or weigh by 0."""
    rng = np.random.default_rng(0)
    entries = rng.random((40, 3)).round(2)
    entries[:, 1] = 0.0
    frame = pd.DataFrame(entries, columns=[f"e[{k}]" for k in range(3)])
    frame.insert(1, "t", rng.choice(["a", "b"], 40))
    for names in (["e[0]", "e[1]", "e[2]"], ["e[1]", "e[2]"]):
        columns = make_column_transformer((ONE_HOT, ["t"]), ("passthrough", names))
        model = make_pipeline(columns, RankRLS()).fit(frame, rng.normal(size=40))
        for kind in (pyarrow.list_(pyarrow.float64()), pyarrow.list_(pyarrow.float64(), 3)):
            lists = pyarrow.array(entries.tolist(), kind)
            table = scan(pyarrow.table({"t": frame["t"].tolist(), "e": lists}), features=["t", "e"])
            assert_allclose(scores_of(model, table), model.predict(frame))
    longer = pyarrow.table({"t": ["a"], "e": [[1.0, 2.0, 3.0, 4.0]]})
    with pytest.raises(ValueError, match="must hold lists of 3 numbers, as in the fit, got lists"):
        predict(model, scan(longer, features=["t", "e"]))


def test_texts_of_datasets_and_folders(tmp_path):
    frame, model = sized("S", np.nan)
    new = frame.assign(y=0.0, q=1)
    new["size"] = new["size"].fillna("NA")
    new.to_csv(tmp_path / "new.csv", index=False)
    dataset = pyarrow.dataset.dataset(tmp_path / "new.csv", format="csv")
    for source in (dataset, dataset.filter(pyarrow.compute.field("q") == 1)):
        assert_allclose(scores_of(model, table_of(source, frame)), model.predict(frame))
    for ending in (".csv", ".parquet"):  # the names of folders are no text of a file
        folder = tmp_path / ending / "size=NA"
        folder.mkdir(parents=True)
        write = pd.DataFrame.to_parquet if ending == ".parquet" else pd.DataFrame.to_csv
        write(new.drop(columns="size"), folder / f"0{ending}", index=False)
        wanted = model.predict(frame.assign(size="NA"))
        dataset = pyarrow.dataset.dataset(tmp_path / ending, format=ending[1:], partitioning="hive")
        filtered = dataset.filter(pyarrow.compute.field("q") == 1)
        for source in (tmp_path / ending, dataset, filtered):
            assert_allclose(scores_of(model, table_of(source, frame)), wanted)


@pytest.mark.filterwarnings("ignore::pairgram.MissingQueryWarning")
def test_models_that_cannot_read_text_of_tables():
    frame, model = sized("S", "M")
    new = frame.assign(y=0.0, q=1)
    columns = make_column_transformer((ONE_HOT, ["size"]), remainder="passthrough")
    told = "column 'size' must hold numbers, got text"
    for other in (
        make_pipeline(columns, Ridge()),
        make_pipeline(columns, make_pipeline(RankRLS())),
    ):
        with pytest.raises(ValueError, match=told):
            scores_of(other.fit(frame, frame["price"]), table_of(new, frame))
    dates = frame.assign(size=pd.Timestamp("2026-01-01"))
    of_dates = make_pipeline(columns, RankRLS()).fit(dates, frame["price"])
    with pytest.raises(ValueError, match="which is neither text nor a number"):
        predict(of_dates, table_of(dates.assign(y=0.0, q=1), frame))
    with pytest.raises(ValueError, match="must be a ranker of pairgram, got GridSearchCV"):
        search = GridSearchCV(model, {"rankrls__alpha": [1.0]}, cv=2).fit(frame, frame["price"])
        export.verify(export.to_sql(model), search, table_of(new, frame))


def test_many_categories_take_no_more_time_than_rows():
    ids = np.arange(4000)
    frame = pd.DataFrame({"id": ids.astype(str), "n": ids, "price": ids / 100})
    for name, ranker in (("n", forms.RankRLS(form="dual")), ("id", forms.RankRLS(form="dual"))):
        columns = make_column_transformer((ONE_HOT, [name]), ("passthrough", ["price"]))
        y, one_list = np.sin(ids[:1500]), {"rankrls__qid": np.zeros(1500)}
        model = make_pipeline(columns, ranker).fit(frame[:1500][[name, "price"]], y, **one_list)
        begun = time.process_time()
        scores = scores_of(model, table_of(frame.assign(y=0.0, q=1), [name, "price"]))
        assert time.process_time() - begun < 2.0
        assert_allclose(scores, model.predict(frame[[name, "price"]]), atol=1e-9)


@pytest.mark.parametrize("unknown", [{}, {"handle_unknown": "use_encoded_value"}])
def test_several_encoders_of_a_column(unknown):
    frame, _ = sized("S", "M", "L")
    y = np.arange(60.0)
    unknown = unknown and unknown | {"unknown_value": -(10**3)}
    ordinal = OrdinalEncoder(**unknown)
    for encoders in (
        (OneHotEncoder(), ordinal),
        (ordinal, OrdinalEncoder(categories=[list("LMS")])),
    ):
        columns = make_column_transformer(*((one, ["size"]) for one in encoders))
        model = make_pipeline(columns, RankRLS()).fit(frame, y)
        table = table_of(frame.assign(y=0.0, q=1), frame)
        assert_allclose(scores_of(model, table), model.predict(frame), atol=1e-12)
        assert_allclose(row_scorer(model)(frame), model.predict(frame), atol=1e-12)


def test_a_wrong_formula_is_seen_on_a_table(monkeypatch):
    """The scores of the export are held against the steps, not against their own formulas."""
    frame, model = sized("S", "M", "L")
    table = table_of(frame.assign(y=0.0, q=1), frame)
    assert export.verify(export.to_python(model), model, table).max_error < 1e-12
    kinds = sys.modules["pairgram.export.transformers"].FORMULAS
    encoded = kinds["OneHotEncoder"]
    monkeypatch.setitem(kinds, "OneHotEncoder", lambda *given: encoded(*given)[::-1])
    parity = export.verify(export.to_python(model), model, table)
    assert parity.n_reordered == 1 and parity.max_error > 0.01


def test_an_unknown_category_is_named_with_its_row(set_limits):
    set_limits(dense_block_bytes=512)  # so that few rows are scored at a time
    frame, _ = sized("S", "M", "L")
    columns = make_column_transformer((OneHotEncoder(), ["size"]), remainder="passthrough")
    nodes = RandomNodes(3, random_state=0)
    model = make_pipeline(columns, RankRLS(feature_map=nodes)).fit(frame, np.arange(60.0))
    new = frame.assign(y=0.0, q=1)
    assert_allclose(scores_of(model, table_of(new, frame)), model.predict(frame))
    new.loc[57, "size"] = "XS"
    with pytest.raises(ValueError, match="row 57 of X has 'XS' in column 'size'"):
        scores_of(model, table_of(new, frame))


@pytest.mark.filterwarnings("ignore::pairgram.MissingQueryWarning")
def test_features_that_no_step_reads():
    """Text among the features of a table is refused only where it is read."""
    frame, _ = sized("S", "M")
    frame["stock"] = np.arange(60.0)
    numbers, y = ["price", "stock"], np.sin(np.arange(60.0)) + 1
    pipeline = make_pipeline(SimpleImputer(), RankRLS())
    with_gaps = frame.assign(price=frame["price"].where(frame["stock"] > 5))
    table = table_of(with_gaps.assign(y=0.0, q=1), frame)
    for model in (pipeline, GridSearchCV(pipeline, {"rankrls__alpha": [1.0]}, cv=2)):
        model.fit(frame[numbers], y)
        assert_allclose(scores_of(model, table), model.predict(with_gaps[numbers]))
    whole = table_of(frame.assign(y=0.0, q=1), frame)
    for model in (RankRLS(), GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=2)):
        model.fit(frame[numbers], y)
        assert_allclose(scores_of(model, whole), model.predict(frame[numbers]))


def test_whole_numbers_that_floats_do_not_hold_are_no_categories():
    frame = pd.DataFrame({"size": ["S", "M"] * 30, "id": [2**53 - 1, 2**53 - 2] * 30})
    columns = make_column_transformer((ONE_HOT, ["size", "id"]))
    model = make_pipeline(columns, RankRLS()).fit(frame, np.arange(60.0))
    new = frame.assign(y=0.0, q=1, id=[None, *frame["id"][1:]]).astype({"id": "Int64"})
    assert np.isfinite(scores_of(model, table_of(new, frame))).all()
    new.loc[7, "id"] = 2**53 + 1
    with pytest.raises(ValueError, match=r"row 7, .*: column 'id' must hold numbers that a float"):
        scores_of(model, table_of(new, frame))


def test_a_dropped_category_that_looks_like_a_gap(tmp_path):
    rows = {
        "text": ["NULL", "x", "y", None] * 5,
        "q": np.repeat(range(5), 4),
        "y": [0, 1, 2, 0] * 5,
    }
    frame = pd.DataFrame(rows)
    model = make_pipeline(OneHotEncoder(drop="first"), RankRLS(1.0))
    model.fit(frame[["text"]], frame["y"], rankrls__qid=frame["q"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    read = next(predict(model, scan(tmp_path / "rows.csv", features=["text"])))["score"]
    assert_allclose(read.to_numpy(), model.predict(frame[["text"]]))
