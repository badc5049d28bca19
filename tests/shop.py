"""Rows of a shop: numbers and text with gaps, and every transformer that makes columns of them."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

from pairgram import RankRLS

NUMBERS, TEXTS = ["price", "rating"], ["brand", "colour"]
BRANDS = ["Sony", "O'Neil", 'a"b', "é\\ß", "${x} {{y}}", "Kärcher'); DROP TABLE rows; --", "x[0]"]
HARMLESS = [brand for brand in BRANDS if "{" not in brand]
RARE = ["seldom", "once"]


def frame(n=300, seed=0, brands=BRANDS):
    """Return rows of training; `price` has ties, and `brand` rare values and no missing ones."""
    rng = np.random.default_rng(seed)
    price = np.round(rng.gamma(2, 20, n)) / 2
    rating = rng.integers(1, 6, n).astype(float)
    brand = rng.choice(brands, n).astype(object)
    brand[:3], brand[3] = RARE[0], RARE[1]
    colour = rng.choice(np.array(["red", "blue", "green"], object), n)
    columns = {
        "price": np.where(rng.random(n) < 0.2, np.nan, price),
        "rating": np.where(rng.random(n) < 0.3, np.nan, rating),
        "stock": rng.integers(0, 6, n).astype(float),
        "brand": brand,
        "colour": np.where(rng.random(n) < 0.1, np.nan, colour),
    }
    rows = pd.DataFrame(columns)
    return rows.astype(dict.fromkeys(TEXTS, object))


def others(n=200, seed=1, brands=BRANDS):
    """Return rows that were never seen: unknown text, empty text, and text that is nearly known."""
    rows = frame(n, seed, brands)
    unknown = ["", "new", "SONY", "Sony ", " Sony", "o'neil", "*", "日本\n\t", 'x" == "x']
    rows.loc[: n // 2, "brand"] = np.resize(np.array(unknown, object), n // 2 + 1)
    rows.loc[n // 4 : n // 3, "colour"] = "mauve"
    rows.loc[5:9, ["price", "rating"]] = np.nan
    return rows


def targets(rows, seed=2):
    """Return labels of rows."""
    rng = np.random.default_rng(seed)
    total = np.nan_to_num(rows["price"].to_numpy()) * 0.1 + (rows["brand"] == "Sony").to_numpy()
    return (
        total
        + (rows["colour"] == "red").to_numpy()
        - 2.0 * rows["rating"].isna()
        + (rng.normal(size=len(rows)))
    )


def columns(*parts, **options):
    """Return a ColumnTransformer of (transformer, columns)."""
    named = [(f"part{k}", part, list(own)) for k, (part, own) in enumerate(parts)]
    return ColumnTransformer(named, sparse_threshold=0, **options)


def _filled(transformer, **options):
    return make_pipeline(SimpleImputer(**options), transformer)


def _ordinal(**options):
    codes = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    return OrdinalEncoder(**codes, encoded_missing_value=-2, **options)


LOG = FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one")
ONE_HOT = OneHotEncoder(handle_unknown="ignore")
FREQUENT = {"strategy": "most_frequent"}
POWERS = PolynomialFeatures(2, interaction_only=True, include_bias=False)


def _shop():
    return columns(
        (make_pipeline(SimpleImputer(strategy="median", add_indicator=True), LOG), ["price"]),
        (_filled(StandardScaler()), ["rating"]),
        (ONE_HOT, ["brand"]),
        (_filled(ONE_HOT, **FREQUENT), ["colour"]),
    )


# What makes a transformer, by a name that begins with its class.
TRANSFORMERS = {
    "SimpleImputer, mean": lambda: columns((SimpleImputer(add_indicator=True), NUMBERS)),
    "SimpleImputer, median": lambda: columns(
        (SimpleImputer(strategy="median", keep_empty_features=True), NUMBERS)
    ),
    "SimpleImputer, most frequent text": lambda: columns((_filled(ONE_HOT, **FREQUENT), TEXTS)),
    "SimpleImputer, constants": lambda: columns(
        (_filled(ONE_HOT, strategy="constant", fill_value="none"), ["colour"]),
        (SimpleImputer(strategy="constant", fill_value=-1.5), NUMBERS),
    ),
    "OneHotEncoder, text": lambda: columns((ONE_HOT, TEXTS), (SimpleImputer(), NUMBERS)),
    "OneHotEncoder, drop": lambda: columns(
        (OneHotEncoder(handle_unknown="ignore", drop="first"), [*TEXTS, "stock"])
    ),
    "OneHotEncoder, rare": lambda: columns(
        (OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5), TEXTS)
    ),
    "OneHotEncoder, few": lambda: columns(
        (
            OneHotEncoder(handle_unknown="ignore", max_categories=3, drop="if_binary"),
            [*TEXTS, "stock"],
        )
    ),
    "OneHotEncoder, share": lambda: columns(
        (
            OneHotEncoder(
                handle_unknown="infrequent_if_exist",
                min_frequency=0.05,
                max_categories=4,
                drop="first",
            ),
            TEXTS,
        )
    ),
    "OneHotEncoder, scaled": lambda: make_pipeline(columns((ONE_HOT, TEXTS)), StandardScaler()),
    "OneHotEncoder, weights": lambda: columns(
        (ONE_HOT, TEXTS), (SimpleImputer(), NUMBERS), transformer_weights={"part0": 2.5}
    ),
    "OrdinalEncoder": lambda: columns((_ordinal(), TEXTS)),
    "OrdinalEncoder, rare": lambda: columns((_ordinal(min_frequency=5, dtype=np.int32), TEXTS)),
    "OrdinalEncoder, one-hot": lambda: columns((make_pipeline(_ordinal(), ONE_HOT), TEXTS)),
    "FunctionTransformer, log1p": lambda: columns(
        (make_pipeline(SimpleImputer(add_indicator=True), LOG, StandardScaler()), NUMBERS)
    ),
    "FunctionTransformer, sqrt": lambda: columns(
        (FunctionTransformer(np.sqrt, validate=True), ["stock"]),
        (FunctionTransformer(), ["stock"]),
    ),
    "KBinsDiscretizer, one-hot": lambda: columns(
        (_filled(KBinsDiscretizer(4, encode="onehot-dense")), NUMBERS)
    ),
    "KBinsDiscretizer, sparse": lambda: columns(
        (KBinsDiscretizer([3], strategy="uniform"), ["stock"]),
        (_filled(KBinsDiscretizer([3, 4], strategy="uniform"), strategy="median"), NUMBERS),
    ),
    "KBinsDiscretizer, ordinal": lambda: columns(
        (
            _filled(KBinsDiscretizer(4, encode="ordinal", strategy="kmeans", dtype=np.float64)),
            NUMBERS,
        )
    ),
    "TargetEncoder": lambda: columns((TargetEncoder(target_type="continuous"), TEXTS)),
    "TargetEncoder, smooth": lambda: columns((TargetEncoder(smooth=3.0, cv=3), [*TEXTS, "stock"])),
    "PolynomialFeatures": lambda: columns((_filled(PolynomialFeatures(2)), NUMBERS)),
    "PolynomialFeatures, text": lambda: columns(
        (make_pipeline(columns((SimpleImputer(), NUMBERS), (ONE_HOT, TEXTS)), POWERS), [
            *NUMBERS,
            *TEXTS,
        ])
    ),
    "shop": _shop,
}  # fmt: skip


def fitted(name, rows, ranker=None):
    """Return a pipeline of a transformer and a ranker, fitted to rows."""
    ranker = RankRLS(0.1) if ranker is None else ranker
    return make_pipeline(TRANSFORMERS[name](), ranker).fit(rows, targets(rows))
