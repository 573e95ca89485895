# SPDX-License-Identifier: Apache-2.0
"""Makes the device known to torch: its name, torch.npu, the core's callbacks and the kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import CodeType
from typing import Any

import torch
from torch._C._dynamo.eval_frame import (
    _FrameAction,
    _FrameExecStrategy,
    set_code_exec_strategy,
)
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from driver.torch_device.keyboard_interrupt import defer_interrupt

WHOLE = (
    "_fused_rms_norm",
    "_safe_softmax",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_fused_attention_overrideable_backward",
    "addr",
    "conj_physical_",
    "constant_pad_nd",
    "convolution",
    "convolution_backward",
    "cummax",
    "cummin",
    "embedding",
    "index_put_",
    "kaiser_window",
    "kaiser_window.beta",
    "kaiser_window.periodic",
    "ldexp.Tensor",
    "ldexp.out",
    "ldexp_",
    "linalg_matrix_rank",
    "linalg_matrix_rank.atol_rtol_float",
    "linalg_matrix_rank.atol_rtol_float_out",
    "linalg_matrix_rank.atol_rtol_tensor",
    "linalg_matrix_rank.atol_rtol_tensor_out",
    "linalg_matrix_rank.out",
    "linalg_matrix_rank.out_tol_tensor",
    "linalg_matrix_rank.tol_tensor",
    "linalg_pinv.atol_rtol_tensor",
    "mean",
    "mish_backward",
    "mv",
    "native_group_norm",
    "native_layer_norm",
    "repeat",
    "silu_backward",
    "stack",
    "sum",
)
"""Ops that torch would take apart before they reach the fallback, although they have rows or
definitions of ours."""


class CoreMissing(Exception):
    """The C++ core is not there, or was built for another torch."""


@cache
def register() -> None:
    """Once per process. CoreMissing when the C++ core cannot be loaded."""
    try:
        from driver.torch_device import _core  # noqa: PLC0415
    except ImportError as error:
        raise CoreMissing(f"driver.torch_device._core is not built ({error}): make setup") from None
    running = torch.__version__.partition("+")[0]
    if running != _core.TORCH_VERSION:
        raise CoreMissing(f"built for torch {_core.TORCH_VERSION}, this is {running}: make setup")
    from driver.capture import npu_ops  # noqa: F401, PLC0415 (makes torch.ops.npu)
    from driver.torch_device import amp, check, npu, pool, profiling, sharing  # noqa: PLC0415

    rename_privateuse1_backend("npu")
    count = pool.POOL.settings.count
    _core.start(
        count,
        defer_interrupt(pool.allocate),
        defer_interrupt(pool.free_released),
        defer_interrupt(pool.copy_bytes),
        defer_interrupt(pool.submit),
        defer_interrupt(pool.wait),
        defer_interrupt(pool.is_idle),
        defer_interrupt(pool.raise_fault),
        defer_interrupt(pool.hear),
        defer_interrupt(pool.record),
    )
    torch._register_device_module("npu", npu)
    generate_methods_for_privateuse1_backend(for_storage=True)
    npu.fill_generators()
    _register_kernels()
    _print_on_the_host()
    amp.unscale_in_fp32()
    sharing.register()
    _core.register_profiler(profiling.watch)
    npu.debug.enable(pool.POOL.settings.debug)
    if pool.POOL.settings.check:
        check.check_whole_process()


def _register_kernels() -> None:
    aten = _library("aten", "PrivateUse1")
    for name in ("copy_from", "copy_from_and_resize", "local_scalar_dense"):
        aten.impl(f"_{name}", defer_interrupt(partial(_late, "tensors", name)))
    aten.impl("is_set_to", defer_interrupt(partial(_late, "tensors", "is_set_to")))
    dispatch = defer_interrupt(_replaying(partial(_late, "dispatch", "dispatch")))
    _hide_from_compiler(dispatch.__code__)
    for name in WHOLE:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        aten.impl(name, partial(dispatch, op))
    for key in ("Conjugate", "Negative"):  # copies look at these bits themselves
        _library("aten", key).impl("_copy_from", torch.library.fallthrough_kernel)
    _library("_", "PrivateUse1").fallback(dispatch)


def _hide_from_compiler(kernels: CodeType) -> None:
    """torch.compile goes on compiling behind a break in its graph: not what a kernel calls."""
    skip = _FrameAction.SKIP
    set_code_exec_strategy(kernels, _FrameExecStrategy(skip, skip))


def _replaying(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that queues a call that was made before, and leaves others to `dispatch`."""
    from driver.torch_device._core import replayed  # noqa: PLC0415 (see register)
    from driver.torch_device.observers import op_by_op  # noqa: PLC0415

    def kernel(op: Any, *args: Any, **kwargs: Any) -> Any:
        if not op_by_op():
            made = replayed(op, args, kwargs)
            if made is not NotImplemented:
                return made
        return dispatch(op, *args, **kwargs)

    return kernel


def _print_on_the_host() -> None:
    """torch finds the columns' width by some fifteen ops: one copy instead."""
    write = torch._tensor_str._tensor_str

    def tensor_str(self: torch.Tensor, indent: int) -> str:
        text: str = write(self.cpu() if self.device.type == "npu" else self, indent)  # type: ignore[no-untyped-call]
        return text

    torch._tensor_str._tensor_str = tensor_str


def _late(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of this package; its module, and the op table with it, is imported then."""
    return _function(module, name)(*args, **kwargs)


@cache
def _function(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module(f"driver.torch_device.{module}"), name)
    return found


_LIBRARIES: list[Any] = []
"""Kernels are registered as long as their library lives."""


def _library(namespace: str, key: str) -> Any:
    _LIBRARIES.append(torch.library.Library(namespace, "IMPL", key))
    return _LIBRARIES[-1]
