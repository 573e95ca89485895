# SPDX-License-Identifier: Apache-2.0
"""A training on device "npu" that is killed and goes on from its checkpoint ends with the bits of
one that never was: weights, optimizer, random numbers, order of the batches."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.resumable_training import BATCH, EPOCHS, IMAGES

PROGRAM = Path(__file__).with_name("resumable_training.py")
STEPS = EPOCHS * IMAGES // BATCH
_LIMIT_S = 240


def run(checkpoint: Path, kill_after: int | None = None) -> list[str]:
    """The lines of a run; with `kill_after` it is killed (SIGKILL) once it has said so many, in
    whatever it does then."""
    command = [sys.executable, str(PROGRAM), str(checkpoint)]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.strip())
                if len(lines) == kill_after:
                    process.kill()
            process.wait(_LIMIT_S)
        finally:
            process.kill()
    assert (process.returncode == 0) == (kill_after is None), lines
    return lines


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """All tensors and numbers of a checkpoint by their path."""
    if isinstance(tree, dict):
        parts = tree.items()
    elif isinstance(tree, list | tuple):
        parts = enumerate(tree)
    else:
        return {path: tree}
    return {k: v for name, part in parts for k, v in leaves(part, f"{path}/{name}").items()}


def as_bits(value: Any) -> Any:
    return value.cpu().numpy().tobytes() if isinstance(value, torch.Tensor) else value


@pytest.mark.broad
@pytest.mark.parametrize("seed", [1, 2])
def test_a_training_killed_at_any_step_ends_with_the_same_bits(tmp_path: Path, seed: int) -> None:
    whole, killed = tmp_path / "whole.pt", tmp_path / "killed.pt"
    dice = random.Random(seed)
    expected = run(whole)
    assert len(expected) == STEPS
    said: list[str] = []
    for _ in range(2):
        said += run(killed, kill_after=dice.randint(1, STEPS // 2 - 1))
    said += run(killed)
    # A step that was saved and not said before the kill is done, not repeated.
    assert set(said) <= set(expected)
    assert said[-1] == expected[-1]
    first, second = (leaves(torch.load(path, map_location="cpu")) for path in (whole, killed))
    assert first.keys() == second.keys()
    different = [name for name in first if as_bits(first[name]) != as_bits(second[name])]
    assert different == []
    elements = sum(x.numel() for x in first.values() if isinstance(x, torch.Tensor))
    assert elements > 3 * 1700, "weights and both moments"
    assert len({line.rpartition(" ")[2] for line in expected}) == STEPS, "losses that differ"
