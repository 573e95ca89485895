# SPDX-License-Identifier: Apache-2.0
"""Entry point of the installed script: Ctrl-C is one line, also while the command line loads."""

from __future__ import annotations

import sys

_INTERRUPTED = 130  # as of regress.invoke, which is part of what loads


def main() -> None:
    """Run the command line; ends the process."""
    try:
        from regress import cli  # noqa: PLC0415 (half a second in which Ctrl-C is a traceback)

        cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(_INTERRUPTED)
