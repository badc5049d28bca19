"""JSON schemas of what search engines take, written from their documentation.

Solr: the page "Learning To Rank" of its reference guide, and the fields that ``LinearModel``,
``NeuralNetworkModel`` and the normalizers set. The plugin of Elasticsearch and OpenSearch: the page
"Working with models" of its documentation.
"""

NUMBER = {"type": "number"}
NAME = {"type": "string", "minLength": 1}
DECIMAL = {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$"}


def closed(required, optional=None):
    """Return the schema of an object that has these keys, and no others."""
    properties = required | (optional or {})
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": False,
    }


def one_of(*names):
    return {"enum": [*names]}


# Solr takes the parameters of a normalizer as text, and calls its setters with it.
STANDARD = closed(
    {
        "class": one_of("org.apache.solr.ltr.norm.StandardNormalizer"),
        "params": closed({"avg": DECIMAL, "std": DECIMAL}),
    }
)
SOLR_FEATURES = {
    "type": "array",
    "minItems": 1,
    "items": closed({"name": NAME}, {"norm": STANDARD}),
}
SOLR_LINEAR = closed(
    {
        "class": one_of("org.apache.solr.ltr.model.LinearModel"),
        "name": NAME,
        "features": SOLR_FEATURES,
        "params": closed({"weights": {"type": "object", "additionalProperties": NUMBER}}),
    },
    {"store": NAME},
)
LAYER = closed(
    {
        "matrix": {"type": "array", "minItems": 1, "items": {"type": "array", "items": NUMBER}},
        "bias": {"type": "array", "minItems": 1, "items": NUMBER},
        "activation": one_of("identity", "relu", "leakyrelu", "tanh", "sigmoid"),
    }
)
SOLR_NETWORK = closed(
    {
        "class": one_of("org.apache.solr.ltr.model.NeuralNetworkModel"),
        "name": NAME,
        "features": SOLR_FEATURES,
        "params": closed({"layers": {"type": "array", "minItems": 1, "items": LAYER}}),
    },
    {"store": NAME},
)
# The definition is text that holds JSON, and normalizers stand beside it.
PLUGIN = closed(
    {
        "model": closed(
            {
                "name": NAME,
                "model": closed(
                    {"type": one_of("model/linear"), "definition": {"type": "string"}},
                    {
                        "feature_normalizers": {
                            "type": "object",
                            "additionalProperties": closed(
                                {
                                    "standard": closed(
                                        {
                                            "mean": NUMBER,
                                            "standard_deviation": {
                                                "type": "number",
                                                "exclusiveMinimum": 0,
                                            },
                                        }
                                    )
                                }
                            ),
                        }
                    },
                ),
            }
        )
    }
)
PLUGIN_DEFINITION = {"type": "object", "minProperties": 1, "additionalProperties": NUMBER}
