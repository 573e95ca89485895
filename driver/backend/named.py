# SPDX-License-Identifier: Apache-2.0
"""The sections `backends` and `torch_device` of sim_config.yaml: backends under names of the user's
own, with what each needs, and what is behind PyTorch's device."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from driver.backend.handshake import read_token
from driver.backend.settings import ClientSettings, UioSettings
from driver.config import CONFIG_NAME
from driver.errors import InputError
from driver.frozen import Frozen
from driver.regular import read_regular
from driver.strict_yaml import read_yaml
from driver.validation import explain

BACKENDS_SECTION = "backends"
DEVICE_SECTION = "torch_device"
_MAY_HAVE_SECTION = re.compile(
    rf"""^ ?(?:\?\s*)?["']?(?:{BACKENDS_SECTION}|{DEVICE_SECTION})\b""", re.MULTILINE
)
"""However a key of the document is written; sections of others are indented further."""
M = TypeVar("M", bound=Frozen)
MOST_DEVICES = 16

Text = Annotated[str, Field(min_length=1)]
Offset = Annotated[int, Field(ge=0, lt=1 << 63, multiple_of=4096)]


class RemoteEntry(Frozen):
    """A device behind `npu-cosim serve`."""

    kind: Literal["remote"]
    address: Text
    """host:port."""
    token_file: Text | None = None
    ca_file: Text | None = None


class UioEntry(Frozen):
    """A board: driver.backend.settings.UioSettings."""

    kind: Literal["uio"]
    registers: Text
    memory: Text
    interrupt: Text | None = None
    registers_offset: Offset = 0
    memory_offset: Offset = 0


class PlugInEntry(Frozen):
    """A backend of this project or of a plug-in, with options of its constructor."""

    kind: Text
    options: Annotated[dict[str, bool | int | float | str], Field(default_factory=dict)]


Entry = RemoteEntry | UioEntry | PlugInEntry
_KINDS: dict[object, type[RemoteEntry | UioEntry]] = {"remote": RemoteEntry, "uio": UioEntry}


class TorchDeviceSection(Frozen):
    """What is behind PyTorch's device unless the environment says something else."""

    backend: Text = "cmodel"
    config: Text = "default"
    devices: Annotated[int, Field(ge=1, le=MOST_DEVICES)] = 1


def named_backends(path: Path) -> dict[str, Entry]:
    """The backends of the file, by name. InputError for any mistake in the section."""
    section = _section(path, BACKENDS_SECTION)
    found: dict[str, Entry] = {}
    for name, entry in section.items():
        field = f"{BACKENDS_SECTION}.{name}"
        if not CONFIG_NAME.fullmatch(name):
            raise InputError(path, field, name, "a name of a-z, 0-9 and _")
        if not isinstance(entry, dict):
            raise InputError(path, field, entry, "keys with values")
        model: type[Entry] = _KINDS.get(entry.get("kind"), PlugInEntry)
        found[name] = _parsed(model, path, field, entry)
    return found


def torch_device_section(path: Path) -> TorchDeviceSection:
    """The section of the file, or its defaults. InputError for any mistake in it."""
    section = _section(path, DEVICE_SECTION)
    return _parsed(TorchDeviceSection, path, DEVICE_SECTION, section)


def options_of(entry: Entry) -> dict[str, Any]:
    """What the constructor of the backend gets besides the configuration and the address."""
    if isinstance(entry, RemoteEntry):
        token = None if entry.token_file is None else read_token(_path(entry.token_file))
        ca_file = None if entry.ca_file is None else _path(entry.ca_file)
        return {"settings": ClientSettings(token, ca_file)}
    if isinstance(entry, UioEntry):
        interrupt = None if entry.interrupt is None else _path(entry.interrupt)
        files = (_path(entry.registers), _path(entry.memory), interrupt)
        return {"settings": UioSettings(*files, entry.registers_offset, entry.memory_offset)}
    return dict(entry.options)


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _parsed(model: type[M], path: Path, field: str, section: dict[str, Any]) -> M:
    try:
        return model.model_validate(section)
    except ValidationError as error:
        inner, value, expected = explain(error, model)
        raise InputError(path, f"{field}.{inner}", value, expected) from error


@cache
def _document(path: Path) -> dict[str, Any]:
    """The file; nothing where it has neither section, which is found without reading YAML: every
    process that imports torch asks."""
    try:
        text = read_regular(path, "a configuration file").decode("utf-8")
    except (InputError, UnicodeDecodeError):
        return {}  # whoever needs the file says what is wrong with it
    document = read_yaml(path) if _MAY_HAVE_SECTION.search(text) else {}
    return document if isinstance(document, dict) else {}


def _section(path: Path, name: str) -> dict[str, Any]:
    section = _document(path).get(name, {})
    if not isinstance(section, dict):
        raise InputError(path, name, "nothing" if section is None else section, "keys with values")
    return section
