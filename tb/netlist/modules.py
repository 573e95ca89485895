# SPDX-License-Identifier: Apache-2.0
"""Distinct modules of a netlist with its hierarchy: one for all instances that are the same.

The slang front end writes a module for each instance. Two of them are the same when their texts
differ only in places of the source, in the numbers of names that Yosys made, in the constants of
comparisons, and in which slice of an input port is read: so do the rows of the array, each of which
has its number as a parameter. The first of them stands for all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from driver.errors import InfrastructureError

_MODULE = re.compile(r"^((?:attribute [^\n]*\n)*)module (\S+)\n(.*?)^end\n", re.M | re.S)
_INSTANCE = re.compile(r"^( *cell )(\\\S+) \\(\S+)$", re.M)
_PLACE = re.compile(r"^ *attribute \\(?:src|hdlname|top) .*\n", re.M)
_MADE = re.compile(r'\$[^\s"]*\$\d+[^\s"\[\]]*|\$\d+\b')
_PORT = re.compile(r"^ *wire .*(?:input|output|inout) \d.*\n", re.M)
_COMPARISON = re.compile(r"^  cell \$(?:eq|le) .*\n(?:    .*\n)*", re.M)
_CONSTANT = re.compile(r"(?<=\d')[01]+$", re.M)
_SLICE = re.compile(r"(\\\w+_i) \[(\d+)(?::(\d+))?\]")
_DIGEST_DIGITS = 12


@dataclass(frozen=True)
class Module:
    """One of them, to be mapped without the modules that it instantiates."""

    kind: str
    """Its name in the RTL."""
    name: str
    """The kind with a hash of the text and of the modules in it; the kind alone for a black box."""
    body: str
    instances: tuple[tuple[str, str], ...]
    """Name in the RTL and name of the module, of each instance in it."""
    black_box: bool

    @property
    def stub(self) -> str:
        """Its ports as a black box."""
        ports = "".join(_PORT.findall(self.body))
        return f"attribute \\blackbox 1\nmodule \\{self.name}\n{ports}end\n"


def distinct_modules(netlist: str, top: str) -> dict[str, Module]:
    """Name → module, those of lower levels first and that of `top` last.

    `netlist`: RTLIL without processes. InfrastructureError when it is not of the known form.
    """
    found = {match[2]: (match[1], match[3]) for match in _MODULE.finditer(netlist)}
    if f"\\{top}" not in found:
        raise InfrastructureError(f"the netlist of Yosys has no module {top}")
    known: dict[str, Module] = {}
    _visit(f"\\{top}", found, known, {})
    return {one.name: one for one in known.values()}


def text_of(module: Module, modules: Mapping[str, Module]) -> str:
    """RTLIL of the module by itself; the modules in it are black boxes."""
    inside = sorted({name for _, name in module.instances})
    stubs = "".join(modules[name].stub for name in inside)
    return f"module \\{module.name}\n{module.body}end\n{stubs}"


def _visit(
    name: str,
    found: Mapping[str, tuple[str, str]],
    known: dict[str, Module],
    shapes: dict[tuple[str, str], Module],
) -> Module:
    """The module of that name. `known`, `shapes`: those so far, by name and by kind and shape."""
    if name in known:
        return known[name]
    attributes, body = found[name]
    kind = name[1:].partition("$")[0]
    if "\\blackbox" in attributes:
        known[name] = Module(kind, kind, _PLACE.sub("", body), (), black_box=True)
        return known[name]
    instances: list[tuple[str, str]] = []

    def renamed(match: re.Match[str]) -> str:
        if match[2] not in found:
            raise InfrastructureError(f"the netlist of Yosys has no module {match[2]}")
        inside = _visit(match[2], found, known, shapes).name
        instances.append((match[3], inside))
        return f"{match[1]}\\{inside} \\{match[3]}"

    body = _numbered(_INSTANCE.sub(renamed, _PLACE.sub("", body)))
    digest = hashlib.sha256(body.encode()).hexdigest()[:_DIGEST_DIGITS]
    module = Module(kind, f"{kind}_{digest}", body, tuple(instances), black_box=False)
    known[name] = shapes.setdefault((kind, _shape(body)), module)
    return known[name]


def _shape(body: str) -> str:
    """Without the constants of comparisons; of a slice of an input, only its width."""
    compared = _COMPARISON.sub(lambda cell: _CONSTANT.sub("", cell[0]), body)
    return _SLICE.sub(lambda part: f"{part[1]} {_width(part[2], part[3])}", compared)


def _width(high: str, low: str | None) -> int:
    return int(high) - int(low or high) + 1


def _numbered(body: str) -> str:
    """With the names that Yosys made numbered in the order of the text."""
    numbers: dict[str, str] = {}
    return _MADE.sub(lambda match: numbers.setdefault(match[0], f"$n{len(numbers)}"), body)
