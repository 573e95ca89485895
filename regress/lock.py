# SPDX-License-Identifier: Apache-2.0
"""`make lock`: requirements.lock from the direct dependencies of pyproject.toml.

pip resolves them as for an empty environment and installs nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

from driver.results import write_text
from regress.paths import ROOT

LOCK = ROOT / "requirements.lock"
_HEAD = "# Every package of the environment, pinned. Made by `make lock` from pyproject.toml.\n"


def direct_dependencies(pyproject: str) -> list[str]:
    """What pyproject.toml names itself, `dev` included."""
    project = tomllib.loads(pyproject)["project"]
    extras = project.get("optional-dependencies", {}).values()
    return sorted([*project["dependencies"], *(name for extra in extras for name in extra)])


def locked_versions(lock: str) -> dict[str, str]:
    """Normalised package name, without its extras → version."""
    lines = (line.split("#")[0].strip() for line in lock.splitlines())
    pairs = (line.split("==") for line in lines if line)
    return {normalised(name.split("[")[0]): version for name, version in pairs}


def normalised(name: str) -> str:
    """The name under which an index files a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lock_text(report: str) -> str:
    """The lock file from pip's JSON report."""
    found = (entry["metadata"] for entry in json.loads(report)["install"])
    lines = sorted((f"{entry['name']}=={entry['version']}" for entry in found), key=str.lower)
    return _HEAD + "".join(f"{line}\n" for line in lines)


def resolve(requirements: list[str]) -> str:
    """pip's JSON report on what they come to."""
    options = ["--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, *requirements],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    """Write the lock."""
    text = lock_text(resolve(direct_dependencies((ROOT / "pyproject.toml").read_text())))
    write_text(LOCK, text)
    sys.stdout.write(f"wrote {LOCK.name}: {len(locked_versions(text))} packages\n")


if __name__ == "__main__":
    main()
