# SPDX-License-Identifier: Apache-2.0
"""The YAML reader: which text it takes for which value, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from driver.errors import InputError
from driver.strict_yaml import read_yaml


def read(tmp_path: Path, text: str | bytes) -> object:
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


VALUES: list[tuple[str, object]] = [
    ("no", "no"),
    ("NO", "NO"),
    ("Yes", "Yes"),
    ("on", "on"),
    ("True", "True"),
    ("true", True),
    ("false", False),
    ("null", None),
    ("", None),
    ("~", None),
    ("0", 0),
    ("010", "010"),
    ("0o10", "0o10"),
    ("0b1", "0b1"),
    ("1:30", "1:30"),
    ("2001-01-01", "2001-01-01"),
    ("0x1000_0000", 0x1000_0000),
    ("1_000", 1000),
    ("-7", -7),
    ("1.5", 1.5),
    ("1e3", 1000.0),
    (".5", ".5"),
    (".nan", ".nan"),
    ("'1'", "1"),
    ('"true"', "true"),
    ("=", "="),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_plain_scalars_mean_what_they_look_like(tmp_path: Path, text: str, value: object) -> None:
    result = read(tmp_path, f"key: {text}\n")
    assert result == {"key": value}
    assert isinstance(result, dict)
    assert type(result["key"]) is type(value)


REFUSED = [
    ("a: 1\nb: 2\na: 3\n", "line 3 column 1", "key a again"),
    ("a: {b: 1, b: 1}\n", "line 1 column 11", "key b again"),
    ("a: &x 1\nb: *x\n", "line 1 column 4", "anchor &x"),
    ("b: *x\n", "line 1 column 4", "alias *x"),
    ("<<: {a: 1}\n<<: {a: 1}\n", "line 2 column 1", "key << again"),
    ("a: !!python/object:os.system x\n", "line 1 column 4", "tag"),
    ("a: !!bool yes\n", "line 1 column 4", "tag"),
    ("1: a\n", "line 1 column 1", "a key that is text"),
    ("true: a\n", "line 1 column 1", "a key that is text"),
    ("? [a]\n: b\n", "line 1 column 3", "a key that is text"),
    ("a: [1\n", "line 2 column 1", "expected YAML"),
    ("a: 1\n b: 2\n", "line 2 column 3", "expected YAML"),
    ("a: 1\n---\nb: 2\n", "line 2 column 1", "expected YAML"),
    ("a: \x00\n", "file", "expected YAML"),
    ("a: 0x_\n", "file", "ordinary depth and numbers"),
    ("a: " + "1" * 5000, "line 1 column 4", "a number of at most 40 digits"),
    ("[" * 5000, "file", "ordinary depth and numbers"),
    (b"a: \xff\n", "byte 3", "YAML in UTF-8"),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refused_text_is_one_line_with_its_place(
    tmp_path: Path, text: str | bytes, place: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    line = str(caught.value)
    assert line.startswith(f"{tmp_path / 'file.yaml'}: {place}: ")
    assert message in line
    assert "\n" not in line


def test_a_merge_key_is_an_ordinary_key(tmp_path: Path) -> None:
    assert read(tmp_path, "<<: {a: 1}\nb: 2\n") == {"<<": {"a": 1}, "b": 2}


def test_a_missing_file_and_a_folder_are_input_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(InputError, match=r"file: got .*, expected a readable YAML file"):
            read_yaml(path)
