# SPDX-License-Identifier: Apache-2.0
"""JSON schema of sim_config.yaml for editors: docs/sim_config.schema.json. Checks nothing itself.

Made of the records that do check (driver/config.py, driver/backend/named.py, settings.py); what
lies between fields, an editor does not see.
"""

from __future__ import annotations

import json
from typing import Any

from driver.backend.named import (
    BACKENDS_SECTION,
    DEVICE_SECTION,
    PlugInEntry,
    RemoteEntry,
    TorchDeviceSection,
    UioEntry,
)
from driver.config import CONFIG_NAME, HwConfig
from regress.nightly.settings import SECTION, NightlyConfig

FILE = "docs/sim_config.schema.json"
_DEFINITIONS = "$defs"


def config_schema() -> str:
    """The text of the file."""
    hardware = HwConfig.model_json_schema()
    nightly = NightlyConfig.model_json_schema()
    parts = hardware.pop(_DEFINITIONS)
    for part in parts.values():  # the rest may stand in `common`
        part.pop("required", None)
    definitions = parts | nightly.pop(_DEFINITIONS)
    entries = [kind.model_json_schema() for kind in (RemoteEntry, UioEntry, PlugInEntry)]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sim_config.yaml",
        "type": "object",
        "additionalProperties": False,
        "required": ["configs"],
        "properties": {
            "common": _partial(hardware, "What a configuration takes when it does not state it."),
            "configs": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": f"^{CONFIG_NAME.pattern}$"},
                "additionalProperties": _partial(hardware, "A configuration of the hardware."),
            },
            SECTION: nightly,
            DEVICE_SECTION: TorchDeviceSection.model_json_schema(),
            BACKENDS_SECTION: {
                "type": "object",
                "description": "Backends by a name of your own.",
                "propertyNames": {"pattern": f"^{CONFIG_NAME.pattern}$"},
                "additionalProperties": {"anyOf": entries},
            },
        },
        _DEFINITIONS: dict(sorted(definitions.items())),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _partial(hardware: dict[str, Any], description: str) -> dict[str, Any]:
    """Some fields of a configuration: its name is the key, the rest may stand in `common`."""
    fields = {name: field for name, field in hardware["properties"].items() if name != "name"}
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": fields,
    }
