# SPDX-License-Identifier: Apache-2.0
"""PyTorch's OpInfos on device "npu": samples, and the comparison of one of them with CPU torch.

A sample runs in all forms that the OpInfo has: fresh result, `out=`, in place, gradient.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

from tb.op_survey import database

Tensor = torch.Tensor
DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16),
    *(torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool),
)
"""All that the NPU holds."""
MAX_SAMPLES, MAX_TRIED, MAX_ELEMENTS = 3, 120, 20_000

TOLERANCES = {
    torch.float32: (2e-5, 2e-5),
    torch.float16: (4e-3, 2e-3),
    torch.bfloat16: (3.2e-2, 1.6e-2),
}
"""rtol and atol. Integers are equal."""

EXEMPT = {
    "as_strided.partial_views": "looks beyond the sample's tensor, at bytes that a copy has not",
    "native_batch_norm": "saves statistics in evaluation, as on other accelerators",
    "_native_batch_norm_legit": "saves statistics in evaluation, as on other accelerators",
    "tensor_split": "wants its sections on the CPU, as on other accelerators",
    **dict.fromkeys(
        (
            *("jiterator_unary", "jiterator_binary", "jiterator_4inputs_with_extra_args"),
            *("jiterator_binary_return_by_ref", "jiterator_2inputs_2outputs"),
        ),
        "torch has it for CUDA alone",
    ),
    "sparse.sampled_addmm": "sparse tensors",
    "sparse.mm.reduce": "sparse tensors",
    "special.polygamma.special_polygamma_n_0": "a second name",
}
"""OpInfos that ask for something else than an op of dense tensors on an accelerator."""

OTHER_VALUES = {
    f"polygamma.polygamma_n_{n}": (torch.int8, "at a pole torch has a large number, the NPU ∞")
    for n in range(5)
}
"""Right values that differ from CPU torch's, and in which type."""
STATISTICS = frozenset({"native_layer_norm", "native_group_norm", "_batch_norm_with_update"})
"""Their means are in fp32 for short types, as on other accelerators."""

UNDEFINED = frozenset(
    {
        *("empty", "empty_like", "empty_permuted", "empty_strided"),
        *("new_empty", "new_empty_strided"),
    }
)
"""Their elements are not defined: sizes and types are compared."""
DRAWN = frozenset(
    {
        *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial"),
        *("normal", "normal.in_place", "normal.number_mean", "rand_like", "randint"),
        *("randint_like", "randn", "randn_like", "uniform", "nn.functional.rrelu"),
        *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"),
        *("nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout.with_train"),
        "nn.functional.feature_alpha_dropout.without_train",
        *("nn.functional.scaled_dot_product_attention", "pca_lowrank", "svd_lowrank"),
        "nn.functional.multi_head_attention_forward",
    }
)
"""They draw random numbers, which are the NPU's own: sizes and types are compared."""


def _values(sample: Any, found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


def _gathered(sample: Any, found: Tensor) -> Tensor:
    """The elements at the places that argsort names."""
    dim = sample.args[0] if sample.args else sample.kwargs.get("dim", -1)
    x = sample.input.detach()
    return x.gather(dim, found.cpu()) if x.dim() else x


WITH_TIES: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("sort", "msort", "topk", "kthvalue"), _values),
    "argsort": _gathered,
}
"""Ops that may choose among equal elements, of which short types have many; fp32 has none here."""
FREE_SIGNS = frozenset({"linalg.eigh"})
"""Ops whose results have free signs: what `output_process_fn_grad` makes of them is compared."""


def cases(dtype: torch.dtype) -> list[Any]:
    """The OpInfos that CPU torch has in this type."""
    return [
        op
        for op in op_db
        if dtype in op.supported_dtypes("cpu")
        and op.full_name not in EXEMPT
        and OTHER_VALUES.get(op.full_name, (None, ""))[0] is not dtype
    ]


def tensors(tree: object) -> list[Tensor]:
    """All tensors of nested lists."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def on_npu(value: object) -> object:
    """A tensor or a device, moved."""
    if isinstance(value, Tensor):
        return value.detach().to("npu").requires_grad_(value.requires_grad)
    return torch.device("npu") if isinstance(value, torch.device) else value


def samples(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    """The first MAX_TRIED samples of moderate size; drawn equally in each run."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    wants_gradient = dtype in op.supported_backward_dtypes("cpu")
    for sample in islice(database.samples(op, dtype, wants_gradient), MAX_TRIED):
        sizes = [x.numel() for x in tensors((sample.input, sample.args, sample.kwargs))]
        if not sizes or max(sizes) <= MAX_ELEMENTS:
            yield sample


def compare(found: object, expected: object, values: bool, truth: object = None) -> int:
    """How many elements are compared, numbers among them. AssertionError for a difference.

    `truth`: called for the results in float64, where they differ by more than TOLERANCES. Those of
    the NPU may be as far from it as those of CPU torch.
    """
    mine, theirs = tree_leaves(found), tree_leaves(expected)
    assert len(mine) == len(theirs)
    compared, wide = 0, None
    for at, (result, answer) in enumerate(zip(mine, theirs, strict=True)):
        if not isinstance(answer, Tensor):
            if isinstance(answer, bool | int | float | complex) and values:
                torch.testing.assert_close(result, answer, equal_nan=True)
                compared += 1
            continue
        assert result.shape == answer.shape, (result.shape, answer.shape)
        assert result.dtype is answer.dtype, (result.dtype, answer.dtype)
        compared += answer.numel()
        one, other = result.detach().cpu(), answer.detach()
        if not values or _are_close(one, other):
            continue
        if wide is None and callable(truth) and other.dtype in TOLERANCES:
            wide = tree_leaves(truth())
        if wide is None or not _is_as_near(one, other, wide[at]):
            _assert_close(one, other)
    return compared


