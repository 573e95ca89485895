# SPDX-License-Identifier: Apache-2.0
"""Known failures: their owner, their reason, and the last day on which they are expected.

Owns regress/baselines/known_issues.yaml and its strict schema. An entry past its day expects
nothing any more: what it covered is red again.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import regex
from pydantic import Field, ValidationError, field_validator

from driver.errors import InputError
from driver.frozen import Frozen
from driver.strict_yaml import read_yaml
from driver.validation import explain
from regress.paths import ROOT

KNOWN_ISSUES = ROOT / "regress" / "baselines" / "known_issues.yaml"

_ANYTHING = "\0"
"""What no failure says: a pattern that fits it fits them all."""
_LIMIT_S = 1.0
"""For one failure. A pattern can have more ways to fit than anybody waits for."""
Text = Annotated[str, Field(min_length=1)]


class KnownIssue(Frozen):
    """One entry. A failure is this issue when all that the entry says is true of it."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.#-]+$")]
    owner: Text
    why: Text
    expires: date
    """Last day on which the failure is expected."""
    signature: Text
    """Regular expression, found anywhere in the failure's signature."""
    test: Annotated[str, Field(pattern=r"^\w+$")] | None = None
    """As TEST= names it: one of tb/tests."""
    config: str | None = None

    @field_validator("expires", mode="before")
    @classmethod
    def _day(cls, value: object) -> object:
        return date.fromisoformat(value) if isinstance(value, str) else value

    @field_validator("test")
    @classmethod
    def _exists(cls, value: str | None) -> str | None:
        if value is not None and not (ROOT / "tb" / "tests" / f"{value}.py").is_file():
            raise ValueError("a test of tb/tests, as TEST= names it")
        return value

    @field_validator("signature")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            pattern = regex.compile(value)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(f"a regular expression ({error})") from error
        if pattern.search("") or pattern.search(_ANYTHING):
            raise ValueError("a regular expression that does not fit whatever fails")
        return value

    def covers(self, test: str, config: str) -> bool:
        """Whether the entry speaks of this test and configuration."""
        return self.test in (None, test) and self.config in (None, config)

    def matches(self, test: str, config: str, signature: str) -> bool:
        """Whether a failure is this issue. InputError when the pattern takes too long to say."""
        if not self.covers(test, config):
            return False
        try:
            return regex.search(self.signature, signature, timeout=_LIMIT_S) is not None
        except TimeoutError as error:
            expected = f"a regular expression that is done with a failure within {_LIMIT_S:g} s"
            place = f"the signature of {self.id}"
            raise InputError(KNOWN_ISSUES, place, self.signature, expected) from error


def load_known_issues(path: Path = KNOWN_ISSUES) -> tuple[KnownIssue, ...]:
    """The entries of the file. InputError names the entry and the field that is wrong."""
    document = read_yaml(path)
    entries = document.get("issues") if isinstance(document, dict) else None
    if not isinstance(entries, list) or (isinstance(document, dict) and len(document) != 1):
        raise InputError(path, "issues", document, "one key `issues` with a list of entries")
    issues = tuple(_issue(path, number, entry) for number, entry in enumerate(entries))
    names = [issue.id for issue in issues]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InputError(path, f"issues[{number}].id", name, "an id of its own")
    return issues


def _issue(path: Path, number: int, entry: Any) -> KnownIssue:
    try:
        return KnownIssue.model_validate(entry)
    except ValidationError as error:
        field, value, expected = explain(error, KnownIssue)
        place = f"issues[{number}].{field}" if field else f"issues[{number}]"
        raise InputError(path, place, value, expected) from error
