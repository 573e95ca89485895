# SPDX-License-Identifier: Apache-2.0
"""Backends by name: those of this project, plug-ins of installed packages, servers by address.

Nothing is imported before it is opened: a missing simulator affects no other backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from pathlib import Path
from typing import Any, cast

from driver.backend.named import Entry, RemoteEntry, UioEntry, named_backends, options_of
from driver.backend.protocol import Backend, InspectableBackend
from driver.config import CONFIG_FILE, HwConfig
from driver.errors import InfrastructureError, InputError, NpuError

BACKENDS: dict[str, str] = {
    "null": "driver.backend.null:NullBackend",
    "cmodel": "golden.backend:CmodelBackend",
    "rtl": "driver.backend.rtl:RtlBackend",
}
"""Name → "module:Class"; the class is called with the configuration and the backend's options."""

_WITH_SETTINGS = {
    "remote": "driver.backend.remote:RemoteBackend",
    "uio": "driver.backend.uio:UioBackend",
}
"""Those that cannot be opened by their name alone."""
REMOTE = "remote://"
"""How the name of a backend on a server begins; the rest is its host:port."""
GROUP = "npu_cosim.backends"
"""The entry point group in which a package declares its backends: name → "module:Class"."""
_PROJECT = "npu-cosim"
_VERBS = tuple(name for name in vars(Backend) if not name.startswith("_"))


@dataclass(frozen=True)
class BackendInfo:
    """What `torch.npu.get_backend_info` tells of an opened backend."""

    name: str
    version: str
    """Of the package that it is from; of the server's for a remote one."""
    features: tuple[str, ...]
    """Values of driver.backend.Feature, sorted."""


def backend_names(file: Path = CONFIG_FILE) -> tuple[str, ...]:
    """The names that `open_backend` takes, besides remote://host:port: this project's, those of
    the file's section `backends`, plug-ins."""
    names = [*BACKENDS, *named_backends(file), *sorted(point.name for point in _plug_ins())]
    return tuple(dict.fromkeys(names))


def check_name(
    name: str, where: str = "command line", field: str = "backend", file: Path = CONFIG_FILE
) -> None:
    """InputError unless there is exactly one backend of this name, or it is a server's address."""
    if name.startswith(REMOTE):
        server_address(name, where, field)
        return
    owners = [_PROJECT] * (name in BACKENDS) + [str(file)] * (name in named_backends(file))
    owners += [_package(point) for point in _plug_ins() if point.name == name]
    if not owners:
        expected = f"one of {', '.join(backend_names(file))}, or {REMOTE}host:port"
        raise InputError(where, field, name, expected)
    if len(owners) > 1:
        expected = f"one such backend, not those of {' and '.join(owners)}"
        raise InputError(where, field, name, expected)


def open_backend(
    name: str, config: HwConfig, *, file: Path = CONFIG_FILE, **options: Any
) -> InspectableBackend:
    """The backend `name`, opened; `options` are its own. InputError when there is no such name.

    A plug-in that cannot be imported or opened, or lacks a verb, is one InfrastructureError that
    names its package.
    """
    check_name(name, file=file)
    entry = named_backends(file).get(name)
    if entry is not None:
        return _open_entry(name, entry, config, file, options)
    if name.startswith(REMOTE):
        return _made("remote", config, {"address": server_address(name), **options})
    if name in BACKENDS:
        # A simulator is built from its configuration's file, which has more than `config` says.
        own = {"config_file": file} if name == "rtl" else {}
        return _made(name, config, {**own, **options})
    (point,) = (point for point in _plug_ins() if point.name == name)
    return _open_plug_in(point, config, options)


def _open_entry(
    name: str, entry: Entry, config: HwConfig, file: Path, options: dict[str, Any]
) -> InspectableBackend:
    options = {**options_of(entry), **options}
    if isinstance(entry, RemoteEntry):
        place = f"backends.{name}.address"
        address = server_address(REMOTE + entry.address, str(file), place)
        return _made("remote", config, {"address": address, **options})
    if isinstance(entry, UioEntry):
        return _made("uio", config, options)
    if entry.kind in named_backends(file):
        raise InputError(file, f"backends.{name}.kind", entry.kind, "a kind of backend, no entry")
    try:
        return open_backend(entry.kind, config, file=file, **options)
    except (TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        expected = f"options of backend {entry.kind} ({said})"
        raise InputError(file, f"backends.{name}.options", options, expected) from error


def _made(name: str, config: HwConfig, options: dict[str, Any]) -> InspectableBackend:
    module, attribute = (BACKENDS | _WITH_SETTINGS)[name].split(":")
    factory = getattr(import_module(module), attribute)
    return cast("InspectableBackend", factory(config, **options))


def backend_info(name: str, backend: Backend) -> BackendInfo:
    """What is known of an opened backend."""
    features = sorted(str(feature) for feature in getattr(backend, "features", ()))
    own_version = getattr(backend, "version", None)
    if own_version is None:
        dists = [p.dist.version for p in _plug_ins() if p.name == name and p.dist is not None]
        own_version = dists[0] if dists else version(_PROJECT)
    return BackendInfo(name, str(own_version), tuple(features))


def server_address(
    name: str, where: str = "command line", field: str = "backend"
) -> tuple[str, int]:
    """Host and port of remote://host:port, [address]:port for IPv6. InputError for other texts."""
    host, colon, port = name.removeprefix(REMOTE).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else 0
    if not _is_host(host) or not colon or not 1 <= number <= 0xFFFF:
        raise InputError(where, field, name, f"{REMOTE}host:port, with a port of 1 to 65535")
    return host, number


def _is_host(text: str) -> bool:
    try:
        text.encode("idna")  # as sockets do: no part may be empty, or too long
    except UnicodeError:
        return False
    return bool(text) and text.isprintable() and "/" not in text


def _open_plug_in(
    point: EntryPoint, config: HwConfig, options: dict[str, Any]
) -> InspectableBackend:
    what = f"backend {point.name} of package {_package(point)} ({point.value})"
    try:
        opened = point.load()(config, **options)
    except NpuError:
        raise
    except Exception as error:  # whatever a foreign package raises
        text = f"{what} cannot be opened: {type(error).__name__}: {error}"
        raise InfrastructureError(" ".join(text.split())) from error
    missing = [verb for verb in _VERBS if not callable(getattr(opened, verb, None))]
    if missing:
        raise InfrastructureError(f"{what} lacks {', '.join(missing)} of driver.backend.Backend")
    return cast("InspectableBackend", opened)


@cache
def _plug_ins() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else point.dist.name
