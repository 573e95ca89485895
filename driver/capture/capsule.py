# SPDX-License-Identifier: Apache-2.0
"""A capsule in memory: its document and the bytes of its storages. Knows no files, no torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver.capture.format import Document, Op, TensorRef

Bytes = npt.NDArray[np.uint8]

_NUMPY_TYPES: dict[str, str] = {
    "float32": "<f4",
    "float16": "<f2",
    "bfloat16": "<u2",
    "float64": "<f8",
    "int8": "i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "u1",
    "bool": "?",
}


def content_hash(fields: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a document's fields (JSON types) without "hash".

    Canonical: keys sorted, no white space, ASCII. The storages' own hashes are among the fields,
    so the value covers every byte of the capsule's tensors.
    """
    rest = {key: value for key, value in fields.items() if key != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def signed(fields: Mapping[str, Any]) -> Document:
    """A document of these fields, with the hash that fits."""
    unsigned = Document(**{**fields, "hash": "0" * 64})
    return Document(**{**fields, "hash": content_hash(unsigned.model_dump(mode="json"))})


@dataclass(frozen=True)
class Capsule:
    """Ops with their real operands and results; immutable.

    `data` maps each storage name of the document to its bytes (read-only arrays).
    """

    document: Document
    data: Mapping[str, Bytes]

    @property
    def name(self) -> str:
        """The name given at capture."""
        return self.document.name

    @property
    def seed(self) -> int:
        """The seed given at capture."""
        return self.document.seed

    @property
    def hash(self) -> str:
        """The content hash; equal hashes mean equal ops and equal tensors."""
        return self.document.hash

    @property
    def ops(self) -> tuple[Op, ...]:
        """The recorded ops in program order."""
        return self.document.ops

    def array(self, ref: TensorRef) -> npt.NDArray[Any]:
        """The tensor as a read-only strided numpy view; bfloat16 comes as its uint16 bits."""
        dtype = np.dtype(_NUMPY_TYPES[ref.dtype])
        if ref.numel == 0:
            return np.empty(ref.sizes, dtype)
        whole = np.frombuffer(self.data[ref.storage], dtype=np.uint8)
        usable = whole.size - whole.size % dtype.itemsize
        view = np.lib.stride_tricks.as_strided(
            whole[:usable].view(dtype)[ref.offset :],
            shape=ref.sizes,
            strides=tuple(stride * dtype.itemsize for stride in ref.strides),
            writeable=False,
        )
        return view
