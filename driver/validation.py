# SPDX-License-Identifier: Apache-2.0
"""What pydantic refuses, as field, value and expectation: the parts of an InputError."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from pydantic import ValidationError

from driver.errors import readable

_PREFIXES = {
    "Value error, ": "",
    "Input should be ": "",
    "String should match pattern ": "text that matches ",
}
"""How pydantic begins, and what reads well behind "expected"."""
_NOT_JSON = "Invalid JSON: "
_MISSING = ("missing", "missing_argument")
_TOO_MANY = ("unexpected_positional_argument", "unexpected_keyword_argument")


def explain(error: ValidationError, known: Iterable[str] = ()) -> tuple[str, object, str]:
    """Field, value and expectation of the error to tell.

    Where a key is misspelt, one is unknown and another is missing; the unknown one says more.
    `known` has the keys that there are, for a key that is none of them.
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
        near = get_close_matches(location[-1], list(known), 1)
        return (
            field,
            "an unknown key",
            f"no such key (perhaps {near[0]})" if near else "no such key",
        )
    for begins, instead in _PREFIXES.items():
        said = instead + said.removeprefix(begins) if said.startswith(begins) else said
    return field, readable(first["input"]), said
