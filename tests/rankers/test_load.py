"""Model files from anywhere: what is not as a save writes it is refused, naming the file."""

import inspect
from dataclasses import replace
from functools import reduce
from operator import getitem

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator

import pairgram
from fuzz import fitted
from fuzz.forge import Tensor, instead, pack, parse
from pairgram import Pairgram, Pairs, RankRLS, RankSVM, load_model, make_ranking
from parts.features import Kernel
from parts.files import MAPS, MODELS

X, y, qid = make_ranking(6, 5, 4, random_state=0)


def test_everything_that_can_be_saved_comes_back(tmp_path):
    path, again = tmp_path / "file", tmp_path / "again"
    kinds, maps = set(), set()
    for _, make in fitted.models():
        model, X = make()
        model.save(path)
        loaded = load_model(path)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        loaded.save(again)
        first, second = (parse(p.read_bytes()) for p in (path, again))
        assert (first.kind, first.tensors) == (second.kind, second.tensors)
        assert first.settings == second.settings
        kinds.add(first.kind)
        maps.add((first.settings["feature_map"] or {}).get("kind"))
    assert kinds == set(MODELS) and maps == {None, *MAPS}
    for _, make in fitted.statistics():
        made = make()
        made.save(path)
        loaded = Pairgram.load(path)
        np.testing.assert_array_equal(loaded.solve(0.1), made.solve(0.1))
        loaded.save(again)
        first, second = (parse(p.read_bytes()) for p in (path, again))
        assert (first.settings, first.tensors) == (second.settings, second.tensors)


def test_the_tables_know_every_parameter():
    assert all(hasattr(pairgram, name) for name in MODELS)
    for name, kind in MODELS.items():
        wanted = set(getattr(pairgram, name)._get_param_names()) - {"feature_map"}
        of_rows = {"inputs", "missing"}  # which are parts of the feature map
        assert {key.rstrip("?") for key in kind.settings} - {"fitted"} - of_rows == wanted
    for name, kind in MAPS.items():
        made = Kernel if name == "Kernel" else getattr(pairgram, name)
        wanted = set(inspect.signature(made).parameters)
        assert set(kind.settings) - {"fitted"} == wanted


# Forged contents


def csr_model():
    return RankRLS(feature_map=Kernel("rbf")).fit(sp.csr_array(X), y, qid=qid)


def fitted_to_rows(model):
    return lambda: model.fit(X, y, qid=qid)


linear_model = fitted_to_rows(RankRLS())
pointwise_model = fitted_to_rows(RankRLS(pairs=None))
kernel_map_model = fitted_to_rows(RankRLS(feature_map=Kernel("polynomial")))
nodes_model = fitted_to_rows(
    RankSVM(feature_map=pairgram.RandomNodes(6, "gaussian", random_state=0))
)
nystroem_model = fitted_to_rows(
    RankRLS(feature_map=pairgram.Nystroem(n_components=7, random_state=0))
)


def prior_model():
    prior = RankRLS(feature_map=Kernel("rbf")).fit(X, y, qid=qid)
    return RankSVM(prior=FrozenEstimator(prior)).fit(X, y, qid=qid)


def statistics(**options):
    return Pairgram.from_rows(X, y, qid=qid, **options)


def nested(depth):
    return "[" * depth + "]" * depth


def at(name, value):
    """Return the change of a tensor by an assignment to its array."""
    return instead(name, lambda array: value(array) or array)


def within(*path):
    """Return what makes changes of the settings at a path."""
    return lambda **changes: lambda c: reduce(getitem, path, c.settings).update(changes)


setting, of_prior, of_map = within(), within("prior"), within("feature_map")
of_map_fit = within("feature_map", "fitted")
of_kernel = within("feature_map", "fitted", "kernel_parameters_")
in_fitted, in_state, in_pairs = within("fitted"), within("state"), within("pairs")
in_prior = within("prior", "settings", "fitted")


def without(key):
    return lambda contents: (contents.settings.pop(key, None), contents.tensors.pop(key, None))


def text_of(text):
    return lambda contents: setattr(contents, "text", text)


def set_all(value):
    return lambda array: array.fill(value)


def set_one(index, value):
    return lambda array: array.__setitem__(index, value)


