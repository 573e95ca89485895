# SPDX-License-Identifier: Apache-2.0
"""A flat netlist as Yosys writes it in JSON, with the instance that each cell came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driver.errors import InfrastructureError


@dataclass(frozen=True)
class FlatCell:
    """One cell; a bit is the number of its net, or a constant as a text."""

    kind: str
    block: str
    """Path of the instance that it came from."""
    source: str
    """File and line."""
    ports: dict[str, list[int | str]]
    outputs: tuple[str, ...]
    parameters: dict[str, str]

    def width(self, port: str) -> int:
        """Bits of a port; 0 where there is none."""
        return len(self.ports.get(port, ()))

    def inputs(self) -> Iterator[int]:
        """The nets that it reads, without clocks and constants."""
        for port, bits in self.ports.items():
            if port not in self.outputs and port != "CLK":
                yield from (bit for bit in bits if isinstance(bit, int))


@dataclass(frozen=True)
class FlatMemory:
    """A memory: `words` words of `width` bits."""

    block: str
    width: int
    words: int


@dataclass(frozen=True)
class FlatNetlist:
    """The cells of one module by name; `driver`: net → the cell that drives it."""

    cells: dict[str, FlatCell]
    memories: dict[str, FlatMemory]
    driver: dict[int, str]
    names: dict[int, str] = field(repr=False)
    """Net → a name that the RTL gave it."""
    output_pins: dict[str, list[int]]
    """Output of the module → its nets, without constants."""

    def register_name(self, cell: str) -> str:
        """The RTL's name of a register's output or of a memory; the cell's place without one."""
        found = self.cells[cell]
        if "MEMID" in found.parameters:
            return plain(found.parameters["MEMID"])
        for port in found.outputs:
            for bit in found.ports[port]:
                if isinstance(bit, int) and bit in self.names:
                    return self.names[bit]
        return f"{found.block}, {found.source}"


def plain(name: str) -> str:
    """A name without Yosys' escapes: $flatten\\u_core.\\u_ctrl.$5 is u_core.u_ctrl.$5."""
    return name.removeprefix("$flatten").replace("\\", "")


def block_of(name: str) -> str:
    """Path of the instance in the name of a cell or a memory."""
    path, _, _ = plain(re.sub(r"\$(?!flatten)", ".$", name, count=1)).partition(".$")
    return path.strip(".")


def load_flat(path: Path, module: str) -> FlatNetlist:
    """The netlist in a file of write_json. InfrastructureError when it is not of that form."""
    try:
        return _loaded(json.loads(path.read_text())["modules"][module])
    except (KeyError, ValueError, TypeError) as error:
        raise InfrastructureError(f"{path}: not a netlist of Yosys: {error!r}") from error


def _loaded(found: dict[str, Any]) -> FlatNetlist:
    cells: dict[str, FlatCell] = {}
    driver: dict[int, str] = {}
    for name, cell in found["cells"].items():
        outputs = tuple(p for p, way in cell["port_directions"].items() if way == "output")
        cells[name] = FlatCell(
            kind=cell["type"],
            block=block_of(name),
            source=cell["attributes"].get("src", ""),
            ports=cell["connections"],
            outputs=outputs,
            parameters=cell["parameters"],
        )
        for port in outputs:
            for bit in cell["connections"][port]:
                if isinstance(bit, int):
                    driver[bit] = name
    memories = {
        name: FlatMemory(_memory_block(name), memory["width"], memory["size"])
        for name, memory in found.get("memories", {}).items()
    }
    names: dict[int, str] = {}
    for name, net in found["netnames"].items():
        if not net["hide_name"]:
            for bit in net["bits"]:
                if isinstance(bit, int):
                    known = names.get(bit)
                    if known is None or _better(name, known):
                        names[bit] = name
    pins = {
        name: [bit for bit in port["bits"] if isinstance(bit, int)]
        for name, port in found.get("ports", {}).items()
        if port["direction"] == "output"
    }
    return FlatNetlist(cells, memories, driver, names, pins)


def _memory_block(name: str) -> str:
    """Named by the RTL, or by a pass that found a table in the code."""
    if "$" in name.removeprefix("$flatten"):
        return block_of(name)
    return plain(name).rpartition(".")[0]


def _better(name: str, known: str) -> bool:
    """A register's own name tells more than that of a port it is connected to."""
    return ("_q" in name, -len(name)) > ("_q" in known, -len(known))
