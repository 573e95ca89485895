# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim serve`: devices of this machine for remote backends (docs/remote.md)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from driver.backend.handshake import read_token, token_of
from driver.backend.server import BackendServer, ServerSettings
from driver.backend.settings import TOKEN
from driver.config import load_config
from driver.errors import ENVIRONMENT
from regress.console import console, print_line
from regress.options import ConfigFile, path_option, with_options
from regress.paths import CONFIG_FILE
from regress.process import terminable

_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Of `serve`."""

    backend: Annotated[str, typer.Option(help="The backend of the devices.")] = "cmodel"
    config: Annotated[str, typer.Option(help="A configuration of the hardware.")] = "default"
    config_file: ConfigFile = CONFIG_FILE
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine: token and TLS.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="0: any free one.", min=0, max=0xFFFF)] = 0
    token_file: Annotated[
        Path | None, path_option(f"File with the token of the clients; or the variable {TOKEN}.")
    ] = None
    certificate: Annotated[Path | None, path_option("TLS certificate, PEM.")] = None
    key: Annotated[Path | None, path_option("Its key, PEM.")] = None
    max_clients: Annotated[
        int, typer.Option(help="Clients, each with a device, at the same time.", min=1, max=64)
    ] = 4
    max_frame_mib: Annotated[
        int, typer.Option(help="Longest message, in MiB.", min=1, max=1024)
    ] = 16
    idle_s: Annotated[
        float, typer.Option(help="Seconds after which a silent client is closed.", min=1.0)
    ] = 3600.0


def serve(options: ServeOptions) -> int:
    """Serve devices to remote backends until interrupted."""
    return run_server(console(), options)


def run_server(output: Console, options: ServeOptions) -> int:
    """`npu-cosim serve`. InputError for what would not be safe."""
    token = None
    if options.token_file is not None:
        token = read_token(options.token_file)
    elif TOKEN in os.environ:
        token = token_of(os.environ[TOKEN], ENVIRONMENT, TOKEN)
    settings = ServerSettings(
        backend=options.backend,
        config=load_config(options.config_file, options.config),
        config_file=options.config_file,
        host=options.host,
        port=options.port,
        token=token,
        certificate=options.certificate,
        key=options.key,
        max_clients=options.max_clients,
        max_frame_bytes=options.max_frame_mib * _MIB,
        idle_s=options.idle_s,
    )
    note = partial(print_line, output)
    server = BackendServer(settings, note)
    host, port = server.address
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    how = f"{'TLS' if options.certificate else 'no TLS'}, {'token' if token else 'no token'}"
    note(f"serving {options.backend}, config {options.config}, on remote://{where} ({how})")
    try:
        with terminable():
            server.serve()
    finally:
        server.stop()
    return 0


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_options(ServeOptions)(serve))
