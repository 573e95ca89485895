# SPDX-License-Identifier: Apache-2.0
"""Every distinct storage content that a run met, each kept once. Content alone decides what a
tensor is: version counters miss writes through `.data`, numpy, or an op that moves statistics."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from driver.capture.capsule import Bytes
from driver.capture.format import Storage, TensorRef
from driver.capture.tensors import ELEMENT_NAMES, storage_view
from driver.errors import InputError, printable


class StorageBook:
    """Storage contents, named in order of appearance, and the memories that held them."""

    def __init__(self, capsule_name: str, module: torch.nn.Module | None = None) -> None:
        self.storages: dict[str, Storage] = {}
        self.data: dict[str, Bytes] = {}
        self.capsule_name = capsule_name
        self._copies: dict[str, bytearray] = {}
        """The bytes behind `data`: a bytearray compares itself with a buffer ten times faster
        than SHA-256 reads it."""
        self._names: dict[str, str] = {}
        self._parameters: dict[int, tuple[StorageWeakRef, str]] = {}
        if module is not None:
            self.name_parameters(module)
        self._buffers: dict[int, tuple[StorageWeakRef, int]] = {}
        self._last: dict[int, str] = {}
        """Number of a memory → name of the content it had when it was last looked at."""

    def name_parameters(self, module: torch.nn.Module) -> None:
        """Storages of its parameters and buffers are named after them from now on."""
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if not _why_not(tensor) and tensor.numel():
                alive = StorageWeakRef(tensor.untyped_storage())
                self._parameters[storage_key(tensor)] = alive, printable(name)

    def bytes_of(self, tensor: torch.Tensor) -> Bytes:
        """The bytes of the tensor's whole storage, without a copy."""
        return storage_view(tensor)

    def living(self) -> set[int]:
        """The numbers of the memories that are still in use."""
        return {number for alive, number in self._buffers.values() if not alive.expired()}

    def ref(self, tensor: torch.Tensor, field: str) -> TensorRef:
        """Record a tensor; its bytes are copied if they are new.

        InputError when it is no strided CPU tensor of a type that capsules hold.
        """
        self.check(tensor, field)
        buffer = self._buffer(tensor)
        name = self._last[buffer] = self._content(tensor, self._last.get(buffer))
        return TensorRef.model_validate(
            {
                "storage": name,
                "dtype": ELEMENT_NAMES[tensor.dtype],
                "sizes": tuple(tensor.shape),
                "strides": tensor.stride(),
                "offset": tensor.storage_offset() if tensor.numel() else 0,  # may lie beyond
                "buffer": buffer,
            }
        )

    def _content(self, tensor: torch.Tensor, former: str | None) -> str:
        """The name of what the tensor's whole storage holds now, recorded if it is new. A memory
        mostly holds what it held before: that is compared, not hashed."""
        view = self.bytes_of(tensor)
        if former is not None and self._copies[former] == view.data:
            return former
        digest = hashlib.sha256(view.data).hexdigest()
        name = self._names.get(digest)
        if name is None:
            name = self._names[digest] = f"s{len(self._names)}"
            whole = view.size % tensor.element_size() == 0
            dtype = ELEMENT_NAMES[tensor.dtype] if whole else "uint8"
            _, parameter = self._parameters.get(storage_key(tensor), (None, None))
            self.storages[name] = Storage.model_validate(
                {"sha256": digest, "size_bytes": view.size, "dtype": dtype, "parameter": parameter}
            )
            self._copies[name] = bytearray(view.data)
            self.data[name] = np.frombuffer(self._copies[name], np.uint8)
            self.data[name].flags.writeable = False
        return name

    def _buffer(self, tensor: torch.Tensor) -> int:
        """The number of the tensor's memory. A weak reference keeps torch from giving the identity
        of a dead storage to a new one."""
        storage = tensor.untyped_storage()
        alive = StorageWeakRef(storage)
        fresh = (alive, len(self._buffers))
        return self._buffers.setdefault(storage_key(tensor), fresh)[1]

    def check(self, tensor: torch.Tensor, field: str) -> None:
        """InputError unless the tensor has a place in a capsule."""
        why = _why_not(tensor)
        if why or tensor.device.type != "cpu":
            value = f"{why or tensor.layout} tensor on {tensor.device}"
            raise InputError(self.capsule_name, field, value, "a plain strided tensor on the CPU")
        if tensor.dtype not in ELEMENT_NAMES:
            raise InputError(
                self.capsule_name,
                field,
                str(tensor.dtype),
                f"one of {', '.join(ELEMENT_NAMES.values())}",
            )


def _why_not(tensor: torch.Tensor) -> str:
    """What keeps a tensor from being its storage's bytes: other layouts and classes, and what torch
    keeps beside the bytes. Empty: nothing."""
    kinds = {
        "nested": tensor.is_nested,
        "wrapped": is_traceable_wrapper_subclass(tensor),
        str(tensor.layout): tensor.layout is not torch.strided,
        "zero": not tensor.is_nested and tensor._is_zerotensor(),
        "negated": tensor.is_neg(),
        "conjugated": tensor.is_conj(),
    }
    return next((kind for kind, found in kinds.items() if found), "")


def storage_key(tensor: torch.Tensor) -> int:
    """The identity of the tensor's storage while it lives."""
    return int(tensor.untyped_storage()._cdata)
