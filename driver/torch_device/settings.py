# SPDX-License-Identifier: Apache-2.0
"""How many devices there are, and what is behind them: read once from the environment and
the configuration file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import driver.config
from driver.backend import check_name
from driver.backend.named import MOST_DEVICES, torch_device_section
from driver.backend.settings import CA_FILE, TOKEN, TOKEN_FILE
from driver.errors import ENVIRONMENT, InputError

CONFIG_FILE = driver.config.CONFIG_FILE

_VARIABLES = (
    *("NPU_DEVICES", "NPU_BACKEND", "NPU_CONFIG_FILE", "NPU_CONFIG", "NPU_DEBUG", "NPU_CHECK"),
    *("NPU_FUSION", TOKEN, TOKEN_FILE, CA_FILE),
)
_ALIKE = 0.85
"""Of the letters of a name, from which on it is taken for a misspelt variable. Others that begin
with NPU_ may be of other software."""


def _refuse_misspelt(environment: Mapping[str, str]) -> None:
    ours = {name for name in environment if name.startswith("NPU_")}
    for name in sorted(ours.difference(_VARIABLES)):
        meant = get_close_matches(name, _VARIABLES, n=1, cutoff=_ALIKE)
        if meant:
            expected = f"no such variable, or {meant[0]}"
            raise InputError(ENVIRONMENT, name, environment[name], expected)


@dataclass(frozen=True)
class DeviceSettings:
    """Devices npu:0 to npu:(count - 1), alike, each with a backend and memory of its own."""

    count: int = 1
    backend: str = "cmodel"
    """A name of driver.backend.backend_names(), or remote://host:port."""
    config: str = "default"
    """A configuration of sim_config.yaml."""
    debug: int = 0
    """Level of driver.torch_device.debug."""
    check: bool = False
    """Whether every op is judged as it runs."""
    fusion: bool = True
    """False: no passes are fused, whatever the configuration says."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The backend's own."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> DeviceSettings:
        """The variables of docs/torch-device.md, and the section torch_device of the configuration
        file for those that are not set. InputError for a wrong value."""
        _refuse_misspelt(environment)
        section = torch_device_section(CONFIG_FILE)
        count = environment.get("NPU_DEVICES", str(section.devices))
        if not (count.isascii() and count.isdecimal()) or not 1 <= int(count) <= MOST_DEVICES:
            raise InputError(ENVIRONMENT, "NPU_DEVICES", count, f"a number, 1 to {MOST_DEVICES}")
        backend = environment.get("NPU_BACKEND", section.backend)
        if backend != cls.backend:
            check_name(backend, ENVIRONMENT, "NPU_BACKEND")
        check = environment.get("NPU_CHECK", "0")
        if check not in ("0", "1"):
            raise InputError(ENVIRONMENT, "NPU_CHECK", check, "0 or 1")
        fusion = environment.get("NPU_FUSION", "1")
        if fusion not in ("0", "1"):
            raise InputError(ENVIRONMENT, "NPU_FUSION", fusion, "0 or 1")
        level = environment.get("NPU_DEBUG", "0")
        if level not in ("0", "1", "2", "3"):
            raise InputError(ENVIRONMENT, "NPU_DEBUG", level, "0 to 3")
        config = environment.get("NPU_CONFIG", section.config)
        return cls(int(count), backend, config, int(level), check == "1", fusion == "1")
