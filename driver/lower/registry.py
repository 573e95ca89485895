# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: a function per op whose signature is the op's schema.

A lowering's parameters after the builder and the result carry the names, order, defaults and types
of the ATen schema; pydantic checks a call against them. Knows no op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from keyword import iskeyword
from typing import Any

from pydantic import ConfigDict, ValidationError, validate_call

from driver.lower.builder import ProgramBuilder
from driver.runtime.views import TensorView

Scalar = bool | int | float
Arg = TensorView | tuple["Arg", ...] | bool | int | float | str | None
"""An op's argument; dtypes, layouts and memory formats by name ("float32")."""
Results = tuple[TensorView | None, ...]
"""Where an op's outputs go, in its order; None for what is no tensor, or not wanted."""
Rule = Callable[..., None]

_CHECKED = ConfigDict(arbitrary_types_allowed=True, strict=True)


@dataclass(frozen=True)
class Lowering:
    """How one op becomes packets. `outputs` None: the function gets all results."""

    rule: Rule
    outputs: int | None

    def apply(
        self,
        builder: ProgramBuilder,
        args: Sequence[Arg],
        kwargs: Mapping[str, Arg],
        results: Results,
    ) -> None:
        """Add the op's packets. UnsupportedOp for arguments that the schema does not have."""
        given: Any = results
        if self.outputs == 1:
            if len(results) != 1 or results[0] is None:
                raise builder.unsupported("results", len(results), "1 tensor")
            (given,) = results
        elif self.outputs is not None and len(results) != self.outputs:
            raise builder.unsupported("results", len(results), str(self.outputs))
        try:
            self.rule(builder, given, *args, **{_parameter(key): kwargs[key] for key in kwargs})
        except ValidationError as error:
            first = error.errors()[0]
            raise builder.unsupported(
                f"argument {self._name(first['loc'][0])}", first["input"], first["msg"]
            ) from None

    def _name(self, where: int | str) -> str:
        """A parameter's name, from its name or its position."""
        names = list(signature(self.rule).parameters)
        return str(
            where if isinstance(where, str) else [*names, "too many"][min(where, len(names))]
        )


def _parameter(name: str) -> str:
    """The parameter for an argument of the schema: `from_` for `from`, a word of Python's."""
    return f"{name}_" if iskeyword(name) else name


def views_in(values: Iterable[Arg]) -> Iterator[TensorView]:
    """The tensors among arguments, those in lists included."""
    for value in values:
        if isinstance(value, TensorView):
            yield value
        elif isinstance(value, tuple | list):
            yield from views_in(value)


class Table:
    """The ops of one family. Fill it with the decorator `op`."""

    def __init__(self) -> None:
        self.rows: dict[str, Lowering] = {}

    def op(self, *names: str, outputs: int | None = 1) -> Callable[[Rule], Rule]:
        """Declare the decorated function as the lowering of these overloads.

        "aten.add.Tensor" and the like; a name without namespace is one of aten's, one that ends in
        ".default" may leave it away. With one output the function gets its view, else a tuple.
        """

        def declare(rule: Rule) -> Rule:
            checked = validate_call(config=_CHECKED)(rule)
            for name in names:
                self.add(overload(name), checked, outputs)
            return rule

        return declare

    def add(self, name: str, rule: Rule, outputs: int | None = 1) -> None:
        """Declare one overload, by its full name."""
        assert name not in self.rows, f"two lowerings of {name}"
        self.rows[name] = Lowering(rule, outputs)


def overload(name: str) -> str:
    """The full name: "add.Tensor" → "aten.add.Tensor", "exp" → "aten.exp.default"."""
    namespace, dot, rest = name.partition(".")
    if dot and namespace in ("aten", "npu"):
        return name if "." in rest else f"{name}.default"
    return f"aten.{name}" if dot else f"aten.{name}.default"
