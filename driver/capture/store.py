# SPDX-License-Identifier: Apache-2.0
"""A capsule on disk: a folder of capsule.json and tensors.safetensors, trusted only once proven.

Loading runs nothing from the files: JSON and safetensors only. Needs no torch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError, TensorSpec, safe_open, serialize_file

from driver.capture.capsule import Bytes, Capsule, content_hash
from driver.capture.format import ELEMENT_BYTES, MAX_BROADCAST, Document, Storage, TensorRef
from driver.errors import InputError, unwritable
from driver.regular import check_regular, read_regular
from driver.validation import explain

DOCUMENT_FILE: Final = "capsule.json"
TENSOR_FILE: Final = "tensors.safetensors"

_SAFETENSORS_TYPES: dict[str, str] = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float64": "F64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
}
_HEADER_PREFIX_BYTES = 8  # safetensors: u64 length of the JSON header, then header, then data


def save_capsule(capsule: Capsule, path: Path) -> None:
    """Write a capsule to the folder `path`, whole or not at all.

    A folder that is a capsule already is replaced. Equal capsules give equal bytes.

    Raises:
        InputError: `path` exists and is not a capsule, or it cannot be written.
    """
    path = Path(path)
    check_replaceable(path)
    fresh: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        fresh.chmod(0o755)
        (fresh / DOCUMENT_FILE).write_text(_to_text(capsule.document), encoding="ascii")
        _write_tensors(capsule, fresh / TENSOR_FILE)
        (fresh / TENSOR_FILE).chmod(0o644)  # the library leaves it to its owner alone
        _replace(path, fresh)
    except (OSError, SafetensorError) as error:
        raise unwritable(path, "path", error) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)


def load_capsule(path: Path) -> Capsule:
    """Read a capsule and prove it: schema, content hash, every storage's bytes, every view.

    Tensor data is mapped, not read into memory a second time; a later change of the file shows,
    so treat a loaded capsule's folder as read-only.

    Raises:
        InputError: names the file and the field that is wrong.
    """
    path = Path(path)
    document = _read_document(path / DOCUMENT_FILE)
    data = _read_tensors(path / TENSOR_FILE, document.storages)
    return Capsule(document, data)


def check_replaceable(path: Path) -> None:
    """InputError when something that is no capsule is at `path`."""
    if not path.exists() and not path.is_symlink():
        return
    known = {DOCUMENT_FILE, TENSOR_FILE}
    if path.is_dir() and not path.is_symlink():
        names = {entry.name for entry in path.iterdir()}
        if not names or names == known:
            return
    raise InputError(str(path), "path", "something else is there", "a new folder, or a capsule")


def _replace(path: Path, fresh: Path) -> None:
    """Put `fresh` in the place of `path`; the former folder is gone only after that."""
    if path.exists():
        former = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            path.rename(former / "former")
            try:
                fresh.rename(path)
            except OSError:
                (former / "former").rename(path)
                raise
        finally:
            shutil.rmtree(former, ignore_errors=True)
    else:
        fresh.rename(path)


def _to_text(document: Document) -> str:
    """JSON with one storage or op per line, so that two capsules can be compared by diff."""
    fields = document.model_dump(mode="json")
    lines = []
    for key, value in fields.items():
        if key == "ops":
            body = ",\n".join("    " + _compact(op) for op in value)
            lines.append(f'  "ops": [\n{body}\n  ]')
        elif key == "storages":
            body = ",\n".join(f"    {json.dumps(k)}: {_compact(v)}" for k, v in value.items())
            lines.append(f'  "storages": {{\n{body}\n  }}')
        else:
            lines.append(f"  {json.dumps(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _write_tensors(capsule: Capsule, path: Path) -> None:
    # The writer takes each buffer as it lies in memory: contiguous, and alive until it is done.
    raw = {name: np.ascontiguousarray(array) for name, array in capsule.data.items()}
    specs = {
        name: TensorSpec(
            dtype=storage.dtype,
            shape=[storage.size_bytes // ELEMENT_BYTES[storage.dtype]],
            data_ptr=raw[name].ctypes.data,
            data_len=raw[name].nbytes,
        )
        for name, storage in capsule.document.storages.items()
    }
    serialize_file(specs, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _read_document(file: Path) -> Document:
    try:
        text = read_regular(file, "a capsule's document").decode()
    except UnicodeDecodeError as error:
        raise InputError(str(file), f"byte {error.start}", "not UTF-8", "JSON in UTF-8") from error
    try:
        fields = json.loads(text, object_pairs_hook=lambda pairs: _unique(file, pairs))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InputError(str(file), place, error.msg, "JSON") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, or deep nesting
        raise InputError(str(file), "file", _brief(error), "JSON") from error
    try:
        document = Document.model_validate_json(text)
    except ValidationError as error:
        field, value, expected = explain(error)
        raise InputError(str(file), field or "file", _brief(value), expected) from error
    computed = content_hash(fields)
    if computed != document.hash:
        raise InputError(str(file), "hash", document.hash, f"{computed} (the contents' hash)")
    _check_views(file, document)
    return document


def _unique(file: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise InputError(str(file), _brief(key), "given twice", "each key once")
        seen[key] = value
    return seen


def _check_views(file: Path, document: Document) -> None:
    for index, op in enumerate(document.ops):
        if op.index != index:
            raise InputError(str(file), f"ops[{index}].index", op.index, str(index))
    for field, ref in document.refs():
        storage = document.storages.get(ref.storage)
        if storage is None:
            raise InputError(str(file), f"{field}.storage", ref.storage, "a name in storages")
        if len(ref.sizes) != len(ref.strides):
            raise InputError(
                str(file), f"{field}.strides", str(ref.strides), f"{len(ref.sizes)} strides"
            )
        _check_extent(file, field, ref, storage)
        if ref.end_byte > storage.size_bytes:
            raise InputError(
                str(file),
                field,
                f"ends at byte {ref.end_byte} of {ref.storage}",
                f"a view within its {storage.size_bytes} bytes",
            )


def _check_extent(file: Path, field: str, ref: TensorRef, storage: Storage) -> None:
    """A few bytes must not stand for more elements than there is memory."""
    elements = math.prod(size for size in ref.sizes if size)
    limit = max(storage.size_bytes // ref.element_bytes, MAX_BROADCAST)
    if elements > limit:
        raise InputError(file, f"{field}.sizes", list(ref.sizes), f"at most {limit} elements")
    if ref.offset * ref.element_bytes > storage.size_bytes:
        expected = f"a place within its {storage.size_bytes} bytes"
        raise InputError(file, f"{field}.offset", ref.offset, expected)


def _read_tensors(file: Path, storages: dict[str, Storage]) -> dict[str, Bytes]:
    check_regular(file, "a capsule's tensors")
    header, start = _read_header(file)
    for name in sorted(set(header) ^ set(storages)):
        problem = "tensor is missing" if name in storages else "tensor is not in capsule.json"
        raise InputError(str(file), _brief(name), problem, "the storages of capsule.json")
    whole = np.memmap(file, dtype=np.uint8, mode="r") if start < file.stat().st_size else None
    data: dict[str, Bytes] = {}
    for name, storage in storages.items():
        entry = header[name]
        count = storage.size_bytes // ELEMENT_BYTES[storage.dtype]
        wanted = (_SAFETENSORS_TYPES[storage.dtype], [count])
        if (entry["dtype"], entry["shape"]) != wanted:
            found = f"{entry['dtype']} {entry['shape']}"
            raise InputError(str(file), name, found, f"{wanted[0]} {wanted[1]}")
        begin, end = entry["data_offsets"]
        empty = np.empty(0, np.uint8)
        data[name] = empty if whole is None else np.asarray(whole[start + begin : start + end])
        digest = hashlib.sha256(data[name].data).hexdigest()
        if digest != storage.sha256:
            raise InputError(str(file), name, f"sha256 {digest}", f"sha256 {storage.sha256}")
    return data


def _read_header(file: Path) -> tuple[dict[str, Any], int]:
    """The header's tensors and the file offset of the data, after safetensors' own checks."""
    try:
        with safe_open(file, framework="numpy"):
            pass
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(_HEADER_PREFIX_BYTES), "little")
            header = json.loads(stream.read(length))
    except OSError as error:
        problem = error.strerror or _brief(error)
        raise InputError(str(file), "file", problem, "a capsule's tensors") from error
    except (SafetensorError, ValueError) as error:
        raise InputError(str(file), "header", _brief(error), "a whole safetensors file") from error
    header.pop("__metadata__", None)
    return header, _HEADER_PREFIX_BYTES + length


def _brief(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
