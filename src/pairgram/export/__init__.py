"""Models in the forms that other systems read: search engines, ONNX, SQL and plain Python.

The functions are `to_solr`, `to_ltr_plugin` (also called `to_elasticsearch` and `to_opensearch`),
`to_vespa`, `to_onnx`, `to_ranklib`, `to_sql`, `to_python`, `verify` and `skops_types`. This package
uses models by their public names only.
"""

from pairgram.export.onnx import to_onnx
from pairgram.export.search import (
    to_elasticsearch,
    to_ltr_plugin,
    to_opensearch,
    to_ranklib,
    to_solr,
    to_vespa,
)
from pairgram.export.skops import skops_types
from pairgram.export.text import to_python, to_sql
from pairgram.export.verify import Parity, verify

__all__ = [
    "Parity",
    "skops_types",
    "to_elasticsearch",
    "to_ltr_plugin",
    "to_onnx",
    "to_opensearch",
    "to_python",
    "to_ranklib",
    "to_solr",
    "to_sql",
    "to_vespa",
    "verify",
]
