# SPDX-License-Identifier: Apache-2.0
"""What a remote backend and its server tell each other as JSON: who they are, and errors.

The client proves that it knows the token by an HMAC of the server's random bytes; the token itself
is never sent.
"""

from __future__ import annotations

import hmac
import ipaddress
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from driver.backend.wire import ProtocolError
from driver.errors import (
    AddressError,
    AssertionFailed,
    BackendDied,
    DeviceHung,
    InfrastructureError,
    InputError,
    NeverSettles,
    NpuError,
    RegisterError,
    SimulatorTimeout,
    Standstill,
    shorten,
)
from driver.frozen import Frozen
from driver.regular import read_regular

CHALLENGE_BYTES = 32
_TOKEN_CHARACTERS = range(16, 1025)
_TOKEN_FILE_LIMIT = 4096
_TEXT = 1000
_NO_COUNT = -1

Text = Annotated[str, Field(max_length=_TEXT)]
Address = Annotated[int, Field(ge=0, lt=1 << 64)]
M = TypeVar("M", bound=Frozen)


class Hello(Frozen):
    """The client's first message."""

    proof: Annotated[str, Field(max_length=64)]
    """HMAC-SHA-256 of the challenge under the token, hexadecimal; empty without a token."""
    memory_base: Address
    memory_limit: Address


class Welcome(Frozen):
    """The server's answer, when it has opened a device for the client."""

    backend: Annotated[str, Field(max_length=200)]
    version: Annotated[str, Field(max_length=200)]
    features: Annotated[tuple[Annotated[str, Field(max_length=64)], ...], Field(max_length=64)]
    max_frame_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 30)]


class RemoteError(Frozen):
    """An error of the server's device: its class, and what it was made of."""

    kind: Annotated[str, Field(max_length=64)]
    numbers: Annotated[tuple[int, ...], Field(max_length=8)] = ()
    texts: Annotated[tuple[Text, ...], Field(max_length=24)] = ()


def parsed(model: type[M], payload: bytes) -> M:
    """The record in a message. ProtocolError when it is another or none."""
    try:
        return model.model_validate_json(payload)
    except ValidationError as error:
        raise ProtocolError(f"a message that is no {model.__name__}") from error


# ---------------------------------------------------------------------- the token
def proof(token: bytes | None, challenge: bytes) -> str:
    """What shows that one knows the token."""
    return "" if token is None else hmac.digest(token, challenge, "sha256").hex()


def proves(given: str, token: bytes | None, challenge: bytes) -> bool:
    """Whether the proof is right; takes as long for each wrong one."""
    return token is None or hmac.compare_digest(given.encode(), proof(token, challenge).encode())


def token_of(text: str, place: str, field: str) -> bytes:
    """A token as given by the user. InputError for one that is too short or not printable."""
    token = text.strip()
    if len(token) not in _TOKEN_CHARACTERS or not token.isascii() or not token.isprintable():
        low, high = _TOKEN_CHARACTERS.start, _TOKEN_CHARACTERS.stop - 1
        raise InputError(
            place, field, f"{len(token)} characters", f"{low} to {high} printable ones of ASCII"
        )
    return token.encode()


def read_token(path: Path) -> bytes:
    """The token in a file that only its owner can read. InputError otherwise."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(path, "token", error.strerror, "a readable file") from error
    text = read_regular(path, "a readable file", _TOKEN_FILE_LIMIT).decode(errors="replace")
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(path, "token", f"mode {mode & 0o777:o}", "a file of mode 600")
    return token_of(text, str(path), "token")


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# ---------------------------------------------------------------------- errors
def _hung(error: DeviceHung) -> RemoteError:
    at = error.standstill
    completed = _NO_COUNT if at.completed is None else at.completed
    numbers = (at.cycle, at.quiet_cycles, completed)
    return RemoteError(
        kind="DeviceHung", numbers=numbers, texts=(error.what, at.state or "", *at.ports)
    )


def to_remote(error: NpuError) -> RemoteError:
    """An error of the server's device, to be sent."""
    match error:
        case RegisterError():
            return RemoteError(
                kind="RegisterError", numbers=(error.offset,), texts=(error.expected,)
            )
        case AddressError():
            numbers = (error.address, error.size_bytes)
            return RemoteError(kind="AddressError", numbers=numbers, texts=(error.expected,))
        case DeviceHung():
            return _hung(error)
        case AssertionFailed():
            texts = (error.file, error.scope, shorten(error.message, _TEXT), error.log)
            return RemoteError(
                kind="AssertionFailed", numbers=(error.line, error.cycle), texts=texts
            )
        case InputError():
            value = shorten(str(error.value), _TEXT)
            return RemoteError(kind="InputError", texts=(error.field, value, error.expected))
    kinds = (NeverSettles, SimulatorTimeout, BackendDied)
    kind = next((kind for kind in kinds if isinstance(error, kind)), InfrastructureError)
    return RemoteError(kind=kind.__name__, texts=(shorten(str(error), _TEXT),))


def _hung_again(error: RemoteError, name: str) -> DeviceHung:
    (cycle, quiet, completed), (what, state, *ports) = error.numbers, error.texts
    known = None if completed == _NO_COUNT else completed
    return DeviceHung(what, Standstill(cycle, quiet, tuple(ports), state or None, known))


_FROM_REMOTE: dict[str, Callable[[RemoteError, str], NpuError]] = {
    "RegisterError": lambda e, name: RegisterError(e.numbers[0], e.texts[0]),
    "AddressError": lambda e, name: AddressError(e.numbers[0], e.numbers[1], e.texts[0]),
    "DeviceHung": _hung_again,
    "AssertionFailed": lambda e, name: AssertionFailed(
        (e.texts[0], e.numbers[0]), e.texts[1], e.texts[2], e.numbers[1], f"{name}: {e.texts[3]}"
    ),
    "NeverSettles": lambda e, name: NeverSettles(f"the log of {name}"),
    "InputError": lambda e, name: InputError(name, e.texts[0], e.texts[1], e.texts[2]),
    "SimulatorTimeout": lambda e, name: SimulatorTimeout(f"{name}: {e.texts[0]}"),
    "BackendDied": lambda e, name: BackendDied(f"{name}: {e.texts[0]}"),
    "InfrastructureError": lambda e, name: InfrastructureError(f"{name}: {e.texts[0]}"),
}


def from_remote(error: RemoteError, name: str) -> NpuError:
    """The error as this process raises it; `name`: of the remote backend."""
    made = _FROM_REMOTE.get(error.kind)
    try:
        if made is not None:
            return made(error, name)
    except (IndexError, ValueError):
        pass
    return ProtocolError(f"{name}: an error of unknown form {error.kind!a}")
