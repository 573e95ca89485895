# SPDX-License-Identifier: Apache-2.0
"""Mismatches of the device in a UVM test, apart from errors of the bench itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Mismatch(Exception):
    """The device did something else than expected, or never came to an end. The text is one line.
    Any other exception is an error of the bench."""


@contextmanager
def located(where: Callable[[], str]) -> Iterator[None]:
    """A Mismatch in the block also says how far the test has come."""
    try:
        yield
    except Mismatch as error:
        raise Mismatch(f"{error}; {where()}") from None


def expect(what: str, actual: object, expected: object) -> None:
    """Mismatch unless the device's `actual` is `expected`; the text has integers in hexadecimal."""
    if actual != expected:
        raise Mismatch(f"{what}: got {_readable(actual)}, expected {_readable(expected)}")


def expect_bytes(what: str, address: int, actual: bytes, expected: bytes) -> None:
    """The same for memory; the text names the first byte that differs."""
    if len(actual) != len(expected):
        raise Mismatch(f"{what} at {address:#x}: got {len(actual)} bytes, expected {len(expected)}")
    for at, (left, right) in enumerate(zip(actual, expected, strict=True)):
        if left != right:
            count = sum(a != b for a, b in zip(actual, expected, strict=True))
            where = f"byte {address + at:#x} ({count} of {len(actual)} bytes differ)"
            raise Mismatch(f"{what}: got {left:#04x}, expected {right:#04x} in {where}")


def _readable(value: object) -> str:
    return f"{value:#x}" if type(value) is int else str(value)
