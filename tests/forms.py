"""Least-squares rankers that solve the form that they are told, in place of the smaller system."""

from dataclasses import replace

import pairgram


def in_form(form, model):
    """Return a ranker that solves this form, and so do its clones; "smaller" leaves it as it is."""
    if form == "smaller":
        return model
    base = type(model)

    def _spec(self):
        return replace(base._spec(self), form=form)

    model.__class__ = type(base.__name__, (base,), {"_spec": _spec, "__module__": base.__module__})
    return model


def __getattr__(name):
    """Return a function that makes a ranker of a class, with the argument `form` besides."""
    kind = getattr(pairgram, name)
    return lambda *args, form="smaller", **named: in_form(form, kind(*args, **named))
