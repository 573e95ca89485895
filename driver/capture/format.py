# SPDX-License-Identifier: Apache-2.0
"""The records of a capsule, as they stand in capsule.json. Knows neither torch nor files.

Everything is frozen, strict and closed (an unknown key is an error). docs/capsule.md explains
the fields to a user; `driver.capture.store` reads and writes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
)

from driver.frozen import Frozen
from driver.isa import DType
from driver.runtime.types import NPU_TYPES

SCHEMA_VERSION: Final = 1
"""Raised by one whenever a capsule of the former version could be misread."""

ElementType = Literal[
    "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"
]

ELEMENT_BYTES: dict[str, int] = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "bool": 1,
}

CapsuleName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]

MAX_BROADCAST: Final = 1 << 28
"""Elements of a tensor that repeats its storage's elements by strides of 0."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("control characters are not allowed in a name")
    return text


HOST_READ: Final = "aten._local_scalar_dense.default"
"""`.item()`, `if tensor:`: the host reads the one element of a tensor. Its recorded output is that
tensor: the host reads it where it is."""

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Scalar = Annotated[int, Field(ge=-(1 << 63), lt=1 << 64)]
Name = Annotated[str, AfterValidator(_printable)]
"""Text that is shown to a user."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
StorageName = Annotated[str, Field(pattern=r"^s(0|[1-9][0-9]*)$")]


class TensorRef(Frozen):
    """A tensor: a strided view of a storage. Sizes, strides and offset count elements."""

    kind: Literal["tensor"] = "tensor"
    storage: StorageName
    dtype: ElementType
    sizes: tuple[Count, ...]
    strides: tuple[Count, ...]
    offset: Count = 0
    buffer: Count | None = None
    """Which memory of the run held the storage: tensors of one buffer alias each other, and what
    is written to one is read from the other. None: a buffer of its own."""

    @property
    def element_bytes(self) -> int:
        """Size of one element in bytes."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def npu_dtype(self) -> DType | None:
        """The NPU's name of the element type, or None where it has no such type."""
        return NPU_TYPES.get(self.dtype)

    @property
    def numel(self) -> int:
        """Number of elements; a broadcast dimension counts in full."""
        return math.prod(self.sizes)

    @property
    def is_dense(self) -> bool:
        """Row-major without gaps: addressing it needs no strides."""
        expected = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    @property
    def end_byte(self) -> int:
        """One past the last byte of the storage that the view touches; 0 for an empty tensor."""
        if self.numel == 0:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))
        return (self.offset + last + 1) * self.element_bytes


class Constant(Frozen):
    """An argument that JSON cannot hold: a torch constant, or a float that is not finite."""

    kind: Literal["dtype", "layout", "device", "memory_format", "float"]
    value: str


_SCALAR_TAGS = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}


def _tag(value: object) -> str | None:
    """Which of an argument's forms a value has: an exact choice, so that errors name the field."""
    if isinstance(value, dict):
        return "tensor" if value.get("kind") == "tensor" else "constant"
    if isinstance(value, list | tuple):
        return "list"
    known = {TensorRef: "tensor", Constant: "constant"} | _SCALAR_TAGS
    return known.get(type(value))


_CHOICE = Discriminator(
    _tag,
    custom_error_type="argument",
    custom_error_message="a tensor, a constant, a number, a string, null or a flat list of these",
)

Item = Annotated[
    Annotated[TensorRef, Tag("tensor")]
    | Annotated[Constant, Tag("constant")]
    | Annotated[bool, Tag("bool")]
    | Annotated[Scalar, Tag("int")]
    | Annotated[float, Field(allow_inf_nan=False), Tag("float")]
    | Annotated[str, Tag("str")]
    | Annotated[None, Tag("null")],
    _CHOICE,
]
Value = Annotated[
    Annotated[TensorRef, Tag("tensor")]
    | Annotated[Constant, Tag("constant")]
    | Annotated[bool, Tag("bool")]
    | Annotated[Scalar, Tag("int")]
    | Annotated[float, Field(allow_inf_nan=False), Tag("float")]
    | Annotated[str, Tag("str")]
    | Annotated[None, Tag("null")]
    | Annotated[tuple[Item, ...], Tag("list")],
    _CHOICE,
]


