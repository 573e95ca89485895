# SPDX-License-Identifier: Apache-2.0
"""Hardware configurations: sim_config.yaml as frozen, validated values.

Owns what a configuration may say and the RTL parameters that follow from it. Every mistake in the
file is one InputError that names file, dotted field, value and what was expected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from driver.errors import InputError
from driver.frozen import Frozen
from driver.isa.csr import REGISTERS
from driver.strict_yaml import read_yaml
from driver.validation import explain

ALIGNMENT_BYTES = 64
"""Regions, allocations and descriptors start at multiples of this."""

_ADDRESS_LIMIT = 1 << 64
_REGISTERS_BYTES = max(REGISTERS) + 4
CONFIG_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_SECTIONS = ("common", "configs", "nightly", "backends", "torch_device")
"""The last three are of no interest here: regress/nightly/settings.py and driver/backend/named.py
read them."""
CONFIG_FILE = Path(
    os.environ.get("NPU_CONFIG_FILE") or Path(__file__).parents[1] / "sim_config.yaml"
)
"""Of programs that are not told another one."""

Address = Annotated[int, Field(ge=0, lt=_ADDRESS_LIMIT, multiple_of=ALIGNMENT_BYTES)]
SizeBytes = Annotated[
    int, Field(ge=ALIGNMENT_BYTES, lt=_ADDRESS_LIMIT, multiple_of=ALIGNMENT_BYTES)
]


def refuse(field: str, value: object, expected: str) -> NoReturn:
    """Fail a check between fields; `field` is relative to the model that checks."""
    raise PydanticCustomError(
        "cross_check", "{expected}", {"field": field, "value": value, "expected": expected}
    )


class Region(Frozen):
    """Addresses [base, base + size_bytes) of the physical map."""

    base: Address
    size_bytes: SizeBytes

    @property
    def limit(self) -> int:
        """The first address beyond the region."""
        return self.base + self.size_bytes

    @model_validator(mode="after")
    def _fits(self) -> Region:
        # The end has 64 bits as well: MemLimit of the RTL.
        if self.limit >= _ADDRESS_LIMIT:
            most = _ADDRESS_LIMIT - ALIGNMENT_BYTES - self.base
            refuse("size_bytes", self.size_bytes, f"at most {most} from there")
        return self


class Regions(Frozen):
    """The parts of device memory that the allocator hands out separately."""

    weights: Region
    activations: Region

    def named(self) -> dict[str, Region]:
        """Name → region, by ascending address."""
        pairs = ((name, getattr(self, name)) for name in type(self).model_fields)
        return dict(sorted(pairs, key=lambda pair: pair[1].base))


class MemoryMap(Frozen):
    """Device memory: regions that together are one range [base, limit) without a hole."""

    regions: Regions

    @property
    def base(self) -> int:
        """MemBase of the RTL."""
        return min(region.base for region in self.regions.named().values())

    @property
    def limit(self) -> int:
        """MemLimit of the RTL: the first address beyond the memory."""
        return max(region.limit for region in self.regions.named().values())

    @model_validator(mode="after")
    def _contiguous(self) -> MemoryMap:
        (_, low), (name, high) = self.regions.named().items()
        if high.base != low.limit:
            refuse(f"regions.{name}.base", f"{high.base:#x}", f"{low.limit:#x}, the end below")
        return self


class Dram(Frozen):
    """Timing of the simulated DRAM."""

    latency_cycles: Annotated[int, Field(ge=1, le=4096)]
    single_port: bool
    """Whether it serves one burst at a time, a read or a write; needs `whole_writes`."""


class Timeouts(Frozen):
    """When waiting for the device is given up."""

    wait_s: Annotated[float, Field(gt=0, le=86_400)]
    """Wall-clock seconds that one wait for an interrupt may take."""
    wait_cycles: Annotated[int, Field(ge=1_000, lt=1 << 63)]
    """Device cycles that one wait for an interrupt may take."""
    hang_cycles: Annotated[int, Field(gt=0xFFFF, lt=1 << 63)]
    """Device cycles without progress after which a device is hung; more than any DRAM latency."""


def _power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


def _path(value: object) -> Path:
    if not isinstance(value, (str, Path)):
        raise PydanticCustomError("path", "a path")
    return Path(value)


class HwConfig(Frozen):
    """One configuration of the hardware, its memory map and the limits of its simulation."""

    name: str
    array_size: Literal[8, 16, 32]
    bus_bits: Literal[128, 256, 512]
    fma_latency: Annotated[int, Field(ge=1, le=8)]
    acc_tiles: Annotated[int, Field(ge=1, le=128)]
    row_tiles: Annotated[int, Field(ge=1, le=16)]
    weight_slots: Annotated[int, Field(ge=2, le=32)]
    vector_lanes: Literal[4, 8, 16]
    whole_writes: bool
    """Whether a write is asked for only when all data of its burst is there."""
    memory: MemoryMap
    registers: Region
    dram: Dram
    timeouts: Timeouts
    fusion: bool
    """Whether the passes of one op are fused where that keeps their bits (docs/fusion.md)."""
    filelist: Annotated[Path, BeforeValidator(_path)] | None = None
    """Sources of another NPU, which is simulated in place of the project's (docs/extending.md).
    Relative to the configuration's file in the file, absolute here."""

    def rtl_parameters(self) -> dict[str, int]:
        """Parameter of npu_top → value."""
        return {
            "ArraySize": self.array_size,
            "BusBits": self.bus_bits,
            "FmaLatency": self.fma_latency,
            "AccTiles": self.acc_tiles,
            "RowTiles": self.row_tiles,
            "WeightSlots": self.weight_slots,
            "VectorLanes": self.vector_lanes,
            "WholeWrites": int(self.whole_writes),
            "MemBase": self.memory.base,
            "MemLimit": self.memory.limit,
        }

    def bench_parameters(self) -> dict[str, int]:
        """Parameter of the bench around npu_top → value."""
        return {"DramSinglePort": int(self.dram.single_port)}

    @model_validator(mode="after")
    def _consistent(self) -> HwConfig:
        for field in ("acc_tiles", "row_tiles"):
            if not _power_of_two(getattr(self, field)):
                refuse(field, getattr(self, field), "a power of two")
        if self.row_tiles > self.acc_tiles:
            refuse("row_tiles", self.row_tiles, f"at most acc_tiles, {self.acc_tiles}")
        if self.dram.single_port and not self.whole_writes:
            refuse("whole_writes", "false", "true beside dram.single_port, or long copies hang")
        if self.registers.size_bytes < _REGISTERS_BYTES:
            expected = f"at least {_REGISTERS_BYTES}, or not all registers are there"
            refuse("registers.size_bytes", self.registers.size_bytes, expected)
        if self.registers.base < self.memory.limit and self.memory.base < self.registers.limit:
            memory = f"{self.memory.base:#x} to {self.memory.limit - 1:#x}"
            refuse("registers.base", f"{self.registers.base:#x}", f"none of the memory, {memory}")
        return self


