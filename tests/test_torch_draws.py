# SPDX-License-Identifier: Apache-2.0
"""A random op draws what docs/numerics.md says, however often it comes, and is lowered once."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch

from driver.random_stream import RandomStream
from driver.torch_device import dispatch
from driver.torch_device.programs import ProgramCache, RememberedProgram, RowCall
from golden import philox

Tensor = torch.Tensor
SIZES = (5, 7)


def expected(seed: int, op: int) -> Tensor:
    """Numbers from 0 to below 1."""
    words = philox.words(RandomStream(seed, op), SIZES[0] * SIZES[1])
    return torch.from_numpy(philox.unit(words)).float().reshape(SIZES)


def place(generator: torch.Generator, seed: int, op: int) -> None:
    """Have the generator's next op be this one."""
    generator.set_state(
        torch.frombuffer(bytearray(struct.pack("<QQ", seed, op)), dtype=torch.uint8)
    )


def placed(generator: torch.Generator) -> tuple[int, int]:
    seed, op = struct.unpack("<QQ", bytes(generator.get_state().tolist()))
    return seed, op


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rows that were lowered."""
    rows: list[str] = []
    lower = ProgramCache._lowered

    def noted(self: ProgramCache, call: RowCall, *rest: Any) -> RememberedProgram:
        rows.append(call.row)
        return lower(self, call, *rest)

    monkeypatch.setattr(ProgramCache, "_lowered", noted)
    return rows


@pytest.mark.parametrize("op", [0, (1 << 32) - 3, (1 << 63) + 5], ids=["0", "2^32 - 3", "2^63 + 5"])
def test_each_call_draws_the_numbers_of_its_place(op: int) -> None:
    default = torch.npu.default_generators[0]
    x = torch.empty(SIZES, device="npu")
    for seed in (3, 1 << 40, 3):
        place(default, seed, op)
        for number in range(6):
            assert torch.equal(x.uniform_().cpu(), expected(seed, op + number))
        assert placed(default) == (seed, op + 6)


def test_a_generator_of_the_program_has_numbers_of_its_own() -> None:
    default, own = torch.npu.default_generators[0], torch.Generator("npu")
    place(default, 8, 0)
    place(own, 9, 50)
    for number in range(4):
        made = torch.rand(SIZES, device="npu", generator=own)
        assert torch.equal(made.cpu(), expected(9, 50 + number))
        assert torch.equal(torch.rand(SIZES, device="npu").cpu(), expected(8, number))
    assert placed(default) == (8, 4) and placed(own) == (9, 54)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.nn.functional.dropout(x, 0.25),
        torch.rand_like,
        torch.randn_like,
        torch.bernoulli,
        lambda x: torch.randint(0, 99, SIZES, device="npu"),
        lambda x: torch.randperm(35, device="npu"),
        lambda x: torch.multinomial(x, 2),
    ],
    ids=["dropout", "rand_like", "randn_like", "bernoulli", "randint", "randperm", "multinomial"],
)
def test_a_random_op_that_comes_again_is_not_lowered_again(
    lowered: list[str], draw: Callable[[Tensor], Tensor]
) -> None:
    x = torch.full(SIZES, 0.5, device="npu")
    torch.npu.manual_seed(12)
    first = [draw(x).cpu() for _ in range(3)]  # a call with a number is kept when it comes again
    lowered.clear()
    others = [draw(x).cpu() for _ in range(5)]
    assert lowered == []
    made = [*first, *others]
    assert len({tuple(x.flatten().tolist()) for x in made}) == len(made)
    torch.npu.manual_seed(12)
    with torch.npu.check():  # op by op, and judged
        assert all(torch.equal(draw(x).cpu(), one) for one in made)


def test_dropout_that_keeps_all_takes_a_number_too() -> None:
    x, default = torch.ones(SIZES, device="npu"), torch.npu.default_generators[0]
    place(default, 4, 0)
    for number in range(1, 5):
        torch.native_dropout(x, 0.5, False)
        assert placed(default) == (4, number)


def test_a_call_of_another_seed_is_known_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it runs in Python from the third time on."""
    x, default = torch.empty(SIZES, device="npu"), torch.npu.default_generators[0]
    calls: list[object] = []
    dispatched = dispatch._dispatch

    def noted(op: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(op)
        return dispatched(op, *args, **kwargs)

    monkeypatch.setattr(dispatch, "_dispatch", noted)
    for seed in (21, 22, 21):
        place(default, seed, 0)
        for _ in range(3):
            x.random_()
        assert calls, seed
        calls.clear()
        made = x.random_().cpu()
        assert calls == [], seed
        place(default, seed, 3)
        assert torch.equal(x.random_().cpu(), made)
