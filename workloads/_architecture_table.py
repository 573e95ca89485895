# SPDX-License-Identifier: Apache-2.0
"""The table architectures.yaml: which models of transformers are surveyed. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from driver.errors import InputError
from driver.frozen import Frozen
from driver.strict_yaml import read_yaml

FILE: Final = Path(__file__).with_name("architectures.yaml")
Kind = Literal[
    "tokens", "padded", "translation", "image", "image and text", "features", "waveform", "series"
]
"""What the model is given."""


class Part(Frozen):
    """A configuration: transformers' class, and its sizes beyond those of the base."""

    config: str
    base: str | None = None
    sizes: Mapping[str, Any] = {}


class Architecture(Part):
    """A row of the file."""

    model: str
    inputs: Kind
    parts: Mapping[str, Part] = {}


class ArchitectureTable(Frozen):
    """The whole file. `bases`: sizes that rows share."""

    bases: Mapping[str, Mapping[str, Any]]
    architectures: Mapping[str, Architecture]


def table() -> ArchitectureTable:
    """The file. InputError names the field that is wrong."""
    try:
        return ArchitectureTable.model_validate(read_yaml(FILE))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(FILE, field, first["input"], first["msg"]) from error
