# SPDX-License-Identifier: Apache-2.0
"""The schema that editors get says what the strict readers say, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from driver.strict_yaml import read_yaml
from regress.nightly.schema import FILE
from regress.paths import CONFIG_FILE, ROOT


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads((ROOT / FILE).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _document() -> Any:
    return json.loads(json.dumps(read_yaml(CONFIG_FILE)))


def test_the_projects_file_fits_and_names_the_schema(validator: Draft202012Validator) -> None:
    assert list(validator.iter_errors(_document())) == []
    assert f"$schema={FILE}" in CONFIG_FILE.read_text(encoding="utf-8")


MISTAKES: list[tuple[tuple[str, ...], object]] = [
    (("comon",), {}),
    (("configs", "small", "array_size"), 12),
    (("configs", "small", "lanez"), 4),
    (("configs", "Small"), {}),
    (("common", "fma_latency"), 0),
    (("common", "memory", "regions", "weights", "base"), 32),
    (("nightly", "jobs"), 0),
    (("nightly", "tiers", "ci", "directed", "config"), ["small"]),
    (("nightly", "tiers", "ci", "directed", "configs"), []),
    (("nightly", "tests", "bus", "shards"), "two"),
    (("nightly", "tolerances", "cycles_percent"), -1),
]


@pytest.mark.parametrize(("path", "value"), MISTAKES, ids=[".".join(p) for p, _ in MISTAKES])
def test_an_editor_sees_the_mistake(
    validator: Draft202012Validator, path: tuple[str, ...], value: object
) -> None:
    document = _document()
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert len(list(validator.iter_errors(document))) >= 1
