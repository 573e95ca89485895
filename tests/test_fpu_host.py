# SPDX-License-Identifier: Apache-2.0
"""The build on the host's FPU writes the same memory, in the same cycles, as the exact RTL."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from driver.backend.rtl import RtlBackend
from driver.config import load_config
from driver.device import Device
from driver.isa import DType, Opcode, Packet
from driver.isa.codec import flag_word

CONFIG_FILE = Path(__file__).resolve().parents[1] / "sim_config.yaml"
CONFIG = load_config(CONFIG_FILE, "small")
M, K, N = 24, 40, 20

SPECIALS = np.array(
    [
        0x00000000,
        0x80000000,
        0x7F800000,
        0xFF800000,
        0x7FC12345,
        0xFFA00000,
        0x00000001,
        0x007FFFFF,
    ],
    np.uint32,
)


def operands(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random bits: every exponent, subnormals, infinities and NaNs of all kinds."""
    generator = np.random.default_rng(seed)
    a, b = (generator.integers(0, 1 << 32, shape, np.uint32) for shape in ((M, K), (K, N)))
    for matrix in (a, b):
        # A row of random bits ends in NaN; most rows are to keep their values instead.
        keep = generator.random(matrix.shape) < 0.95
        matrix[keep] = generator.standard_normal(keep.sum(), np.float32).view(np.uint32)
        matrix.flat[:: matrix.size // 8] = SPECIALS[: len(matrix.flat[:: matrix.size // 8])]
    return a, b


def image(variant: str, tmp_path: Path, seed: int) -> tuple[str, bytes, list[int]]:
    """Hash of all pages that the device wrote, the product's bytes, and the cycles it took."""
    with RtlBackend(
        CONFIG, variant=variant, config_file=CONFIG_FILE, sim_log=tmp_path / f"{variant}.log"
    ) as backend:
        device = Device(backend, CONFIG)
        a, b = operands(seed)
        at = [device.upload(matrix) for matrix in (a, b)]
        result = device.upload(np.full((M, N), 0xA5A5A5A5, np.uint32))
        backend.clear_dirty()
        flags = flag_word(DType.FP32, DType.FP32)
        packet = Packet(Opcode.MATMUL, flags, *at, result, (M, K, N, 1))
        records = device.submit([packet])
        digest = hashlib.sha256()
        for page in backend.dirty_pages():
            digest.update(bytes(backend.read_memory(page, 4096)))
        data = device.download(result, (M, N), np.uint32).tobytes()
        return digest.hexdigest(), data, [record.cycles for record in records]


@pytest.mark.parametrize("seed", [1, 2])
def test_both_fpus_give_the_same_memory_image_in_the_same_cycles(tmp_path: Path, seed: int) -> None:
    host, exact = (image(variant, tmp_path, seed) for variant in ("host", "fast"))
    assert host == exact
    values = np.frombuffer(host[1], np.float32)
    assert values.size == M * N
    assert np.isnan(values).any() and np.isfinite(values).any()
