"""Entries of docstrings that say "As in `RankRLS`." hold on the pages what they refer to.

A docstring is short to read in the code, and a page of the reference can be read alone.
"""

import inspect
import re

import pairgram

SECTIONS = ("Parameters", "Attributes")
REFERENCE = re.compile(r"[Aa]s in `(\w+)(?:\.(\w+))?`")


def setup(app):
    """Change docstrings before numpydoc reads them."""
    app.connect("autodoc-process-docstring", _complete, priority=100)
    return {"parallel_read_safe": True}


def _complete(app, what, name, obj, options, lines):
    lines[:] = completed(lines)


def completed(lines):
    """Return the lines of a docstring, in which entries are whole."""
    found, section = [], None
    for head, body in _parts(lines):
        if body and set(body[0]) == {"-"}:
            section = head
        is_entry = section in SECTIONS and " :" in head
        found += _whole(head, body) if is_entry else [head, *body]
    return found


def _parts(lines):
    """Return the lines that begin at the margin, each with those below it that do not."""
    parts = []
    for line in lines:
        is_below = parts and (not line.strip() or line[0] == " " or set(line) == {"-"})
        if is_below:
            parts[-1][1].append(line)
        else:
            parts.append((line, []))
    return parts


def _whole(head, body):
    """Return the lines of an entry, or those of the entries that it refers to."""
    names, _, kind = head.partition(" :")
    names, kind = [name.strip() for name in names.split(",")], kind.strip()
    text = [line for line in body if line.strip()]
    value = REFERENCE.search(kind) if kind.startswith("a value as in") else None
    refers = REFERENCE.match(kind) or (REFERENCE.match(text[0].strip()) if text else None)
    if value is not None:  # and the entry itself says what is more
        known = [(name, _entry(value, name)) for name in names]
        parts = [[f"{name} : {kind}", *own[1], ""] for name, own in known if own is not None]
        return [*(line for part in parts for line in part), *body]
    if refers is None:
        return [head, *body]
    rest = " ".join(line.strip() for line in text)
    rest = rest[refers.end() :].lstrip(".,; ") if refers.string != kind else rest
    if rest.startswith("but "):
        return [head, *body]
    more = ["", f"    {rest[0].upper()}{rest[1:]}"] if rest else []
    entries, others = {}, []
    for name in names:
        known = _entry(refers, name)
        if known is None:
            others.append(name)
        else:
            entries.setdefault((known[0], tuple(known[1])), []).append(name)
    lines = [f"{', '.join(others)} : {kind}".rstrip(), *body] if others else []
    for (own, lines_of), shared in entries.items():
        lines += [f"{', '.join(shared)} : {own}".rstrip(), *lines_of, *more]
    return [*lines, ""] if body[-1:] == [""] else lines


def _entry(refers, name):
    """Return the type and the lines of an entry of what is referred to; None if it has none."""
    owner = getattr(pairgram, refers[1], None)
    if refers[2] is not None:
        owner = getattr(owner, refers[2], None)
    text = None if owner is None else inspect.getdoc(owner)
    for head, body in _parts((text or "").splitlines()):
        names, colon, kind = head.partition(" :")
        names = [one.strip() for one in names.split(",")]
        if colon and name in names:
            own = _kinds(kind.strip(), len(names))[names.index(name)]
            first, *lines = _whole(f"{name} : {own}", body)
            while lines and not lines[-1].strip():
                del lines[-1]
            return first.partition(" :")[2].strip(), lines
    return None


def _kinds(kind, n):
    """Return the type of each of n parameters that share an entry."""
    types, comma, defaults = kind.partition(", default=")
    types, defaults = types.split(", "), defaults.split(" and " if " and " in defaults else ", ")
    if n == 1 or len(types) != n or len(defaults) != n:
        return [kind] * n
    return [f"{one}{comma}{default}" for one, default in zip(types, defaults, strict=True)]
