# SPDX-License-Identifier: Apache-2.0
"""YAML without its surprises: what it reads is what the author sees.

Refused: duplicate keys, anchors and aliases, explicit tags, keys that are not text. Only `true`
and `false` are booleans; `no`, `010`, `1:30` and dates are text. Knows nothing of what keys mean.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from driver.errors import InputError
from driver.regular import read_regular

_NULL = "tag:yaml.org,2002:null"
_BOOL = "tag:yaml.org,2002:bool"
_INT = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"

_MAX_DIGITS = 40

_IMPLICIT: tuple[tuple[str, str, str], ...] = (
    (_NULL, r"~|null|", "~n"),
    (_BOOL, r"true|false", "tf"),
    (_INT, r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)", "-+0123456789"),
    (_FLOAT, r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-+0123456789"),
)
"""Tag, the plain scalars that have it, and their first characters; anything else is text."""


class _Refused(Exception):
    """A construct that this reader does not allow. Args: field, value, expected."""


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader with its own implicit types, which stops at what the module docstring refuses."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        place = _place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise _Refused(place, f"alias *{event.anchor}", "the value itself")
        if getattr(event, "anchor", None) is not None:
            raise _Refused(place, f"anchor &{event.anchor}", "the value alone")
        if getattr(event, "tag", None) is not None:
            raise _Refused(place, f"tag {event.tag}", "the value alone")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            place = _place(key_node.start_mark)
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _Refused(place, repr(key), "a key that is text")
            if key in seen:
                raise _Refused(place, f"key {key} again", "each key once")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_yaml_int(self, node: ScalarNode) -> int:
        text = self.construct_scalar(node).replace("_", "")
        if len(text) > _MAX_DIGITS:
            expected = f"a number of at most {_MAX_DIGITS} digits"
            raise _Refused(_place(node.start_mark), text, expected)
        return int(text, 16 if "0x" in text else 10)


for _tag, _pattern, _first in _IMPLICIT:
    _StrictLoader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})\\Z"), [*_first, ""])
_StrictLoader.add_constructor(_INT, _StrictLoader.construct_yaml_int)


def _place(mark: Any) -> str:
    """Where a yaml mark points, counted from 1."""
    return "file" if mark is None else f"line {mark.line + 1} column {mark.column + 1}"


def read_yaml(path: Path) -> Any:
    """The one document in `path`. InputError, with line and column, on anything refused."""
    try:
        text = read_regular(path, "a readable YAML file").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(path, f"byte {error.start}", "not UTF-8", "YAML in UTF-8") from error
    loader = None
    try:
        loader = _StrictLoader(text)
        return loader.get_single_data()
    except _Refused as error:
        raise InputError(path, *error.args) from error
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "a syntax error"
        raise InputError(path, _place(error.problem_mark), problem, "YAML") from error
    except yaml.YAMLError as error:
        raise InputError(path, "file", error, "YAML") from error
    except (RecursionError, ValueError) as error:
        raise InputError(path, "file", error, "YAML of ordinary depth and numbers") from error
    finally:
        if loader is not None:
            loader.dispose()
