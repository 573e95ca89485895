# SPDX-License-Identifier: Apache-2.0
"""How a command ends: its exit status, and the one line that an error is. Knows no command."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError
from typer.exceptions import TyperException

from driver.errors import InfrastructureError, NpuError, printable, shorten
from driver.files import write_text
from driver.validation import explain
from regress.paths import OUT

INTERRUPTED = 130
CLOSED_PIPE = 141
"""As of a program that SIGPIPE ends: no verdict, as not all of it was said."""
ERROR_LOG = "error.log"
_SHOWN_CHARACTERS = 900
"""Of an error's line; a longer one is cut in its middle."""


def invoke(call: Callable[..., Any]) -> int:
    """The exit status of a command; every error is one line, and only a verdict is a 1."""
    try:
        code = int(call(standalone_mode=False) or 0)
        return _fail("interrupted", code) if code == INTERRUPTED else code  # typer's own catch
    except NpuError as error:
        return _fail(str(error), error.exit_code)
    except TyperException as error:
        return _fail(f"command line: {_refused(error)}", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except (
        SystemExit
    ) as error:  # rich and typer make a 1 of a closed pipe: `npu-cosim tests | head`
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except Exception as error:
        return _fail(_unforeseen(error), InfrastructureError.exit_code)


def _refused(error: TyperException) -> str:
    """What typer says, in the words of all other errors where it misses or refuses a value."""
    said = error.format_message()
    missing = getattr(error, "param", None) if said.startswith("Missing ") else None
    if missing is not None:
        name, what = missing.metavar or missing.name.upper(), missing.help.rstrip(".")
        return f"{name}: got nothing, expected {what[0].lower()}{what[1:]}"
    if not isinstance(error.__cause__, ValidationError):
        return said
    _, value, expected = explain(error.__cause__)
    return f"{said.partition(': ')[0]}: got {value}, expected {expected}"


def _unforeseen(error: Exception) -> str:
    """What is said of an error that has no type of ours; its traceback goes to a file."""
    trace = "".join(traceback.format_exception(error))
    try:
        log = OUT / ERROR_LOG
        write_text(log, trace)
    except NpuError:  # where nothing can be written, not even in our own folder
        handle, name = tempfile.mkstemp(prefix="npu-cosim-", suffix=".log")
        log = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(trace)
    if isinstance(error, OSError) and error.strerror:
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        what = f"internal error: {type(error).__name__}: {error}"
    return f"{shorten(what, _SHOWN_CHARACTERS // 2)}; the traceback is in {log}"


def _fail(text: str, code: int) -> int:
    line = shorten(printable(" ".join(text.split())), _SHOWN_CHARACTERS)
    with contextlib.suppress(OSError):  # the text cannot be printed; the exit status remains
        sys.stderr.write(f"error: {line}\n" if text else "")
        sys.stderr.flush()
    return code


def mend_streams() -> None:
    """Give every stream a place, also where it was closed, and a way to write any character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.TextIOWrapper(io.BytesIO(), "utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
