# SPDX-License-Identifier: Apache-2.0
"""A shrunk op as one file: a pytest test that needs nothing but an installed npu-cosim."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from driver.capture import Capsule
from driver.config import load_config
from driver.reproduce import option_words
from driver.results import OpRow, RunSpec, write_text
from regress.paths import CONFIG_FILE

_TEMPLATE = "test_shrunk.py.j2"
_WIDTH = 96


_ALONE: Mapping[str, object] = {"capsules": {}, "checkpoint": None, "allow_cpu": False}
"""The op is all that the test runs, and it runs on the NPU. It is named, as one op alone may well
have nothing but zeros."""


def write_test(folder: Path, capsule: Capsule, spec: RunSpec, row: OpRow, identity: str) -> Path:
    """Write test_shrunk_HASH.py, which fails for as long as the bug is there."""
    environment = Environment(  # noqa: S701 (Python, not HTML: every value goes through repr)
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["repr"] = repr
    own = CONFIG_FILE if _is_portable(spec) else spec.config_file
    alone = spec.model_copy(update={**_ALONE, "config_file": own})
    text = environment.get_template(_TEMPLATE).render(
        capsule=capsule,
        options=[*option_words(alone), "--op", "0"],
        configuration="" if own == spec.config_file else spec.config_file.read_text(),
        row=row,
        identity=identity,
        shapes=" ".join("×".join(map(str, shape)) or "()" for shape in row.shapes),
        document=_lines(capsule.document.model_dump_json()),
        storages={name: data.tobytes().hex() for name, data in capsule.data.items()},
    )
    path = folder / f"test_shrunk_{capsule.hash[:12]}.py"
    write_text(path, text)
    return path


def _is_portable(spec: RunSpec) -> bool:
    """Whether the configuration needs no file but its own."""
    return load_config(spec.config_file, spec.config).filelist is None


def _lines(text: str) -> list[str]:
    return [text[at : at + _WIDTH - 8] for at in range(0, len(text), _WIDTH - 8)]
