# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: one or several rules per op, functions whose signature is the op's schema.

A rule's parameters after the builder and the result carry the names, order, defaults and types
of the ATen schema; pydantic checks a call against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from keyword import iskeyword
from typing import Any

from pydantic import ConfigDict, ValidationError, validate_call

from driver.config import HwConfig
from driver.lower.builder import ProgramBuilder
from driver.runtime.views import TensorView
from driver.validation import explain

Scalar = bool | int | float
Arg = TensorView | tuple["Arg", ...] | bool | int | float | str | None
"""An op's argument; dtypes, layouts and memory formats by name ("float32")."""
Results = tuple[TensorView | None, ...]
"""Where an op's outputs go, in its order; None for what is no tensor, or not wanted."""
RuleFunction = Callable[..., None]
"""Adds the packets of one op: (builder, result or results, then the op's schema)."""
Condition = Callable[..., bool]
"""Whether a rule computes a call: (HwConfig, result or results), then the arguments by name, of
which it declares those that it looks at, and `**_`."""

DEFAULT_RULE = "default"
"""The name of an op's only rule."""
_CHECKED = ConfigDict(arbitrary_types_allowed=True, strict=True)


@dataclass(frozen=True)
class LoweringRule:
    """One way to compute an op."""

    name: str
    function: RuleFunction
    condition: Condition | None
    """None: the rule computes every call of the op."""

    def applies(
        self, hw: HwConfig, given: Any, args: Sequence[Arg], kwargs: Mapping[str, Arg]
    ) -> bool:
        """Whether the rule computes the call; TypeError for one that the schema does not have."""
        if self.condition is None:
            return True
        call = signature(self.function).bind(None, given, *args, **kwargs)
        call.apply_defaults()
        _, _, *arguments = call.arguments.items()
        return self.condition(hw, given, **dict(arguments))


@dataclass(frozen=True)
class Lowering:
    """How one op becomes packets. `outputs` None: rules get all results."""

    rules: tuple[LoweringRule, ...]
    """Best first; each op has at least one."""
    outputs: int | None

    def applicable(
        self,
        builder: ProgramBuilder,
        args: Sequence[Arg],
        kwargs: Mapping[str, Arg],
        results: Results,
    ) -> tuple[LoweringRule, ...]:
        """The rules that compute this call, best first."""
        given = self._given(builder, results)
        named = {_parameter(key): kwargs[key] for key in kwargs}
        try:
            return tuple(r for r in self.rules if r.applies(builder.hw, given, args, named))
        except (TypeError, ValidationError):
            return self.rules[:1]  # which says what is wrong with the arguments

    def apply(
        self,
        builder: ProgramBuilder,
        args: Sequence[Arg],
        kwargs: Mapping[str, Arg],
        results: Results,
        wanted: str | None,
    ) -> None:
        """Add the packets of the rule `wanted`, by default the best one. UnsupportedOp for
        arguments that the schema does not have, or that the rule does not compute."""
        rules = {rule.name: rule for rule in self.applicable(builder, args, kwargs, results)}
        name = next(iter(rules), None) if wanted is None else wanted
        if name not in rules:
            known = ", ".join(rules) or "arguments that a rule of the op computes"
            raise builder.unsupported("rule", wanted, known)
        rule = rules[name]
        named = {_parameter(key): kwargs[key] for key in kwargs}
        try:
            rule.function(builder, self._given(builder, results), *args, **named)
        except ValidationError as error:
            where = error.errors()[0]["loc"][0]
            _, value, expected = explain(error)
            field = f"argument {_name(rule.function, where)}"
            raise builder.unsupported(field, value, expected) from None

    def _given(self, builder: ProgramBuilder, results: Results) -> Any:
        """The results as rules take them."""
        if self.outputs == 1:
            if len(results) != 1 or results[0] is None:
                raise builder.unsupported("results", len(results), "1 tensor")
            return results[0]
        if self.outputs is not None and len(results) != self.outputs:
            raise builder.unsupported("results", len(results), str(self.outputs))
        return results


def _name(function: RuleFunction, where: int | str) -> str:
    """A parameter's name, from its name or its position."""
    names = list(signature(function).parameters)
    return str(where if isinstance(where, str) else [*names, "too many"][min(where, len(names))])


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


class LoweringTable:
    """The ops of one family. Fill it with the decorator `op`."""

    def __init__(self, *, deferred: bool = True) -> None:
        """`deferred`: pydantic reads the types of a rule when it is first called. A process calls
        few of them, and reading them all takes half a second of its start."""
        self.rows: dict[str, Lowering] = {}
        self._config = _CHECKED | ConfigDict(defer_build=deferred)

    def op(
        self,
        *names: str,
        outputs: int | None = 1,
        rule: str = DEFAULT_RULE,
        when: Condition | None = None,
    ) -> Callable[[RuleFunction], RuleFunction]:
        """Declare the decorated function as a rule of these overloads, after those declared before.

        "aten.add.Tensor" and the like; a name without namespace is one of aten's, the ending
        ".default" may be left out. With one output the function gets its view, else a tuple.
        """

        def declare(function: RuleFunction) -> RuleFunction:
            check = validate_call(config=self._config)
            found = LoweringRule(rule, check(function), None if when is None else check(when))
            for name in names:
                self.add(overload(name), found, outputs)
            return function

        return declare

    def function(self, name: str) -> RuleFunction:
        """The best rule of an overload without conditions."""
        return self.rows[overload(name)].rules[0].function

    def add(self, name: str, rule: LoweringRule, outputs: int | None = 1) -> None:
        """Declare a rule of one overload, by its full name."""
        before = self.rows[name].rules if name in self.rows else ()
        twice = [other.name for other in before if other.name == rule.name]
        assert not twice, f"two rules {twice} of {name}"
        assert all(other.condition for other in before), f"{name}: {rule.name} is never best"
        self.rows[name] = Lowering((*before, rule), outputs)


_FULL = 2
"""Dots in an overload's full name."""


def overload(name: str) -> str:
    """The full name: "add.Tensor" → "aten.add.Tensor", "exp" → "aten.exp.default"."""
    namespace, dot, rest = name.partition(".")
    if name.count(".") == _FULL:
        return name
    if dot and namespace in ("aten", "npu"):
        return name if "." in rest else f"{name}.default"
    return f"aten.{name}" if dot else f"aten.{name}.default"
