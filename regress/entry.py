# SPDX-License-Identifier: Apache-2.0
"""Entry point of the installed script: Ctrl-C is one line, also while the command line loads."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_INTERRUPTED = 130  # as of regress.invoke, which is part of what loads
_LINE = "error: interrupted\n"


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Nothing is written yet; an exception might be taken for something else on its way up, as
    pydantic does where it builds a model."""
    os.write(2, _LINE.encode())
    os._exit(_INTERRUPTED)


def main() -> None:
    """Run the command line; ends the process."""
    own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if own:
            signal.signal(signal.SIGINT, _leave)
        from regress import cli  # noqa: PLC0415 (half a second in which Ctrl-C is a traceback)

        if own:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main()
    except KeyboardInterrupt:
        sys.stderr.write(_LINE)
        sys.exit(_INTERRUPTED)