FORGED = [
    # The prior of a model
    (prior_model, setting(prior=None), "prior must be an object with the kind and the settings"),
    (prior_model, without("prior"), "'prior.coef_' is no array"),
    (prior_model, of_prior(kind="RankSVM"), "prior: 'alpha' is no setting"),
    (prior_model, of_prior(settings=[]), "prior: the settings must be an object"),
    (prior_model, of_prior(settings={"feature_map": None}), "prior: fitted is missing"),
    (prior_model, in_prior(n_features_in_=5), "prior: fitted.n_features_in_ is 5, but the"),
    (prior_model, in_fitted(n_features_in_=5), "fitted.n_features_in_ is 5|prior is of 4 features"),
    (prior_model, without("prior.coef_"), "prior: coef_ is missing"),
    (prior_model, at("prior.map_support", set_all(-1)), "prior: map_support must hold row numbers"),
    (linear_model, setting(prior={"kind": "RankRLS", "settings": {}}), "prior: the settings must"),
    # The rows of a kernel in CSR form
    (csr_model, at("map_indices", set_one(7, 4)), "indices"),
    (csr_model, at("map_indices", set_one(0, -1)), "indices"),
    (csr_model, at("map_indptr", set_one(0, 1)), "index pointer"),
    (csr_model, at("map_indptr", set_one(-1, 10**6)), "index pointer"),
    (csr_model, at("map_indptr", set_one(3, 10**6)), "the support rows must be .*decrease"),
    (csr_model, instead("map_indptr", lambda a: a[:-1]), "index pointer"),
    (csr_model, instead("map_indices", lambda a: a[:-1]), r"map_indices must have shape \(n_entr"),
    (csr_model, instead("map_indices", lambda a: a.astype(np.uint8)), "must be of int32 or int64"),
    (csr_model, of_map_fit(n_features_in_=10**12), "features are 1000000000000"),
    (csr_model, of_map_fit(n_features_in_=2**70), "n_features_in_ must be an integer"),
    (csr_model, of_kernel(name="precomputed"), "must have no support rows"),
    (csr_model, without("map_data"), "map_rows, or three arrays of CSR"),
    (csr_model, at("map_support", set_one(2, 99)), "map_support must hold row numbers"),
    (csr_model, at("map_data", set_one(0, np.inf)), "map_data must be finite"),
    # Coefficients
    (linear_model, at("coef_", set_one(1, np.nan)), "coef_ must be finite"),
    (linear_model, instead("coef_", lambda a: a.astype(np.float32)), "coef_ must be of float64"),
    (linear_model, instead("coef_", lambda a: a[:, None]), r"coef_ must have shape \(outputs\)"),
    (linear_model, instead("coef_", lambda a: a[:2]), r"variances must have shape \(outputs\)"),
    (pointwise_model, instead("coef_", lambda a: a[:2]), "n_features_in_ is 4, but the feat"),
    (linear_model, without("coef_"), "coef_ is missing"),
    (linear_model, lambda c: c.tensors.update(more=Tensor.of(np.ones(1))), "'more' is no array"),
    (linear_model, lambda c: c.tensors.update(coef_=Tensor("BF16", (4,), bytes(8))), "file"),
    (linear_model, without("covariances"), "variances and covariances must be there together"),
    (linear_model, at("variances", set_one(1, -1.0)), "variances must be >= 0"),
    (linear_model, instead("covariances", lambda a: a[:2]), "must have shape"),
    # Settings
    (linear_model, without("fitted"), "fitted is missing"),
    (linear_model, without("feature_map"), "with a feature_map, got"),
    (linear_model, without("alpha"), "alpha is missing"),
    (linear_model, setting(future=1), "'future' is no setting that this version knows"),
    (linear_model, setting(__class__="x"), "'__class__' is no setting"),
    (linear_model, setting(alpha=True), "alpha must be a finite number >= 0, got True"),
    (linear_model, setting(alpha=10**400), "alpha must be a finite number >= 0, got 1000"),
    (linear_model, setting(alpha=float("nan")), "alpha must be a finite number >= 0, got nan"),
    (kernel_map_model, of_map(degree=2.5), "degree must be an integer from 1 to 1000"),
    (linear_model, in_pairs(kind=["with_ties"]), "pairs.kind must be one of 'with_ties'"),
    (linear_model, setting(fitted=[]), "fitted must be an object of JSON"),
    (linear_model, in_fitted(n_features_in_=5), "n_features_in_ is 5, but the features are 4"),
    (linear_model, in_fitted(uses_qid_=1), "fitted.uses_qid_ must be True or False"),
    (linear_model, in_fitted(predict=1), "'fitted.predict' is no setting"),
    (linear_model, in_fitted(feature_names_in_=["a"]), "want 4 names of features"),
    (linear_model, in_fitted(feature_names_in_=[1, 2, 3, 4]), "must be a list of names"),
    (linear_model, setting(feature_map={"kind": ["x"]}), r"kind \['x'\] is not known"),
    (linear_model, setting(feature_map={"kind": "RandomNodes"}), "feature_map.n_nodes is missing"),
    (linear_model, text_of("[]"), "must be an object of JSON with a feature_map"),
    (linear_model, text_of("not JSON"), "Expecting value"),
    (linear_model, text_of(nested(100_000)), "nested too deeply"),
    (linear_model, text_of('{"feature_map": ' + "9" * 5000 + "}"), "integer string conversion"),
    (linear_model, lambda c: setattr(c, "kind", "PairwiseELM"), "is no setting|is missing"),
    (linear_model, lambda c: setattr(c, "kind", "../RankRLS"), r"holds '\.\./RankRLS', want"),
    (linear_model, lambda c: setattr(c, "kind", "a" * 10**6), "holds 'aaaaaaaaaaaaa"),
    # Feature maps
    (nodes_model, of_map_fit(activation_=["gaussian"] * 7), "activation_ must be one of"),
    (nodes_model, of_map_fit(activation_="exp"), "feature_map.fitted.activation_ must be one of"),
    (
        nodes_model,
        of_map(weight_range=[0, float("inf")]),
        "weight_range must be a pair low <= high",
    ),
    (nodes_model, of_map(random_state=2**32), "random_state must be None or an integer from 0"),
    (nodes_model, at("map_bias", set_one(2, -1.0)), "need b > 0"),
    (nodes_model, at("map_weights", set_one((1, 2), np.inf)), "map_weights must be finite"),
    (nodes_model, instead("map_weights", lambda a: a.T), "but outputs is 6 elsewhere|outputs is 4"),
    (nystroem_model, instead("map_whitening", lambda a: a[:-1]), "landmarks is 7 elsewhere"),
    (nystroem_model, instead("map_components", lambda a: a[:, :-1]), "but the features are 3"),
    (nystroem_model, at("map_component_indices", set_one(0, -2)), "indices must be row numbers"),
    (nystroem_model, of_map(kernel="precomputed"), "feature_map.kernel must be one of 'rbf',"),
    (nystroem_model, of_map(fitted={}), "feature_map.fitted.kernel_parameters_ is missing"),
    (nystroem_model, of_kernel(gamma=None), "a finite number > 0, got None"),
    (kernel_map_model, of_map_fit(n_features_in_=5), "but features is 4"),
    (kernel_map_model, without("map_rows"), "map_rows, or three arrays of CSR"),
    (kernel_map_model, of_map(degree=1001), "degree must be an integer from 1 to 1000"),
    (kernel_map_model, of_map(coef0=-1), "coef0 must be a finite number >= 0"),
    # Statistics
    (statistics, at("sums", set_one((0, 0), np.nan)), "sums must be finite"),
    (statistics, instead("sums", lambda a: a[:-1]), "columns is 4 elsewhere"),
    (statistics, instead("sums", lambda a: a[:1, :1]), "sums must have two rows and columns"),
    (statistics, without("sums"), "sums is missing"),
    (statistics, at("varying", set_one(0, -1)), "varying must be >= 0"),
    (
        statistics,
        instead("varying", lambda a: a[:-1]),
        "features, but the feature map makes 3|outp",
    ),
    (statistics, instead("ids", lambda a: a.view(np.int64)), "ids must be of uint64, got int64"),
    (statistics, without("state"), "state is missing"),
    (statistics, in_state(n_rows=-1), "state.n_rows must be an integer >= 0"),
    (statistics, at("ids", lambda a: a.fill(a[0])), "ids must ascend"),
    (statistics, in_state(ids=None), "ids must not be there if they are not checked"),
    (statistics, in_pairs(scope="global"), "mean must be there with scope 'global' alone"),
    (
        lambda: statistics(pairs=Pairs(scope="global")),
        without("mean"),
        "mean must be there with scope 'global'",
    ),
    (
        lambda: statistics(pairs=Pairs(scope="global")),
        in_state(weight=-1.0),
        "state.weight must be a finite number",
    ),
    (
        lambda: statistics(feature_map=pairgram.RandomNodes(3, random_state=0)),
        setting(feature_map=None),
        "'map_(bias|weights)' is no array",
    ),
]


