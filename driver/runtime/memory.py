# SPDX-License-Identifier: Apache-2.0
"""Which bytes of device memory are taken. Owns addresses, never contents.

Best fit per region, 64-byte granules, neighbours merged on free. Best fit because a model frees
its activations in the order it made them: the holes they leave are the sizes asked for next.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

from driver.config import ALIGNMENT_BYTES, MemoryMap, Region
from driver.errors import AddressError, InputError, OutOfMemory


@dataclass(frozen=True)
class RegionUse:
    """How full a region is. Sizes in bytes."""

    region: str
    size_bytes: int
    used_bytes: int
    peak_bytes: int
    allocations: int
    largest_hole_bytes: int

    @property
    def free_bytes(self) -> int:
        """What is not allocated, in however many holes."""
        return self.size_bytes - self.used_bytes

    @property
    def fragmentation(self) -> float:
        """Share of the free bytes outside the largest hole: 0 is one hole, near 1 is dust."""
        return 1 - self.largest_hole_bytes / self.free_bytes if self.free_bytes else 0.0


class RegionAllocator:
    """The allocator of one region."""

    def __init__(self, name: str, region: Region) -> None:
        self._name = name
        self._region = region
        self._used: dict[int, int] = {}
        # The holes twice: by address to merge, by size to fit. Sizes in bytes.
        self._hole_starts = [region.base]
        self._hole_sizes = {region.base: region.size_bytes}
        self._by_size = [(region.size_bytes, region.base)]
        self._used_bytes = 0
        self._peak_bytes = 0

    def alloc(self, size_bytes: int) -> int:
        """A 64-byte aligned address with `size_bytes` free bytes behind it.

        Raises OutOfMemory when no hole is large enough, InputError unless size_bytes is a whole
        number from 1 on.
        """
        if not hasattr(size_bytes, "__index__") or size_bytes < 1:
            field = f"{self._name}.size_bytes"
            raise InputError("device memory", field, size_bytes, "a whole number, at least 1")
        taken = -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        index = bisect_left(self._by_size, (taken, 0))
        if index == len(self._by_size):
            use = self.use()
            raise OutOfMemory(
                self._name, size_bytes, use.used_bytes, use.free_bytes, use.largest_hole_bytes
            )
        hole_bytes, address = self._by_size[index]
        self._remove_hole(address)
        if hole_bytes > taken:
            self._add_hole(address + taken, hole_bytes - taken)
        self._used[address] = taken
        self._used_bytes += taken
        self._peak_bytes = max(self._peak_bytes, self._used_bytes)
        return address

    def check(self, address: int) -> None:
        """AddressError unless `alloc` returned the address and nobody has freed it."""
        if address not in self._used:
            raise AddressError(address, 0, f"the start of an allocation in {self._name}")

    def free(self, address: int) -> None:
        """Give back what `alloc` returned. AddressError when it did not, or was freed before."""
        self.check(address)
        size_bytes = self._used.pop(address)
        self._used_bytes -= size_bytes
        start, end = address, address + size_bytes
        index = bisect_right(self._hole_starts, address)
        if index < len(self._hole_starts) and self._hole_starts[index] == end:
            end += self._remove_hole(end)
        if index > 0:
            before = self._hole_starts[index - 1]
            if before + self._hole_sizes[before] == start:
                self._remove_hole(before)
                start = before
        self._add_hole(start, end - start)

    def use(self) -> RegionUse:
        """The state of the region."""
        return RegionUse(
            region=self._name,
            size_bytes=self._region.size_bytes,
            used_bytes=self._used_bytes,
            peak_bytes=self._peak_bytes,
            allocations=len(self._used),
            largest_hole_bytes=self._by_size[-1][0] if self._by_size else 0,
        )

    def _add_hole(self, address: int, size_bytes: int) -> None:
        insort(self._hole_starts, address)
        self._hole_sizes[address] = size_bytes
        insort(self._by_size, (size_bytes, address))

    def _remove_hole(self, address: int) -> int:
        size_bytes = self._hole_sizes.pop(address)
        del self._hole_starts[bisect_left(self._hole_starts, address)]
        del self._by_size[bisect_left(self._by_size, (size_bytes, address))]
        return size_bytes


class Allocator:
    """Device memory: one allocator per region of the memory map, for several threads."""

    def __init__(self, memory: MemoryMap) -> None:
        self._regions = memory.regions.named()
        self._allocators = {name: RegionAllocator(name, r) for name, r in self._regions.items()}
        self._lock = threading.Lock()
        self._holders: set[object] = set()
        """Who may still write to what is freed."""
        self._held: set[int] = set()
        """What has been freed meanwhile."""

    def alloc(self, size_bytes: int, region: str = "activations") -> int:
        """An address in `region`. Raises as RegionAllocator.alloc; InputError: unknown region."""
        allocator = self._allocators.get(region)
        if allocator is None:
            names = ", ".join(self._allocators)
            raise InputError("device memory", "region", region, f"one of {names}")
        with self._lock:
            return allocator.alloc(size_bytes)

    def free(self, address: int) -> None:
        """Give back an allocation, whichever region it is in."""
        region = self._region_of(address)
        with self._lock:
            if not self._holders:
                region.free(address)
            elif address in self._held:
                expected = "the start of an allocation that was not freed before"
                raise AddressError(address, 0, expected)
            else:
                region.check(address)
                self._held.add(address)

    def hold(self, holder: object) -> None:
        """From now on nobody gets what is freed, for `holder` may still write to it."""
        with self._lock:
            self._holders.add(holder)

    def release(self, holder: object) -> None:
        """`holder` writes no more."""
        with self._lock:
            self._holders.discard(holder)
            if not self._holders:
                for address in self._held:
                    self._region_of(address).free(address)
                self._held.clear()

    def report(self) -> tuple[RegionUse, ...]:
        """The state of every region, by ascending address."""
        with self._lock:
            return tuple(allocator.use() for allocator in self._allocators.values())

    def _region_of(self, address: int) -> RegionAllocator:
        for name, region in self._regions.items():
            if region.base <= address < region.limit:
                return self._allocators[name]
        raise AddressError(address, 0, "the start of an allocation")
