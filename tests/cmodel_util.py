# SPDX-License-Identifier: Apache-2.0
"""Operands for the tests of the cmodel: chosen bit patterns, and a small device around a CModel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from driver.isa import DTYPE_BYTES, Descriptor, DType, ErrorCode, Packet
from driver.isa.programs import BOOT_IMAGE
from golden import softfloat
from golden._cmodel import CModel

Words = npt.NDArray[np.uint32]

STORAGE: dict[DType, type[np.unsignedinteger]] = {
    DType.FP32: np.uint32,
    DType.FP16: np.uint16,
    DType.BF16: np.uint16,
    DType.INT8: np.uint8,
    DType.INT32: np.uint32,
    DType.UINT8: np.uint8,
    DType.INT64: np.uint64,
}
"""numpy type that holds the bits of an element."""


def special_bits(fmt: softfloat.Format) -> list[int]:
    """Both signs of: zero, subnormals, normals at the edges, near one, infinity, NaNs."""
    one = fmt.bias << fmt.fraction_bits
    least_normal = 1 << fmt.fraction_bits
    magnitudes = [
        0,
        1,
        2,
        least_normal >> 1,
        least_normal - 1,
        least_normal,
        least_normal + 1,
        one - least_normal,
        one - 1,
        one,
        one + 1,
        one + (least_normal >> 1),
        one + least_normal,
        fmt.infinity - least_normal,
        fmt.infinity - 1,
        fmt.infinity,
        fmt.infinity + 1,  # signalling NaN
        fmt.nan,
        fmt.nan + 1,
    ]
    return magnitudes + [m | 1 << fmt.sign_bit for m in magnitudes]


def random_bits(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], specials: float = 0.0
) -> npt.NDArray[np.unsignedinteger]:
    """Elements near one, so that sums round; a fraction `specials` is drawn from special_bits."""
    if dtype not in softfloat.FORMATS:
        return rng.integers(
            0, np.iinfo(STORAGE[dtype]).max, shape, dtype=STORAGE[dtype], endpoint=True
        )
    fmt = softfloat.FORMATS[dtype]
    exponents = rng.integers(fmt.bias - 3, fmt.bias + 2, shape)
    fractions = rng.integers(0, 1 << fmt.fraction_bits, shape)
    signs = rng.integers(0, 2, shape)
    bits = signs << fmt.sign_bit | exponents << fmt.fraction_bits | fractions
    chosen = rng.choice(np.array(special_bits(fmt)), shape)
    return np.where(rng.random(shape) < specials, chosen, bits).astype(STORAGE[dtype])


def apply(function: Callable[..., None], *inputs: Sequence[int] | Words) -> list[int]:
    """The results of one of the cmodel's scalar functions."""
    arrays = [np.ascontiguousarray(values, dtype=np.uint32) for values in inputs]
    out = np.empty_like(arrays[0])
    function(*arrays, out)
    return out.tolist()


class SmallDevice:
    """64 KiB of memory at 0x1000 with a CModel on it."""

    BASE = 0x1000
    SIZE = 0x1_0000
    LIMIT = BASE + SIZE

    def __init__(self, threads: int = 1) -> None:
        self.memory = np.zeros(self.SIZE, dtype=np.uint8)
        self.model = CModel(self.memory, self.BASE, self.LIMIT, threads, BOOT_IMAGE)

    def store(self, address: int, data: bytes | npt.NDArray[np.unsignedinteger]) -> None:
        """Puts bytes into memory without the model noticing."""
        raw = data if isinstance(data, bytes) else data.tobytes()
        offset = address - self.BASE
        self.memory[offset : offset + len(raw)] = np.frombuffer(raw, dtype=np.uint8)

    def load(self, address: int, dtype: DType, count: int) -> npt.NDArray[np.unsignedinteger]:
        """`count` elements from `address`."""
        offset = address - self.BASE
        raw = self.memory[offset : offset + count * DTYPE_BYTES[dtype]]
        return raw.view(STORAGE[dtype]).copy()

    def describe(self, address: int, descriptor: Descriptor) -> int:
        """Puts a descriptor into memory; returns its address."""
        self.store(address, descriptor.pack())
        return address

    def run(self, packet: Packet) -> ErrorCode:
        """Executes one packet."""
        return ErrorCode(self.model.execute(packet.pack()))
