# SPDX-License-Identifier: Apache-2.0
"""What pydantic refuses is told as field, value and expectation, in words of ours."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from driver.frozen import Frozen
from driver.validation import explain


class Inner(Frozen):
    kind: Literal["a", "b"]


class Outer(Frozen):
    size: Annotated[int, Field(ge=1)]
    inner: Inner | None = None
    named: dict[str, tuple[Annotated[Inner, Field()], ...]] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"size": 0}', ("size", "0", "greater than or equal to 1")),
        ('{"size": 1, "inner": {"kind": "c"}}', ("inner.kind", "'c'", "'a' or 'b'")),
        ("{}", ("size", "nothing", "a value")),
        ('{"sise": 1}', ("sise", "an unknown key", "no such key (perhaps size)")),
        ('{"zzz": 1}', ("zzz", "an unknown key", "one of size, inner, named")),
        (
            '{"size": 1, "inner": {"kid": "a"}}',
            ("inner.kid", "an unknown key", "no such key (perhaps kind)"),
        ),
        (
            '{"size": 1, "named": {"x": [{"zzz": 1}]}}',
            ("named.x.0.zzz", "an unknown key", "one of kind"),
        ),
        ("[]", ("", "[]", "an object")),
        ('{"size"', ("file", "EOF while parsing an object at line 1 column 7", "JSON")),
    ],
)
def test_what_is_wrong_and_what_was_expected(text: str, told: tuple[str, object, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate_json(text)
    assert explain(caught.value, Outer) == told
