"""What the functions of this folder return: models in the form of one engine, ready to be sent."""

from __future__ import annotations

from typing import Any, Self


class _Named:
    """A model that knows the names of the columns that it reads, in the order of X."""

    feature_names: tuple[str, ...] = ()

    def named(self, names: tuple[str, ...]) -> Self:
        """Return the model with its names set."""
        self.feature_names = names
        return self


class SolrModel(_Named, dict[str, Any]):
    """The body of a request to Solr's model store."""


class LtrPluginModel(_Named, dict[str, Any]):
    """The body of a ``_createmodel`` request to the plugin of Elasticsearch or OpenSearch."""


class VespaProfile(_Named, str):
    """A rank profile of a Vespa schema."""

    onnx: Any = None  # the OnnxModel that it reads, if it reads one
    template: str = ""  # the expression, with x[j] in the place of the name of column j


class RanklibModel(_Named, str):
    """The text of a linear model of RankLib."""


class SqlExpression(_Named, str):
    """An expression of SQL."""

    dialect: str = "standard"


class PythonFunction(_Named, str):
    """The source of a function without dependencies."""


class OnnxModel(_Named, bytes):
    """The bytes of an ONNX file."""
