"""`register_skl2onnx`: converters by which skl2onnx takes rankers and feature maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import pairgram
from pairgram.export.form import Form, for_float32, form_of, form_of_map
from pairgram.export.onnx import Graph
from pairgram.features.base import FeatureMap

FIRST_OPSET = 13  # sums along axes that are inputs


def register_skl2onnx() -> None:
    """Let skl2onnx convert the rankers and the feature maps of this package, also in pipelines.

    This needs the extra ``skl2onnx``. Call it once; further calls change nothing. Afterwards
    ``skl2onnx.to_onnx(pipeline, X[:1])`` takes a Pipeline that ends in a ranker, if skl2onnx itself
    can convert the other steps.

    Raises
    ------
    ImportError
        If the package skl2onnx is missing.

    Notes
    -----
    Input and output have the type of the example: float64 for ``X`` of float64, and float32
    otherwise. Scores have the shape (batch, 1). They differ from `predict` by the rounding of that
    type, which for float32 is within `Parity.bound` of `verify`. As in `to_onnx`, kernels and
    Nyström maps are computed in float64 in any case. On some machines onnxruntime lacks cosines and
    sigmoids in float64. The conversion raises what `to_onnx` raises, and a ValueError for
    target_opset < 13.

    If a `Cross` is converted by itself, not within a ranker, the file holds a matrix of
    (n_left · n_right)² numbers, which selects its features.

    Examples
    --------
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import pairgram
    >>> X, y, qid = pairgram.make_ranking(random_state=0)
    >>> model = make_pipeline(StandardScaler(), pairgram.RankRLS()).fit(X, y, rankrls__qid=qid)
    >>> pairgram.export.register_skl2onnx()
    >>> file = skl2onnx.to_onnx(model, X[:1].astype("float32"))
    >>> [one.name for one in file.graph.output]
    ['variable']
    """
    try:
        import skl2onnx
    except ImportError as error:
        message = "register_skl2onnx needs skl2onnx: pip install 'pairgram[skl2onnx]'"
        raise ImportError(message) from error
    for name in pairgram.__all__:
        one = getattr(pairgram, name)
        if isinstance(one, type) and (issubclass(one, FeatureMap) or hasattr(one, "row_scorer")):
            skl2onnx.update_registered_converter(one, f"Pairgram{name}", _shaped, _converted)


def _form_of(model: Any) -> Form:
    return form_of_map(model) if isinstance(model, FeatureMap) else form_of(model, unnamed=True)


def _shaped(operator: Any) -> None:
    """Set the type and the shape of the output."""
    from skl2onnx.common.data_types import guess_tensor_type

    model, given = operator.raw_operator, operator.inputs[0]
    n_features = sum(one.type.shape[1] or 0 for one in operator.inputs)
    if n_features not in (0, model.n_features_in_):
        raise ValueError(
            f"the {type(model).__name__} was fitted to {model.n_features_in_} columns, and the "
            f"inputs have {n_features}"
        )
    names = model.get_feature_names_out() if isinstance(model, FeatureMap) else ["score"]
    operator.outputs[0].type = guess_tensor_type(given.type)
    operator.outputs[0].type.shape = [given.get_first_dimension(), len(names)]


def _converted(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a model to what skl2onnx makes."""
    from onnx import helper
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType

    if container.target_opset < FIRST_OPSET:
        raise ValueError(
            f"target_opset must be at least {FIRST_OPSET}, got {container.target_opset}"
        )
    model = operator.raw_operator
    if any(isinstance(one.type, StringTensorType) for one in operator.inputs):
        raise ValueError(f"the {type(model).__name__} takes columns of numbers, and got text")
    wide = isinstance(operator.outputs[0].type, DoubleTensorType)
    given: DTypeLike = np.float64 if wide else np.float32
    form = _form_of(model)
    if not wide:
        form = for_float32(form, "a runtime of ONNX")
    prefix = scope.get_unique_variable_name("pairgram") + "_"
    graph = Graph(form, f"{prefix}rows", np.float64 if form.kernels else given, given, prefix)
    to = helper.np_dtype_to_tensor_dtype(np.dtype(given))
    columns = [f"{prefix}rows{number}" for number in range(len(operator.inputs))]
    for one, name in zip(operator.inputs, columns, strict=True):
        container.add_node("Cast", one.full_name, name, to=to)
    container.add_node("Concat", columns, f"{prefix}rows", axis=1)
    for constant in graph.constants:
        container.add_initializer(constant.name, None, None, constant)
    for node in graph.nodes:
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        container.add_node(node.op_type, [*node.input], [*node.output], **attributes)
    container.add_node("Identity", graph.scores, operator.outputs[0].full_name)
