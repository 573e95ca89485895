# SPDX-License-Identifier: Apache-2.0
"""Runs an arithmetic bench and reads what it found. Knows nothing of how vectors are made."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from driver.errors import InfrastructureError, InputError
from tb.unit.benches import ARITHMETIC, arithmetic_program, rtl_files
from tb.unit.model import build_model
from tb.unit.mutants import mutant_arguments, mutant_sources

_TIMEOUT_S = 600.0
_EXIT_INPUT = 2
_MAX_SEED = 10**18


@dataclass(frozen=True)
class ArithmeticResult:
    """What a bench found. `compared` counts results, `differing` those with a wrong bit."""

    test: str
    compared: int
    differing: int
    seed: int
    differences: tuple[str, ...] = ()
    """The first ones: operation, operands, expected, actual, each in hexadecimal and as value."""

    def to_json(self) -> str:
        """The counts, as one line."""
        names = ("test", "compared", "differing", "seed")
        return json.dumps({name: getattr(self, name) for name in names})


def _operation(test: str, operation: str | None, vectors: Path | None) -> str | None:
    """The one that a vector file is for: asked for, or named in the file's name; None is all."""
    if test not in ARITHMETIC:
        raise InputError("command line", "test", test, f"one of {', '.join(ARITHMETIC)}")
    known = ARITHMETIC[test]
    if operation is not None:
        if operation not in known:
            raise InputError("command line", "operation", operation, f"one of {', '.join(known)}")
        return operation
    if vectors is None or len(known) == 1:
        return known[0] if len(known) == 1 else None
    # "bf16_to_f32" contains "f16_to_f32": the longest match is meant.
    named = max((name for name in known if name in vectors.name), key=len, default=None)
    if named is None:
        expected = f"one of {', '.join(known)} in the file's name, or --operation"
        raise InputError(vectors, "name", vectors.name, expected)
    return named


def run_arithmetic(
    test: str,
    vectors: Path | None,
    seed: int,
    *,
    operation: str | None = None,
    count: int | None = None,
    mutant: int | str | None = None,
    result: Path | None = None,
) -> ArithmeticResult:
    """Build and run one bench: its own vectors, or those of a TestFloat file.

    `count` is the number of random vectors per operation. With `mutant` the packages have wrong
    lines (tb.unit.mutants), and that one is active.
    Writes the counts to `result` as JSON.
    InputError: an unknown name, a malformed file. InfrastructureError: no tools, a bench that dies.
    """
    chosen = _operation(test, operation, vectors)
    if not 0 <= seed < _MAX_SEED:
        raise InputError("command line", "seed", seed, f"0 to {_MAX_SEED - 1}")
    program = build_model(arithmetic_program(test, mutant_sources(test, mutant, rtl_files(test))))
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "result.json"
        options = {"seed": seed, "count": count, "operation": chosen, "vectors": vectors}
        arguments = ["--result", str(found)]
        for name, value in options.items():
            arguments += [] if value is None else [f"--{name}", str(value)]
        text = _run(program, [*arguments, *mutant_arguments(test, mutant)])
        counts = json.loads(found.read_text())
    outcome = ArithmeticResult(**counts, differences=tuple(text.splitlines()))
    if result is not None:
        try:
            result.write_text(outcome.to_json() + "\n")
        except OSError as error:
            raise InputError(result, "file", error.strerror, "a file to write") from error
    return outcome


def _input_error(line: str) -> InputError:
    """The bench has put its one line together in InputError's own form."""
    match = re.fullmatch(r"(.*): ([^:]+): got (.*), expected (.*)", line)
    if match is None:
        raise InfrastructureError(f"bench: {line}")
    return InputError(*match.groups())


def _run(program: Path, arguments: list[str]) -> str:
    try:
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"{program.name}: {error}") from error
    if done.returncode == _EXIT_INPUT:
        raise _input_error(done.stderr.strip())
    if done.returncode not in (0, 1):
        raise InfrastructureError(f"{program.name} ended with status {done.returncode}")
    return done.stdout
