"""JSON schemas of what search engines take, written from their documentation.

Solr: the page "Learning To Rank" of its reference guide, and the fields that ``LinearModel`` and
``NeuralNetworkModel`` set. The plugin of Elasticsearch and OpenSearch: the page
"Working with models" of its documentation.
"""

NUMBER = {"type": "number"}
NAME = {"type": "string", "minLength": 1}


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


SOLR_FEATURES = {"type": "array", "minItems": 1, "items": closed({"name": NAME})}
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
# The definition is text that holds JSON.
LINEAR = closed({"type": one_of("model/linear"), "definition": {"type": "string"}})
PLUGIN = closed({"model": closed({"name": NAME, "model": LINEAR})})
PLUGIN_DEFINITION = {"type": "object", "minProperties": 1, "additionalProperties": NUMBER}