class Op(Frozen):
    """One ATen call. `inputs` and `kwargs` are as the dispatcher saw them."""

    index: Count
    op: Annotated[str, Field(pattern=r"^\w+\.\w+\.\w+$")]
    """Namespace, name and overload: "aten.addmm.default"."""
    module: Name
    """Path of the module whose forward made the call; "" is the captured module itself."""
    source: Annotated[Name, Field(pattern=r"^[^/\\][^\\]*:[0-9]+$")]
    """Relative file and line of the call."""
    view: bool
    """The op moves no data: its output is another view of its input's storage."""
    inputs: tuple[Value, ...]
    kwargs: dict[str, Value]
    outputs: tuple[TensorRef | None, ...]
    stream: tuple[Count, Count] | None = None
    """Run and op whose random numbers are drawn, where they are not this capsule's seed and index:
    of an op that was taken out of another capsule."""

    @model_serializer(mode="wrap")
    def _without_own_stream(self, fields: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Nothing is written for the usual stream: capsules without random ops keep their hash."""
        written: dict[str, object] = fields(self)
        if self.stream is None:
            del written["stream"]
        return written

    def operands(self) -> Iterator[TensorRef]:
        """Every tensor that the op is given."""
        for value in (*self.inputs, *self.kwargs.values()):
            yield from (ref for _, ref in _refs_of("", value))

    def refs(self) -> Iterator[tuple[str, TensorRef]]:
        """Every tensor of the op with the name of its field, inputs first."""
        for index, value in enumerate(self.inputs):
            yield from _refs_of(f"inputs[{index}]", value)
        for name, value in self.kwargs.items():
            yield from _refs_of(f"kwargs.{name}", value)
        for index, output in enumerate(self.outputs):
            yield from _refs_of(f"outputs[{index}]", output)


class Storage(Frozen):
    """A run of bytes that tensors share. No two storages of a capsule hold the same bytes."""

    sha256: Sha256
    size_bytes: Count
    dtype: ElementType
    """Element type under which tensors.safetensors holds the bytes, as one dimension."""
    parameter: Name | None = None
    """Name of the module's parameter or buffer that lives here, if any."""


class RecordedOn(Frozen):
    """The NPU that computed what a capsule of a running program holds."""

    backend: Name
    config: Name


class Document(Frozen):
    """The whole of capsule.json."""

    format: Literal["npu-capsule"] = "npu-capsule"
    schema_version: Literal[1] = SCHEMA_VERSION
    name: CapsuleName
    seed: Count
    torch: Name
    """Version of the torch that computed the outputs."""
    hash: Sha256
    """SHA-256 of the canonical JSON of every other field; see `content_hash`."""
    storages: dict[StorageName, Storage]
    inputs: tuple[TensorRef, ...]
    outputs: tuple[TensorRef, ...]
    ops: tuple[Op, ...]
    device: RecordedOn | None = None
    """Where the outputs were computed, if not by CPU torch."""

    @model_serializer(mode="wrap")
    def _without_cpu(self, fields: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Nothing is written for CPU torch: capsules of it keep their hash."""
        written: dict[str, object] = fields(self)
        if self.device is None:
            del written["device"]
        return written

    def refs(self) -> Iterator[tuple[str, TensorRef]]:
        """Every tensor of the capsule with the name of its field."""
        for name, group in (("inputs", self.inputs), ("outputs", self.outputs)):
            for index, ref in enumerate(group):
                yield f"{name}[{index}]", ref
        for index, op in enumerate(self.ops):
            for name, ref in op.refs():
                yield f"ops[{index}].{name}", ref


def _refs_of(name: str, value: Value) -> Iterator[tuple[str, TensorRef]]:
    if isinstance(value, TensorRef):
        yield name, value
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _refs_of(f"{name}[{index}]", item)
