# SPDX-License-Identifier: Apache-2.0
"""What pydantic refuses, as field, value and expectation: the parts of an InputError."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from driver.errors import readable

_PREFIXES = {
    "Value error, ": "",
    "Input should be ": "",
    "String should match pattern ": "text that matches ",
}
"""How pydantic begins, and what reads well behind "expected"."""
_SAID = {
    "Input should be a valid dictionary": "keys with values",
    "Unable to parse input string as an integer, exceeded": "a smaller number",
}
"""How pydantic begins where it tells how it is made itself, and what to say instead."""
_NOT_JSON = "Invalid JSON: "
_MISSING = ("missing", "missing_argument")
_TOO_MANY = ("unexpected_positional_argument", "unexpected_keyword_argument")


def explain(
    error: ValidationError, model: type[BaseModel] | None = None
) -> tuple[str, object, str]:
    """Field, value and expectation of the error to tell.

    Where a key is misspelt, one is unknown and another is missing; the unknown one says more.
    `model` is what was validated: it has the keys that there are.
    """
    errors = error.errors(include_url=False)
    first = min(errors, key=lambda found: found["type"] != "extra_forbidden")
    location = [str(part) for part in first["loc"]]
    kind, context, said = first["type"], first.get("ctx", {}), first["msg"]
    if kind == "cross_check":
        return ".".join([*location, context["field"]]), context["value"], context["expected"]
    field = ".".join(location)
    if kind == "json_invalid":
        return field or "file", said.removeprefix(_NOT_JSON), "JSON"
    if kind in _MISSING:
        return field, "nothing", "a value"
    if kind in _TOO_MANY:
        return field, readable(first["input"]), "no such argument"
    if kind == "extra_forbidden":
        known = [] if model is None else _keys(model, location[:-1])
        near = get_close_matches(location[-1], known, 1)
        expected = f"no such key (perhaps {near[0]})" if near else "no such key"
        if known and not near:
            expected = f"one of {', '.join(known)}"
        return field, "an unknown key", expected
    said = next((better for begins, better in _SAID.items() if said.startswith(begins)), said)
    for begins, instead in _PREFIXES.items():
        said = instead + said.removeprefix(begins) if said.startswith(begins) else said
    return field, readable(first["input"]), said


def _keys(model: Any, location: Sequence[str]) -> list[str]:
    """The keys of the model that lies there in another; none where something else does."""
    for part in location:
        model = _inside(model, part)
    return list(model.model_fields) if _is_model(model) else []


def _inside(kind: Any, part: str) -> Any:
    """The type of a field, of a dictionary's values or of a list's items."""
    if _is_model(kind):
        return _plain(kind.model_fields[part].annotation) if part in kind.model_fields else None
    places: dict[Any, int] = {dict: 1, list: 0, tuple: 0}
    place = places.get(get_origin(kind))
    return None if place is None else _plain(get_args(kind)[place])


def _plain(kind: Any) -> Any:
    """Without what is said of it, and without None."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        others = [one for one in get_args(kind) if one is not NoneType]
        return _plain(others[0]) if len(others) == 1 else None
    return kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
