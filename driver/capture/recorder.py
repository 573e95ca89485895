# SPDX-License-Identifier: Apache-2.0
"""Runs a torch module once and records every ATen op that reaches the dispatcher.

Owns the torch side of capture. Does not know which ops the NPU can run: driver.lower does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, TypeGuard

import numpy as np
import torch
from pydantic import PositiveInt, ValidationError
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import driver.capture.npu_ops  # noqa: F401 (registers torch.ops.npu)
from driver.capture.book import StorageBook, storage_key
from driver.capture.capsule import Capsule, signed
from driver.capture.decompose import Definition, definition, is_composite, is_view
from driver.capture.format import HOST_READ, CapsuleName, Count, Item, Op, TensorRef, Value
from driver.capture.host_reads import HostReads
from driver.capture.source import ModulePath, source_line
from driver.capture.tensors import to_constant
from driver.errors import InputError
from driver.frozen import Frozen
from driver.validation import explain

Inputs = torch.Tensor | Sequence[object] | Mapping[str, object]


def capture(
    module: torch.nn.Module,
    inputs: Inputs,
    *,
    name: str,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[], object] | None = None,
) -> Capsule:
    """Run `module` on `inputs` without gradients and record its ops.

    Args:
        module: any module on the CPU; it is called as it is, in the mode (train, eval) it is in.
        inputs: its positional arguments, or its keyword arguments as a mapping, or one tensor.
        name: of the capsule: letters, digits, "_", "." and "-".
        seed: of torch's random numbers during the run (dropout and the like).
        threads: torch's threads during the run; sums depend on it, so it is 1 by default.
        progress: called with every op that is recorded.

    Raises:
        InputError: a tensor is not a plain strided CPU tensor of a type that capsules hold, or
            an argument has no record; `name`, `seed` or `threads` is none.
    """
    try:
        _Settings(name=name, seed=seed, threads=threads)
    except ValidationError as error:
        raise InputError("capture", *explain(error)) from error
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    book = StorageBook(name, module)
    given = _leaf_refs(book, inputs, "inputs")
    with ModulePath(module) as path, _reproducible(seed, threads), torch.no_grad():
        recorder = _Recorder(book, path, capture.__code__, progress)
        with recorder, HostReads(name):
            result = module(**inputs) if isinstance(inputs, Mapping) else module(*inputs)
    fields: dict[str, Any] = {
        "name": name,
        "seed": seed,
        "torch": str(torch.__version__),
        "storages": book.storages,
        "inputs": given,
        "outputs": _leaf_refs(book, result, "outputs"),
        "ops": tuple(recorder.ops),
    }
    return Capsule(signed(fields), book.data)


class _Settings(Frozen):
    """What is asked of `capture` besides the model."""

    name: CapsuleName
    seed: Count
    threads: PositiveInt


class _Recorder(TorchDispatchMode):
    """Sees each op below autograd, after torch has taken composite ops apart."""

    def __init__(
        self,
        book: StorageBook,
        path: ModulePath,
        stop: CodeType,
        progress: Callable[[], object] | None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops: list[Op] = []
        self._book = book
        self._path = path
        self._stop = stop
        self._progress = progress
        self._within: list[torch._ops.OpOverload] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No compiler runs here; torch would import its own first, for 3 s and more."""
        return False

    supports_higher_order_operators = True
    """They come here to be refused."""

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload | torch._ops.HigherOrderOperator,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):  # torch.cond, flex_attention
            name = f"torch.ops.higher_order.{func}"
            expected = "ops on tensors: this one runs functions of the model"
            raise InputError(self._book.capsule_name, f"ops[{len(self.ops)}]", name, expected)
        instead = None if func in self._within else definition(func)
        if instead is not None:
            made = self._decomposed(func, instead, args, kwargs)
            if made is not NotImplemented:
                return made
        field = f"ops[{len(self.ops)}] {func}"
        # Before the call: an op may write to its inputs.
        inputs = tuple(self._value(arg, field) for arg in args)
        named = {key: self._value(arg, field) for key, arg in kwargs.items()}
        result = func(*args, **kwargs)
        outputs = result if isinstance(result, list | tuple) else (result,)
        self.ops.append(
            Op(
                index=len(self.ops),
                op=str(func),
                module=self._path.current,
                source=source_line(self._stop),
                view=is_view(func) and _share_storage(args, outputs),
                inputs=inputs,
                kwargs=named,
                outputs=self._outputs(args if str(func) == HOST_READ else outputs, field),
            )
        )
        if self._progress is not None:
            self._progress()
        return result

    def _decomposed(
        self,
        func: torch._ops.OpOverload,
        instead: Definition,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run and record what the op is made of. An op that comes up again on the way is whole.

        NotImplemented, and nothing recorded, where the definition does not serve these arguments.
        """
        before = len(self.ops)
        self._within.append(func)
        try:
            with self:
                made = instead(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError):
            if func._schema.is_mutable or is_composite(func):
                raise
            made = NotImplemented
        finally:
            self._within.pop()
        if made is NotImplemented:
            del self.ops[before:]
        return made

    def _value(self, arg: object, field: str) -> Value:
        if isinstance(arg, list | tuple):
            return tuple(self._item(item, field) for item in arg)
        return self._item(arg, field)

    def _item(self, arg: object, field: str) -> Item:
        if isinstance(arg, torch.Tensor):
            return self._book.ref(arg, field)
        try:
            return to_constant(arg)
        except TypeError as error:
            raise InputError(
                self._book.capsule_name,
                field,
                str(error),
                "a tensor, a number, a string or a constant",
            ) from error

    def _outputs(self, items: Iterable[object], field: str) -> tuple[TensorRef | None, ...]:
        """A number that an op computes (`equal`) is recorded as a tensor without dimensions."""
        numbers = (bool, int, float)
        tensors = (torch.tensor(item) if isinstance(item, numbers) else item for item in items)
        return tuple(
            self._book.ref(item, field) if isinstance(item, torch.Tensor) else None
            for item in tensors
        )


def _share_storage(args: Iterable[object], outputs: Iterable[object]) -> bool:
    """Whether every output lives in the storage of an input: nothing was computed or moved."""
    given, made = ({storage_key(x) for x in items if _is_strided(x)} for items in (args, outputs))
    return bool(made) and made <= given


def _is_strided(item: object) -> TypeGuard[torch.Tensor]:
    """A tensor with a storage; sparse ones have none, and the book refuses them by name."""
    return isinstance(item, torch.Tensor) and item.layout is torch.strided


def _leaf_refs(book: StorageBook, tree: object, field: str) -> tuple[TensorRef, ...]:
    found = []
    for leaf in tree_leaves(tree):
        if isinstance(leaf, torch.Tensor):
            found.append(book.ref(leaf, field))
        elif dataclasses.is_dataclass(leaf) or isinstance(leaf, Mapping):
            expected = "tensors in tuples, lists and dicts, or a class that torch's pytree knows"
            raise InputError(book.capsule_name, field, f"a {type(leaf).__name__}", expected)
    return tuple(found)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of torch, numpy and Python follow from the seed; undone after."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % (1 << 32))
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)


def _uncompiled() -> contextlib.AbstractContextManager[Any]:
    """torch.compile's functions run as they were written. Its import is left to who needs it."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    eager: contextlib.AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return eager


@contextlib.contextmanager
def _reproducible(seed: int, threads: int) -> Iterator[None]:
    """Seeded, on a fixed number of threads, with no byte left uninitialised; all undone after.

    Attention runs as its defining products and softmax, not as one fused op of this CPU. A model
    that is compiled runs as it was written.
    """
    before_threads = torch.get_num_threads()
    before = torch.get_deterministic_debug_mode()
    before_mha = torch.backends.mha.get_fastpath_enabled()
    torch.set_num_threads(threads)
    torch.backends.mha.set_fastpath_enabled(False)
    # Not use_deterministic_algorithms: the same, but it imports the compiler, 2.7 s.
    torch.set_deterministic_debug_mode("warn")
    try:
        with seeded(seed), sdpa_kernel(SDPBackend.MATH), _uncompiled():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before_mha)
        torch.set_deterministic_debug_mode(before)
        torch.set_num_threads(before_threads)
