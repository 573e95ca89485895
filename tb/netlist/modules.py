# SPDX-License-Identifier: Apache-2.0
"""Distinct modules of a netlist with its hierarchy: one for all instances that are the same.

The slang front end writes a module for each instance. Two of them are the same when their texts
differ only in places of the source and in the numbers of names that Yosys made.
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
    _visit(f"\\{top}", found, known)
    return {one.name: one for one in known.values()}


def text_of(module: Module, modules: Mapping[str, Module]) -> str:
    """RTLIL of the module by itself; the modules in it are black boxes."""
    inside = sorted({name for _, name in module.instances})
    stubs = "".join(modules[name].stub for name in inside)
    return f"module \\{module.name}\n{module.body}end\n{stubs}"


def _visit(name: str, found: Mapping[str, tuple[str, str]], known: dict[str, Module]) -> Module:
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
        inside = _visit(match[2], found, known).name
        instances.append((match[3], inside))
        return f"{match[1]}\\{inside} \\{match[3]}"

    body = _numbered(_INSTANCE.sub(renamed, _PLACE.sub("", body)))
    digest = hashlib.sha256(body.encode()).hexdigest()[:_DIGEST_DIGITS]
    known[name] = Module(kind, f"{kind}_{digest}", body, tuple(instances), black_box=False)
    return known[name]


def _numbered(body: str) -> str:
    """With the names that Yosys made numbered in the order of the text."""
    numbers: dict[str, str] = {}
    return _MADE.sub(lambda match: numbers.setdefault(match[0], f"$n{len(numbers)}"), body)
