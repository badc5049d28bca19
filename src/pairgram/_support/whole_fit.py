"""`WholeFit`, the base class of estimators and maps: a failed fit leaves them unchanged."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self

from pairgram._support.arrays import column_names, with_entries
from pairgram._support.checks import ArgumentError, did_you_mean, name_column


class WholeFit:
    """If `fit` raises, this class restores the estimator's attributes from before the call."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)  # type: ignore[attr-defined]

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Make an estimator whose parameters are known."""
        if not named.keys() <= set(known := cls._get_param_names()):
            _refuse_unknown(cls.__name__, named, known)
        return super().__new__(cls)

    @classmethod
    @functools.cache  # scikit-learn reads the signature anew, which is half the time of a clone
    def _get_param_names(cls) -> list[str]:
        return super()._get_param_names()  # type: ignore[misc]


def by_keyword(method: Callable[..., Any]) -> Any:
    """Make a method explain which arguments it takes if it gets others.

    Python's own message would name the private class that has the method.
    """

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named)
        except TypeError:
            _check_arguments(method, self, args, named)
            raise

    return checked


def _check_arguments(
    method: Callable[..., Any], self: object, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Raise a TypeError if a method does not take its arguments."""
    name = f"{type(self).__name__}.{method.__name__}"
    parameters = list(inspect.signature(method).parameters.values())[1:]
    if all(p.kind is not p.VAR_KEYWORD for p in parameters):
        _refuse_unknown(name, named, [p.name for p in parameters])
    taken = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    more = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    if len(args) > len(taken) and more:
        example = ", ".join([*taken, f"{more[0]}={more[0]}"])
        raise TypeError(
            f"{name} takes {' and '.join(taken)} by position, got {len(args)} arguments: "
            f"{', '.join(more)} are keywords, as in {method.__name__}({example})"
        )


# What to do in place of keywords that are others' words, or were ours in earlier versions.
ELSEWHERE = {
    **dict.fromkeys(("keep_covariance", "return_std"), "take posterior(model, X, y).std(X)"),
    "offset": "add the offsets of the rows to the scores, model.predict(X) + offset",
    "qid": "rows are scored alone: compare them before, by within_lists(X, qid)",
    "propensity": "give y=Clicks(clicked, propensity)",
    **dict.fromkeys(("scope", "weighting", "target"), "give pairs=Pairs(kind, {}=...)"),
    "positive": "RankRLS takes constraint=Positive(columns)",
    "l1_ratio": "RankRLS takes constraint=ElasticNet(l1_ratio)",
    "n_nonzero_coefs": "RankRLS takes constraint=MaxNonzero(k)",
    "inputs": "give feature_map='standard', 'quantile' or another word, or a Pipeline with a map",
    "missing": "give feature_map=Fill('mean'), or a Pipeline that begins with it",
    **dict.fromkeys(
        ("kernel", "gamma", "degree", "coef0"),
        "RankRLS and extreme learning machines take feature_map=Kernel(...)",
    ),
    **dict.fromkeys(
        ("weight_range", "bias_range"), "give feature_map=RandomNodes(n_nodes, {}=...)"
    ),
    "max_iter": "a fit takes at most 100 Newton steps, and mostly a dozen",
    "form": "the smaller system is solved, and form_ says which",
    "group": "give qid=np.repeat(np.arange(len(group)), group), an id for every row",
    **dict.fromkeys(("init_score", "base_margin"), "give offset="),
    **dict.fromkeys(("n_threads", "n_jobs", "num_threads"), "use with pairgram.threads(n):"),
    **dict.fromkeys(
        ("eval_set", "eval_group", "eval_qid"),
        "searches, whose names end in CV, and AutoRanker take validation=(X, y, qid)",
    ),
    **dict.fromkeys(
        ("early_stopping_rounds", "callbacks", "init_model", "xgb_model", "verbose_eval"),
        "it is not needed, because there are no rounds of boosting",
    ),
}


def _refuse_unknown(called: str, named: dict[str, Any], known: list[str]) -> None:
    """Raise the TypeError of a keyword that is not known, with what takes its place."""
    for name in named:
        if name not in known:
            advice = did_you_mean(name, known)
            if name in ELSEWHERE:
                advice = f": {ELSEWHERE[name].format(name)}"
            raise TypeError(
                f"{called}() got an unexpected keyword argument {name!r}{advice}"
            ) from None


def _whole(fit: Callable[..., Any]) -> Any:
    @functools.wraps(fit)
    def fit_or_restore(self: Any, *args: Any, **named: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **named)
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            _explain(error, fit, self, args, named)
            raise

    return fit_or_restore


def _explain(
    error: BaseException, fit: Any, model: object, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Let an error of a fit name the column, or raise one that says what the fit takes."""
    if isinstance(error, TypeError):
        _check_arguments(fit, model, args, named)
    if isinstance(error, ArgumentError) and error.column is not None:
        X = args[0] if args else named.get("X")
        name_column(error, column_names(with_entries(X)))
