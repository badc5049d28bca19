"""Models in the forms that other systems read: search engines, ONNX, SQL and plain Python.

The functions are `to_solr`, `to_ltr_plugin`, `to_vespa`, `to_onnx`, `to_ranklib`, `to_sql`,
`to_python`, `features_skeleton`, `verify`, `register_skl2onnx` and `skops_types`. This package uses
models by their public names only.
"""

from pairgram.export.converter import register_skl2onnx
from pairgram.export.onnx import to_onnx
from pairgram.export.search import features_skeleton, to_ltr_plugin, to_ranklib, to_solr, to_vespa
from pairgram.export.skops import skops_types
from pairgram.export.text import to_python, to_sql
from pairgram.export.verify import Parity, verify

__all__ = [
    "Parity",
    "features_skeleton",
    "register_skl2onnx",
    "skops_types",
    "to_ltr_plugin",
    "to_onnx",
    "to_python",
    "to_ranklib",
    "to_solr",
    "to_sql",
    "to_vespa",
    "verify",
]