@pytest.mark.parametrize(("make", "change", "message"), FORGED)
def test_forged_files_are_refused(make, change, message, tmp_path):
    path = tmp_path / "file"
    model = make()
    model.save(path)
    load = Pairgram.load if isinstance(model, Pairgram) else load_model
    contents = parse(path.read_bytes())
    path.write_bytes(pack(contents))
    load(path)  # the forger's file is sound but for the change
    change(contents)
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ") and len(str(caught.value)) < 600


def test_a_version_is_no_more_than_text(tmp_path):
    path = tmp_path / "file"
    linear_model().save(path)
    contents = parse(path.read_bytes())
    contents.metadata["version"] = "\x1b[2J" + "9" * 1000
    path.write_bytes(pack(contents))
    load_model(path)
    path.write_bytes(pack(replace(contents, settings={**contents.settings, "future": 1})))
    with pytest.raises(ValueError) as caught:
        load_model(path)
    assert "\x1b" not in str(caught.value) and len(str(caught.value)) < 400


def test_statistics_that_overflow_are_refused(tmp_path):
    path = tmp_path / "file"
    statistics(pairs=Pairs(scope="global")).save(path)
    contents = parse(path.read_bytes())
    contents.settings["state"]["weight"] = 1e308
    path.write_bytes(pack(contents))
    with pytest.raises(ValueError, match=r"file: .*overflow"):
        Pairgram.load(path)
