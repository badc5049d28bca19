"""From the log of a Solr to a model in it, and the evaluation of its own result lists."""

import json
import tempfile
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from tests.engines.engines import SOLR_FILES, java, request

from pairgram import Clicks, RankRLSCV, evaluate_run, export, read_feature_log

NAMES = ["title_match", "price", "rating"]
WORDS = ["red", "blue", "shoe", "hat", "long", "short", "warm", "cheap", "fast", "small"]
STORED = 0.0  # what a document without a price or rating counts


class Shop:
    """Documents with a title, a price and a rating that some lack, and queries with grades."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.documents = []
        for number in range(300):
            title = " ".join(rng.choice(WORDS, 4, replace=False))
            document = {"id": f"d{number}", "title": title}
            if rng.random() < 0.8:
                document["price"] = float(np.round(rng.uniform(5, 100), 1))
            if rng.random() < 0.7:
                document["rating"] = float(rng.integers(1, 6))
            self.documents.append(document)
        self.queries = {f"q{n}": " ".join(rng.choice(WORDS, 2, replace=False)) for n in range(40)}
        self.qrels = {}
        for query, text in self.queries.items():
            words = set(text.split())
            grades = {}
            for document in self.documents:
                shared = len(words & set(document["title"].split()))
                if shared:
                    true = 2 * shared + 0.5 * document.get("rating", 0.0)
                    true -= 0.02 * document.get("price", 0.0) - 0.3 * rng.normal()
                    grades[document["id"]] = int(np.clip(true - 1.5, 0, 3))
            self.qrels[query] = grades


@contextmanager
def solr_of(shop):
    """Start a Solr with the documents of a shop and its features; yield its address."""
    schema = """<schema name="rows" version="1.6">
  <fieldType name="string" class="solr.StrField"/>
  <fieldType name="number" class="solr.FloatPointField" docValues="true"/>
  <fieldType name="text" class="solr.TextField">
    <analyzer><tokenizer class="solr.WhitespaceTokenizerFactory"/></analyzer>
  </fieldType>
  <field name="id" type="string" stored="true"/>
  <field name="title" type="text"/>
  <field name="price" type="number"/>
  <field name="rating" type="number"/>
  <uniqueKey>id</uniqueKey>
</schema>"""
    config = SOLR_FILES["rows/conf/solrconfig.xml"].replace(
        "</config>",
        """  <query>
    <cache name="QUERY_DOC_FV" class="solr.search.CaffeineCache" size="4096"/>
  </query>
  <transformer name="features"
    class="org.apache.solr.ltr.response.transform.LTRFeatureLoggerTransformerFactory">
    <str name="fvCacheName">QUERY_DOC_FV</str>
  </transformer>
</config>""",
    )
    files = {**SOLR_FILES, "rows/conf/schema.xml": schema, "rows/conf/solrconfig.xml": config}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(text)
        with java("solr", "Solr.java", folder) as server:
            url = f"http://127.0.0.1:{server.first_line.split()[1]}/solr/rows"
            request(f"{url}/update?commit=true", shop.documents, method="POST")
            made = "org.apache.solr.ltr.feature."
            kinds = {
                "title_match": ("SolrFeature", {"q": "{!dismax qf=title mm=1}${text}"}),
                "price": ("FieldValueFeature", {"field": "price", "defaultValue": STORED}),
                "rating": ("FieldValueFeature", {"field": "rating", "defaultValue": STORED}),
            }
            features = [
                {"store": "shop", "name": name, "class": made + kind, "params": params}
                for name, (kind, params) in kinds.items()
            ]
            request(f"{url}/schema/feature-store", features)
            yield url


def responses(url, shop, model=None, form="dense"):
    """Yield what Solr answers to every query, with the features of the documents."""
    for query, text in shop.queries.items():
        asked = {
            "q": f"{{!dismax qf=title mm=1}}{text}",
            "fl": f"id,score,[features store=shop format={form} efi.text='{text}']",
            "rows": 200,
        }
        if model is not None:
            asked["rq"] = f"{{!ltr model={model} reRankDocs=500 efi.text='{text}'}}"
        found = request(f"{url}/query?{urllib.parse.urlencode(asked)}")
        yield {"qid": query, **found}


def run_of(answers):
    """Return the result lists of Solr, in its order."""
    return {
        answer["qid"]: {
            doc["id"]: -float(place) for place, doc in enumerate(answer["response"]["docs"])
        }
        for answer in answers
    }


def clicked(rows, seed=0):
    """Return clicks of 30 users of every query, who look at position i with 1 / sqrt(i)."""
    found = []
    for user in range(30):
        rng = np.random.default_rng([seed, user])
        seen = rng.random(len(rows)) < rows["position"] ** -0.5
        wants = rng.random(len(rows)) < 0.05 + 0.3 * rows["label"]
        shown = rows[["qid", "docno"]].assign(label=(seen & wants).astype(float))
        found.append(shown.assign(qid=rows["qid"] + f"/{user}"))
    return pd.concat(found)


def journey():
    """Go the way; return lines that tell what was found, and what is wrong."""
    shop, lines, wrong = Shop(), [], []
    with solr_of(shop) as url:
        first = [*responses(url, shop)]
        log = [json.dumps(one) for one in first]
        columns = ["qid", "docno", "position", "label", *NAMES]
        rows = pd.DataFrame(read_feature_log(log, "solr", qrels=shop.qrels))[columns]
        sparse = [*responses(url, shop, form="sparse")]
        same = pd.DataFrame(read_feature_log(sparse, "solr", qrels=shop.qrels))[columns]
        if not rows.equals(same):
            wrong.append("sparse features are not the dense ones")
        lacking = {d["id"] for d in shop.documents if "price" not in d}
        if (rows["price"][rows["docno"].isin(lacking)] != STORED).any():
            wrong.append("a missing price does not count its default")
        before = evaluate_run(shop.qrels, run_of(first), "ndcg@10")["ndcg@10"]
        lines.append(f"{len(rows)} logged documents; NDCG@10 of Solr's own order {before:.3f}")
        shown = clicked(rows)
        again = [{**one, "qid": f"{one['qid']}/{user}"} for one in first for user in range(30)]
        impressions = pd.DataFrame(
            read_feature_log(again, "solr", qrels=shown[shown["label"] > 0], unjudged="zero")
        )
        propensity = impressions["position"].to_numpy() ** -0.5
        models = {
            "judgements": RankRLSCV().fit(rows[NAMES], rows["label"], qid=rows["qid"]),
            "clicks": RankRLSCV().fit(
                impressions[NAMES], Clicks(impressions["label"], propensity), qid=impressions["qid"]
            ),
        }
        for name, model in models.items():
            request(f"{url}/schema/model-store", export.to_solr(model, name, store="shop"))
            answers = [*responses(url, shop, name)]
            after = evaluate_run(shop.qrels, run_of(answers), "ndcg@10")["ndcg@10"]
            lines.append(f"NDCG@10 after reranking by a model of {name} {after:.3f}")
            if after < before + 0.02:
                wrong.append(f"the model of {name} does not help: {after:.3f}")
            scored = read_feature_log(answers, "solr")
            theirs = [doc["score"] for one in answers for doc in one["response"]["docs"]]
            own = model.predict(pd.DataFrame(scored)[NAMES])
            if len(theirs) != len(own) or np.abs(own - theirs).max() > 1e-5 * np.ptp(own):
                wrong.append(f"scores of {name} are not those of predict")
    return lines, wrong
