# SPDX-License-Identifier: Apache-2.0
"""The C++ model: executes command packets on a memory image, bit-exactly (docs/numerics.md).

Built from golden/cmodel by CMakeLists.txt. Owns no queue, register, completion record or time.
Wrong use (lengths, unknown types) raises ValueError; what a device would report is a returned
error code, never an exception.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

PAGE_BYTES: Final[int]
"""Granularity of `CModel.dirty_pages`."""

_Words: TypeAlias = npt.NDArray[np.uint32]

class CModel:
    """Device memory and the engines that work on it. One command at a time; not thread-safe."""

    def __init__(
        self,
        memory: npt.NDArray[np.uint8],
        mem_base: int,
        mem_limit: int,
        threads: int = 0,
        programs: bytes = b"",
    ) -> None:
        """`memory[0]` is the byte at `mem_base`; commands may touch [mem_base, mem_limit).

        The array is used in place (a sparse mapping is fine) and kept alive; it must be writable,
        one-dimensional and contiguous. `threads`: at most so many, 0 for one per processor; the
        bits do not depend on it. `programs`: images from line 0 of program memory on, which stay
        (driver.isa.programs.BOOT_IMAGE).
        """

    def execute(self, packet: bytes, seq: int = 0) -> int:
        """Executes the 64-byte packet; returns its ErrorCode as an int. Releases the GIL.

        Unless it returns 0 nothing was written. `seq` only names the command in `last_fault`.
        """

    def forget_loaded_programs(self) -> None:
        """What a reset does: the programs of LOAD are gone."""

    @property
    def last_fault(self) -> str:
        """What was wrong with the last command, in words; empty after a success."""

    def poison(self, address: int, size_bytes: int, read: bool, write: bool) -> None:
        """Injects bus errors: reads and/or writes of [address, address + size_bytes) fail.

        A command fails when a byte of an element or descriptor that it uses lies in the range.
        Hardware fails when a bus beat does: both agree if range and operands are cut at multiples
        of 64 bytes, the widest beat. BUS_READ is reported before BUS_WRITE.
        """

    def clear_poison(self) -> None:
        """Forgets all injected bus errors."""

    def dirty_pages(self) -> list[int]:
        """Addresses of the pages written since the last `clear_dirty`, ascending.

        Pages of PAGE_BYTES are counted from mem_base.
        """

    def clear_dirty(self) -> None:
        """Forgets which pages were written."""

def matmul(
    a: npt.NDArray[Any],
    b: npt.NDArray[Any],
    c: npt.NDArray[Any],
    src_dtype: int,
    dst_dtype: int,
    accumulate: bool = False,
    threads: int = 0,
    kernels: str = "",
) -> None:
    """c[b,m,n] = a[b,m,k] · b[b,k,n] (+ c), by the contract, on arrays of any strides.

    The arrays need only the right item size: pass fp16 and bf16 as they are or as uint16 bits.
    `kernels`: a name from `kernel_names`, empty for the fastest.
    """

def kernel_names() -> list[str]:
    """Sets of inner loops that this host can execute, fastest first. All give the same bits."""

def micro(op: int, a: _Words, b: _Words, c: _Words, out: _Words, kernels: str = "") -> None:
    """out[i] = instruction `op` (a MicroOp) of a[i], b[i], c[i], by the loops that VECTOR uses."""

def run_program(
    image: bytes,
    sources: list[_Words],
    imms: list[int],
    outs: list[_Words],
    kernels: str = "",
) -> None:
    """outs[r][i] = result r of the program in an image, on element i of its sources; `index` is i.

    What VECTOR computes of FP32 or INT32 operands, without memory. A program that reduces gives its
    elements before they are reduced. `imms`: up to six words. ValueError on a malformed image.
    """

def fma32(a: _Words, b: _Words, c: _Words, out: _Words) -> None:
    """out[i] = a[i]·b[i] + c[i] on fp32 bits, rounded once."""

def widen_fp16(a: _Words, out: _Words) -> None:
    """out[i] = fp32 bits of the fp16 bits a[i]."""

def widen_bf16(a: _Words, out: _Words) -> None:
    """out[i] = fp32 bits of the bf16 bits a[i]."""

def narrow_fp16(a: _Words, out: _Words) -> None:
    """out[i] = fp16 bits of the fp32 bits a[i]."""

def narrow_bf16(a: _Words, out: _Words) -> None:
    """out[i] = bf16 bits of the fp32 bits a[i]."""

def mac8(a: _Words, b: _Words, acc: _Words, out: _Words) -> None:
    """out[i] = acc[i] + a[i]·b[i] modulo 2^32; a and b are int8 in the low byte."""
