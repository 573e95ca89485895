# SPDX-License-Identifier: Apache-2.0
"""Where a store is, in the words of the commands that are printed for it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from regress.paths import NIGHTLY


@dataclass(frozen=True)
class StoreLocation:
    """A folder of results, and its database where that is another one than the folder's own."""

    folder: Path = NIGHTLY
    url: str | None = None
    """Without its password."""

    def options(self) -> list[str]:
        """For the command line; nothing for the place that it takes by itself."""
        words = [] if self.folder == NIGHTLY else ["--out", str(self.folder)]
        return words if self.url is None else [*words, "--store", self.url]

    def variables(self) -> list[str]:
        """The same for make."""
        words = [] if self.folder == NIGHTLY else [f"OUT={_make_word(self.folder)}"]
        return words if self.url is None else [*words, f"STORE={_make_word(self.url)}"]


def _make_word(value: object) -> str:
    """As a shell hands it to make, which takes $ for a variable."""
    return shlex.quote(str(value).replace("$", "$$"))
