"""Values of `feature_map` of what comes one after the other."""

import itertools

from sklearn.base import clone

from pairgram import Fill
from pairgram.features.row_values import WORDS, Chain


def row_value(scale=None, feature_map=None, fill=None):
    """A value that fills gaps, scales columns by a word, and maps them; of lists, all values."""
    if isinstance(scale, list) or isinstance(feature_map, list):
        scales, maps = (one if isinstance(one, list) else [one] for one in (scale, feature_map))
        return [row_value(*pair, fill) for pair in itertools.product(scales, maps)]
    if fill is not None:
        fill = Fill(0.0 if fill == "zero" else fill)
    return Chain(fill, WORDS.get(scale), feature_map).value


def fill_of(model):
    """What takes the place of missing values in a fitted model, or None."""
    fill = Chain.of(model.feature_map_).fill
    return None if fill is None else fill.fill_


def inputs_of(model):
    """The fitted scale of a model, or None."""
    return Chain.of(model.feature_map_).scaling


def part(scale, name):
    """An array of a fitted scale."""
    return scale.inputs_.arrays[f"inputs_{name}"]


def preceded(model, scale=None, fill=None):
    """A clone of a model, with a scale or a Fill before each of its own maps."""
    before = Chain.of(row_value(scale, fill=fill))

    def joined(value):
        own = Chain.of(value)
        return Chain(before.fill or own.fill, before.scaling or own.scaling, own.then).value

    given = model.feature_map
    value = [joined(one) for one in given] if isinstance(given, list) else joined(given)
    return clone(model).set_params(feature_map=value)