def _assert_close(one: Tensor, other: Tensor) -> None:
    rtol, atol = TOLERANCES.get(_real(other.dtype), (0, 0))
    torch.testing.assert_close(one, other, equal_nan=True, rtol=rtol, atol=atol)


def _are_close(one: Tensor, other: Tensor) -> bool:
    try:
        _assert_close(one, other)
    except AssertionError:
        return False
    return True


def _is_as_near(one: Tensor, other: Tensor, truth: Tensor) -> bool:
    """Whether the error of `one` is not above twice the largest of `other`, relative to the values.

    Twice: two sums in another order have the same bound, not the same error.
    """
    truth = truth.detach().to(torch.float64)
    finite = truth.isfinite() & one.isfinite() & other.isfinite()
    if not torch.equal(one[~finite].isfinite(), other[~finite].isfinite()):
        return False
    scale = truth.abs().clamp(min=1)
    mine, theirs = (((x.double() - truth).abs() / scale)[finite] for x in (one, other))
    return mine.numel() > 0 and float(mine.max()) <= 2 * float(theirs.max())


def _real(dtype: torch.dtype) -> torch.dtype:
    parts = {torch.complex64: torch.float32, torch.complex32: torch.float16}
    return parts.get(dtype, dtype)


def _gradients(op: Any, sample: Any, made: object) -> list[Tensor | None]:
    """With regard to every input that wants one, for gradients of the results that all differ."""
    inputs = [x for x in tensors((sample.input, sample.args, sample.kwargs)) if x.requires_grad]
    made = sample.output_process_fn_grad(made) if sample.output_process_fn_grad else made
    results = [x for x in tensors(made) if x.requires_grad]
    if not results or not inputs:
        return []
    given = [_spread(x) for x in results]
    return list(torch.autograd.grad(results, inputs, given, allow_unused=True))


def _spread(like: Tensor) -> Tensor:
    """Numbers between ½ and 1½ in no simple pattern."""
    steps = (torch.arange(like.numel(), dtype=torch.float64) * 0.618034) % 1 + 0.5
    return steps.reshape(like.shape).to(like.dtype).to(like.device)


def _in_place(
    variant: Callable[..., Any], sample: Any, there: Any, values: bool, truth: Callable[[], Any]
) -> int:
    """The op in place on copies. 0 for a sample that CPU torch refuses in place."""
    with torch.no_grad():
        own = sample.input.detach().clone()
        try:
            variant(own, *sample.args, **sample.kwargs)
        except RuntimeError:
            return 0
        found = there.input.detach().clone()
        assert variant(found, *there.args, **there.kwargs) is found
    return compare(found, own, values, truth)


def _as_double(value: object) -> object:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().double().requires_grad_(value.requires_grad)
    return value


def check(op: Any, sample: Any) -> int:
    """Compare one sample; how many elements. NotImplementedError when the NPU refuses it."""
    name = op.full_name
    there, wide = sample.transform(on_npu), sample.transform(_as_double)
    values = name not in UNDEFINED | DRAWN

    def run(given: Any, **kwargs: Any) -> Any:
        return op(given.input, *given.args, **given.kwargs, **kwargs)

    expected, found = run(sample), run(there)
    ties = name in WITH_TIES and sample.input.dtype is not torch.float32
    process = sample.output_process_fn_grad if name in FREE_SIGNS else tree_leaves
    process = partial(WITH_TIES[name], sample) if ties else process
    if name in STATISTICS:
        found = [x.to(y.dtype) for x, y in zip(found, expected, strict=True)]
    compared = compare(process(found), process(expected), values, lambda: process(run(wide)))
    if op.supports_out and isinstance(found, Tensor):
        with torch.no_grad():
            out = torch.empty_like(found, requires_grad=False)
            assert run(there, out=out) is out
        compared += compare(process(out), process(expected), values, lambda: run(wide))
    if op.inplace_variant is not None and not sample.broadcasts_input:
        compared += _in_place(op.inplace_variant, sample, there, values, lambda: run(wide))
    if ties:  # a gradient goes to the one that was chosen
        return compared
    pairs = _gradients(op, there, found), _gradients(op, sample, expected)
    return compared + compare(*pairs, values, lambda: _gradients(op, wide, run(wide)))


def outcome(op: Any, dtype: torch.dtype) -> tuple[str, int]:
    """("", elements compared), ("refused: …", 0) or ("wrong: …", 0)."""
    compared = full = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in samples(op, dtype):
                found = check(op, sample)
                compared, full = compared + found, full + bool(found)
                if full == MAX_SAMPLES:
                    break
    except NotImplementedError as error:
        return f"refused: {_line(error)}", 0
    except Exception as error:  # a wrong value or a crash
        return f"wrong: {_line(error)}", 0
    if not compared and op.full_name not in UNDEFINED:
        return "wrong: nothing was compared", 0
    return "", compared


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:240]
