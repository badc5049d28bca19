"""The options of models, which all commands that fit a model share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairgram.cli import settings as known
from pairgram.cli.models import MODELS
from pairgram.cli.options import Threads, sharing
from pairgram.cli.settings import (
    Settings,
    parse_activation,
    parse_components,
    parse_features,
    parse_grid,
    parse_range,
)


def _kernels_by_model() -> str:
    names: dict[tuple[str, ...], list[str]] = {}
    for name, model in MODELS.items():
        if model.kernels:
            names.setdefault(model.kernels, []).append(name)
    return "; ".join(f"{', '.join(of)}: {', '.join(kernels)}" for kernels, of in names.items())


ModelName = Annotated[
    str,
    typer.Option(
        *("--model", "-m"),
        metavar="NAME",
        help="; ".join(f"{name}: {m.summary}" for name, m in MODELS.items()) + ".",
    ),
]
ModelOrAuto = Annotated[
    str | None,
    typer.Option(
        *("--model", "-m"),
        metavar="NAME",
        help="; ".join(f"{name}: {m.summary}" for name, m in MODELS.items())
        + ". [default: auto; rankrls for tables, or if options are given that auto does not take]",
        show_default=False,
    ),
]
Alphas = Annotated[
    str | None,
    typer.Option(
        metavar="GRID",
        help="Ridges to try: 0.1,1,10 or 2^-15:2^24 (all whole powers; 2^-30:2^20:2 is every "
        "second one) or auto (a grid that fits the data). [default: auto; for letor the grid of "
        "the model's paper]",
        show_default=False,
    ),
]
Cs = Annotated[
    str | None,
    typer.Option(
        "--Cs",
        metavar="GRID",
        help="Weights C of the errors to try, for models with C; written like --alphas. [default: "
        "the grid of the model's paper]",
        show_default=False,
    ),
]
PairNames = Annotated[
    list[str] | None,
    typer.Option(
        "--pairs",
        metavar="NAME",
        help=f"Weight of a pair: {', '.join(known.PAIRS)}. Repeat it to try several. "
        "[default: the model's: kept and dropped for rankrls, else kept]",
        show_default=False,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help=f"What to fit: {', '.join(known.TARGETS)} (2^label - 1). Repeat it to try both. "
        "[default: label]",
        show_default=False,
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--inputs",
        metavar="NAME",
        help=f"Scaling or quantiles of the features: {', '.join(known.INPUTS)}. Repeat it to try "
        "several. [default: none; models that mix all features in one number try standard too, or "
        "maxabs with --sparse, but not in letor]",
        show_default=False,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="FEATURES",
        help="Features whose weights must be >= 0: all, some such as 1,2,5, or names of columns of "
        "a table. [default: none]",
        show_default=False,
    ),
]
Prior = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        help="Model file to start from: the ridge is on the difference from it. If that model has "
        "seen the labels of FILE, held-out scores are too good. [default: none]",
        show_default=False,
    ),
]
Scale = Annotated[bool, typer.Option("--scale/--no-scale", help="Scale features before the ridge.")]
Weighting = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"What has weight 1 in the objective: {', '.join(known.WEIGHTINGS)}."
    ),
]
ScopeName = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="NAME",
        help=f"Which rows form pairs: {', '.join(known.SCOPES)} (all rows). [default: query; "
        "global for elmrank]",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Number of random nodes. [default: the model's]"),
]
Activation = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Activation of the nodes: {', '.join(known.ACTIVATIONS)}. With sigmoid+gaussian, "
        "half of the nodes have each; elmrank takes only one. [default: the model's]",
    ),
]
WeightRange = Annotated[
    str | None,
    typer.Option(metavar="A:B", help="Uniform range of the nodes' weights. [default: -1:1]"),
]
BiasRange = Annotated[
    str | None,
    typer.Option(metavar="A:B", help="Uniform range of the nodes' biases. [default: the model's]"),
]
RandomState = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Seed of the nodes or components. [default: 0]"),
]
Estimators = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of draws of the nodes of elmrank, whose scores are averaged. [default: 1]",
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Kernel in place of features or nodes. {_kernels_by_model()}. Kernels other than "
        "linear cost rows^2 memory and rows^3 time, except with rank-.... [default: none; rbf for "
        "rank-...]",
        show_default=False,
    ),
]
Gamma = Annotated[
    str | None,
    typer.Option(
        metavar="GRID",
        help="Gamma of the kernel: rbf exp(-gamma |a - b|^2), laplacian exp(-gamma |a - b|_1), "
        "polynomial (gamma a.b + coef0)^degree. Several values to try are written like --alphas. "
        "[default: 1 / features; for letor the grid of the model's paper]",
        show_default=False,
    ),
]
Degree = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Degree of --kernel polynomial. [default: 3]"),
]
Coef0 = Annotated[
    float | None,
    typer.Option("--coef0", metavar="X", help="Constant of --kernel polynomial. [default: 1]"),
]
Components = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Number of features that approximate the kernel. For rank-nystroem, all takes the "
        "kernel itself. [default: 500]",
        show_default=False,
    ),
]
Landmarks = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Landmarks of rank-nystroem: {', '.join(known.LANDMARKS)}. [default: uniform]",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="How long the models that --model auto tries may take together, at fixed rates that "
        "do not depend on the machine. [default: 30]",
    ),
]
Tol = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="RankSVMs stop at this share of the gradient at 0. [default: 0.001]",
    ),
]


def _settings(
    alphas: Alphas = None,
    Cs: Cs = None,
    pairs: PairNames = None,
    target: Targets = None,
    scale: Scale = False,
    inputs: Inputs = None,
    positive: Positive = None,
    prior: Prior = None,
    weighting: Weighting = "pairs",
    scope: ScopeName = None,
    nodes: Nodes = None,
    activation: Activation = None,
    weight_range: WeightRange = None,
    bias_range: BiasRange = None,
    estimators: Estimators = None,
    random_state: RandomState = None,
    kernel: Kernel = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    components: Components = None,
    landmarks: Landmarks = None,
    tol: Tol = None,
    budget: Budget = None,
    threads: Threads = None,
) -> Settings:
    return Settings(
        alphas=None if alphas is None else parse_grid(alphas, "--alphas", zero=True),
        Cs=None if Cs is None else parse_grid(Cs, "--Cs"),
        pairs=pairs or (),
        targets=target or ("label",),
        scale=scale,
        inputs=inputs or (),
        positive=False if positive is None else parse_features(positive, "--positive"),
        prior=prior,
        weighting=weighting,
        scope=scope,
        n_nodes=nodes,
        activation=() if activation is None else parse_activation(activation),
        weight_range=None if weight_range is None else parse_range(weight_range, "--weight-range"),
        bias_range=None if bias_range is None else parse_range(bias_range, "--bias-range"),
        n_estimators=estimators,
        random_state=random_state,
        kernel=kernel,
        gammas=None if gamma is None else parse_grid(gamma, "--gamma"),
        degree=degree,
        coef0=coef0,
        n_components=None if components is None else parse_components(components),
        landmarks=landmarks,
        tol=tol,
        budget=budget,
        n_threads=threads,
    )


with_settings = sharing("settings", _settings)