def load_config(path: Path, name: str) -> HwConfig:
    """The configuration `name` of the file. InputError for any mistake, also in the others."""
    configs = load_configs(path)
    if name not in configs:
        raise InputError(path, "configs", name, f"one of {', '.join(configs)}")
    return configs[name]


def load_configs(path: Path) -> dict[str, HwConfig]:
    """All configurations of the file, by name."""
    document = _mapping(path, "file", read_yaml(path))
    for section in document:
        if section not in _SECTIONS:
            raise InputError(path, section, "an unknown key", f"one of {', '.join(_SECTIONS)}")
    common = _mapping(path, "common", document.get("common", {}))
    entries = _mapping(path, "configs", document.get("configs"))
    if not entries:
        raise InputError(path, "configs", "nothing", "at least one configuration")
    return {name: _config(path, name, common, entry) for name, entry in entries.items()}


def _mapping(path: Path, field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(path, field, "nothing" if value is None else value, "keys with values")
    return value


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of both; of one that both state as keys with values, these. Else the own value."""
    both = {
        key: _merged(common[key], value) if isinstance(value, dict) else value
        for key, value in own.items()
        if isinstance(common.get(key), dict)
    }
    return {**common, **own, **both}


def _states(fields: object, keys: Sequence[str]) -> bool:
    """Whether the fields have a value at a path of keys."""
    for key in keys:
        if not isinstance(fields, dict) or key not in fields:
            return False
        fields = fields[key]
    return True


def _config(path: Path, name: str, common: dict[str, Any], entry: object) -> HwConfig:
    """One configuration: what the entry does not state itself it takes from `common`."""
    if not CONFIG_NAME.fullmatch(name):
        raise InputError(path, f"configs.{name}", name, "a name of a-z, 0-9 and _")
    own = _mapping(path, f"configs.{name}", entry)
    for section, fields in (("common", common), (f"configs.{name}", own)):
        if "name" in fields:
            raise InputError(path, f"{section}.name", "an unknown key", "the name as the key only")
    try:
        config = HwConfig.model_validate({**_merged(common, own), "name": name})
    except ValidationError as error:
        field, value, expected = explain(error, HwConfig)
        keys = field.split(".")
        inherited = _states(common, keys) and not _states(own, keys)
        section = "common" if inherited else f"configs.{name}"
        raise InputError(path, f"{section}.{field}", value, expected) from error
    if config.filelist is None:
        return config
    filelist = (path.parent / config.filelist).resolve()
    if not filelist.is_file():
        section = "common" if "filelist" in common.keys() - own.keys() else f"configs.{name}"
        raise InputError(path, f"{section}.filelist", config.filelist, "an existing file list")
    return config.model_copy(update={"filelist": filelist})
