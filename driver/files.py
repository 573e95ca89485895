# SPDX-License-Identifier: Apache-2.0
"""Records in JSON files: written whole or not at all, read with one line for what is wrong."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from driver.errors import InputError, unwritable
from driver.regular import read_regular
from driver.validation import explain

_Model = TypeVar("_Model", bound=BaseModel)


def write_json(path: Path, record: BaseModel) -> None:
    """Write a record whole or not at all. InputError when the place cannot be written,
    InfrastructureError when the disk is full."""
    write_text(path, record.model_dump_json(indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all. InputError when the place cannot be written,
    InfrastructureError when the disk is full."""
    fresh: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        fresh = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(0o644)
        fresh.replace(path)
    except OSError as error:
        raise unwritable(path, "file", error) from error
    finally:
        if fresh is not None:
            fresh.unlink(missing_ok=True)


def read_json(path: Path, model: type[_Model]) -> _Model:
    """A record from its file. InputError names the file and the first field that is wrong."""
    try:
        text = read_regular(path, "a readable file").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(path, f"byte {error.start}", "not UTF-8", "JSON in UTF-8") from error
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        field, value, expected = explain(error)
        raise InputError(path, field or "file", value, expected) from error
