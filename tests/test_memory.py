# SPDX-License-Identifier: Apache-2.0
"""The allocator against a byte map: no overlap, nothing lost, neighbours merged."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from driver.backend.mapped_memory import MappedMemory
from driver.config import MemoryMap, Region, Regions
from driver.errors import AddressError, InfrastructureError, InputError, OutOfMemory
from driver.runtime.memory import Allocator, RegionAllocator

GRANULE = 64
GRANULES = 32
BASE = 0x1_0000
REGION = Region(base=BASE, size_bytes=GRANULES * GRANULE)


def make_map() -> MemoryMap:
    weights = Region(base=BASE, size_bytes=4096)
    return MemoryMap(
        regions=Regions(weights=weights, activations=Region(base=weights.limit, size_bytes=8192))
    )


class AllocatorMachine(RuleBasedStateMachine):
    """Keeps a map of granules beside the allocator, and knows each allocation by its number."""

    live = Bundle("live")

    def __init__(self) -> None:
        super().__init__()
        self.allocator = RegionAllocator("weights", REGION)
        self.owner: list[int] = [0] * GRANULES
        self.count = 0
        self.peak = 0

    def holes(self) -> list[int]:
        """Lengths of the runs of free granules."""
        text = "".join(" " if owner else "." for owner in self.owner)
        return [len(run) for run in text.split()]

    @rule(target=live, size_bytes=st.integers(1, REGION.size_bytes + GRANULE))
    def alloc(self, size_bytes: int) -> tuple[int, int] | None:
        granules = -(-size_bytes // GRANULE)
        fitting = [hole for hole in self.holes() if hole >= granules]
        if not fitting:
            with pytest.raises(OutOfMemory) as caught:
                self.allocator.alloc(size_bytes)
            assert caught.value.largest_hole_bytes == max(self.holes(), default=0) * GRANULE
            assert caught.value.used_bytes == sum(map(bool, self.owner)) * GRANULE
            return None
        address = self.allocator.alloc(size_bytes)
        assert address % GRANULE == 0
        first = (address - BASE) // GRANULE
        assert first >= 0
        assert first + granules <= GRANULES
        assert not any(self.owner[first : first + granules]), "overlap"
        assert self.hole_around(first) == min(fitting), "not the best fit"
        self.count += 1
        self.owner[first : first + granules] = [self.count] * granules
        self.peak = max(self.peak, sum(map(bool, self.owner)))
        return address, self.count

    def hole_around(self, index: int) -> int:
        """Length of the run of free granules that contains `index`."""
        before = "".join(" " if owner else "." for owner in self.owner[:index])
        after = "".join(" " if owner else "." for owner in self.owner[index:])
        return len(before) - len(before.rstrip(".")) + len(after) - len(after.lstrip("."))

    @rule(allocation=consumes(live))
    def free(self, allocation: tuple[int, int] | None) -> None:
        if allocation is None:
            return
        address, number = allocation
        self.allocator.free(address)
        self.owner = [0 if owner == number else owner for owner in self.owner]
        with pytest.raises(AddressError):
            self.allocator.free(address)

    @rule(address=st.integers(BASE - GRANULE, REGION.limit))
    def free_what_is_no_start(self, address: int) -> None:
        index = (address - BASE) // GRANULE
        inside = 0 <= index < GRANULES and address % GRANULE == 0 and self.owner[index]
        if inside and (index == 0 or self.owner[index - 1] != self.owner[index]):
            return
        with pytest.raises(AddressError):
            self.allocator.free(address)

    @invariant()
    def report_matches_the_map(self) -> None:
        use = self.allocator.use()
        holes = self.holes()
        assert use.used_bytes == sum(map(bool, self.owner)) * GRANULE
        assert use.free_bytes == sum(holes) * GRANULE
        assert use.largest_hole_bytes == max(holes, default=0) * GRANULE, "holes not merged"
        assert use.allocations == len(set(self.owner) - {0})
        assert use.peak_bytes == self.peak * GRANULE
        expected = 1 - max(holes) / sum(holes) if holes else 0
        assert use.fragmentation == pytest.approx(expected)


AllocatorMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=60, deadline=None, derandomize=True
)
test_allocator_agrees_with_a_byte_map = AllocatorMachine.TestCase


def test_regions_are_separate_and_freed_by_address_alone() -> None:
    allocator = Allocator(make_map())
    weights = allocator.alloc(100, "weights")
    activations = allocator.alloc(100)
    assert (weights, activations) == (BASE, BASE + 4096)
    assert [use.used_bytes for use in allocator.report()] == [128, 128]
    allocator.free(weights)
    allocator.free(activations)
    assert [use.used_bytes for use in allocator.report()] == [0, 0]
    assert [use.peak_bytes for use in allocator.report()] == [128, 128]


def test_out_of_memory_names_size_region_use_and_largest_hole() -> None:
    allocator = Allocator(make_map())
    first = allocator.alloc(1024, "weights")
    allocator.alloc(1024, "weights")
    allocator.free(first)
    with pytest.raises(OutOfMemory) as caught:
        allocator.alloc(2049, "weights")
    assert str(caught.value) == (
        "device memory: weights: got 2049 bytes to allocate, expected at most 2048 "
        "(largest hole; 1024 bytes used, 3072 free)"
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("size_bytes", [0, -1])
def test_an_empty_allocation_is_an_input_error(size_bytes: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Allocator(make_map()).alloc(size_bytes)


def test_unknown_regions_and_addresses_are_typed_errors() -> None:
    allocator = Allocator(make_map())
    with pytest.raises(InputError, match="got cache, expected one of weights, activations"):
        allocator.alloc(64, "cache")
    with pytest.raises(AddressError):
        allocator.free(0)


def test_memory_for_which_there_are_no_addresses_is_an_error_of_one_line() -> None:
    with pytest.raises(
        InfrastructureError, match=r"^device memory of \d+ bytes cannot be mapped: Can"
    ):
        MappedMemory(0, 1 << 60)
