"""Least-squares rankers that solve the form that they are told, in place of the smaller system."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pairgram


def in_form(form: str, model: Any) -> Any:
    """Return a ranker that solves this form, and so do its clones; "auto" leaves it as it is."""
    if form == "auto":
        return model
    base = type(model)

    def _spec(self: Any) -> Any:
        return replace(base._spec(self), form=form)

    members = {"_spec": _spec, "__module__": base.__module__}
    model.__class__ = type(base.__name__, (base,), members)
    return model


def __getattr__(name: str) -> Any:
    """Return a function that makes a ranker of a class, with the argument `form` besides."""
    kind = getattr(pairgram, name)

    def make(*args: Any, form: str = "auto", **named: Any) -> Any:
        return in_form(form, kind(*args, **named))

    return make
