"""The search of the built pages finds what people ask for, in their words.

The folder of the pages is in PAIRGRAM_SITE.
"""

import json
import os
from pathlib import Path

import pytest

SITE = os.environ.get("PAIRGRAM_SITE")
pytestmark = pytest.mark.skipif(not SITE, reason="PAIRGRAM_SITE names no built pages")

# What is asked, and a page that must be among those that hold all of its words.
ASKED = {
    "LambdaMART": "questions",
    "GPU": "questions",
    "early stopping": "questions",
    "hyperparameters": "questions",
    "deep learning": "questions",
    "cross-encoder": "questions",
    "missing values": "questions",
    "categories": "questions",
    "MLflow": "questions",
    "how many judgements": "questions",
    "cold start": "questions",
    "SHAP": "questions",
    "A/B tests": "questions",
    "significance": "questions",
    "reproducible": "questions",
    "Spark": "questions",
    "position bias": "guides/clicks",
    "propensity": "guides/clicks",
    "unbiased": "guides/clicks",
    "embeddings": "guides/search",
    "incremental": "guides/daily",
    "online": "guides/daily",
    "decay": "guides/daily",
    "uncertainty": "questions",
    "confidence intervals": "guides/certainty",
    "active learning": "guides/certainty",
    "Thompson sampling": "guides/certainty",
    "interleaving": "guides/search",
    "Solr": "deployment",
    "Elasticsearch": "deployment",
    "LightGBM": "migration",
    "XGBoost": "migration",
    "arena": "guides/comparisons",
    "Bradley-Terry": "guides/comparisons",
    "fingerprints": "guides/chemist",
    "TREC": "guides/research",
    "scikit-learn pipeline": "guides/data_science",
}


@pytest.fixture(scope="module")
def index():
    text = Path(SITE, "searchindex.js").read_text()
    return json.loads(text[text.index("(") + 1 : text.rindex(")")])


@pytest.mark.parametrize("asked", ASKED)
def test_the_search_finds_it(asked, index):
    stemmer = pytest.importorskip("snowballstemmer").stemmer("english")
    words = asked.lower().replace("-", " ").replace("/", " ").split()
    names = index["docnames"]
    found = set(range(len(names)))
    for word in words:
        if len(word) < 2 or word in index.get("stopwords", ("a", "how", "many")):
            continue  # which the search leaves out
        pages = [
            terms.get(stemmer.stemWord(word), []) for terms in (index["terms"], index["titleterms"])
        ]
        found &= {page for one in pages for page in ([one] if isinstance(one, int) else one)}
    assert ASKED[asked] in [names[page] for page in found]


@pytest.mark.parametrize(
    ("name", "meanings"),
    [
        ("RankRLSCV", ("values in the place of missing ones", "What the weights must be like")),
        ("PairwiseELMCV", ("What comes before these nodes", "What the fit starts from")),
    ],
)
def test_a_page_of_an_estimator_can_be_read_alone(name, meanings):
    text = Path(SITE, "api", "generated", f"pairgram.{name}.html").read_text()
    for meaning in meanings:
        assert meaning in text
