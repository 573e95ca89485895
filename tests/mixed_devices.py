# SPDX-License-Identifier: Apache-2.0
"""Calls with tensors of two devices: each must be an error that names both.

`python tests/mixed_devices.py` with NPU_DEVICES=2 tries them on two NPUs, and on NPU and CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional


def places(t: Tensor) -> Tensor:
    """Four times index 0, on the tensor's device."""
    return (t[0] * 0).long()


def assigned(x: Tensor, index: Tensor, value: Tensor) -> Tensor:
    x = x.clone()
    x[index] = value
    return x


CALLS: dict[str, Callable[[Tensor, Tensor], object]] = {
    "a sum": lambda x, y: x + y,
    "in place": lambda x, y: x.clone().add_(y),
    "a comparison": lambda x, y: x < y,
    "a power": lambda x, y: x**y,
    "a choice": lambda x, y: torch.where(x > 0, x, y),
    "a condition": lambda x, y: torch.where(y > 0, x, x),
    "limits": torch.clamp,
    "a weight": lambda x, y: torch.lerp(x, x, y),
    "three": lambda x, y: torch.addcmul(x, x, y),
    "equal": torch.equal,
    "close": torch.allclose,
    "a product": lambda x, y: x @ y,
    "a batch": lambda x, y: torch.bmm(x[None], y[None]),
    "an added product": lambda x, y: torch.addmm(y, x, x),
    "a vector": lambda x, y: x.mv(y[0]),
    "einsum": lambda x, y: torch.einsum("ij,jk->ik", x, y),
    "a list": lambda x, y: torch.cat([x, y]),
    "a stack": lambda x, y: torch.stack([x, x, y]),
    "many at once": lambda x, y: torch._foreach_add([x, x], [x, y]),
    "many in place": lambda x, y: torch._foreach_lerp_([x.clone()], [y], 0.5),
    "out of a sum": lambda x, y: torch.add(x, x, out=y),
    "out of a product": lambda x, y: torch.mm(x, x, out=y),
    "out of a reduction": lambda x, y: torch.sum(x, 0, out=y),
    "out of a list": lambda x, y: torch.cat([x, x], out=y),
    "out of places": lambda x, y: torch.gather(x, 0, (x * 0).long(), out=y),
    "an index put": lambda x, y: assigned(x, places(x), y[0].expand(4, 4)),
    "an index of rows": lambda x, y: x.index_select(0, places(y)),
    "an index per element": lambda x, y: x.gather(0, (y * 0).long()),
    "scattered places": lambda x, y: x.scatter(0, (y * 0).long(), x),
    "scattered values": lambda x, y: x.scatter(0, (x * 0).long(), y),
    "added rows": lambda x, y: x.index_add(0, places(x), y),
    "a mask": lambda x, y: x.masked_fill(y > 0, 1.0),
    "a mask that selects": lambda x, y: x.masked_select(y > 0),
    "linear": functional.linear,
    "a bias": lambda x, y: functional.linear(x, x, y[0]),
    "a convolution": lambda x, y: functional.conv1d(x[None], y[:, :, None]),
    "its bias": lambda x, y: functional.conv1d(x[None], x[:, :, None], y[0]),
    "an embedding": lambda x, y: functional.embedding(places(y), x),
    "a norm": lambda x, y: functional.layer_norm(x, (4,), y[0]),
    "statistics": lambda x, y: functional.batch_norm(x, y[0], y[0] + 1),
    "classes": lambda x, y: functional.cross_entropy(x, places(y)),
    "weights of classes": lambda x, y: functional.cross_entropy(x, places(x), y[0]),
    "a target": functional.mse_loss,
    "attention": lambda x, y: functional.scaled_dot_product_attention(x[None], y[None], x[None]),
    "a mask of attention": lambda x, y: functional.scaled_dot_product_attention(
        x[None], x[None], x[None], y
    ),
    "a recurrent layer": lambda x, y: torch.nn.LSTM(4, 4).to(x.device)(y[:, None]),
    "a distance": torch.cdist,
}


def wrong(pairs: dict[str, tuple[Tensor, Tensor]]) -> Iterator[str]:
    """A line per call that is no error, or one that does not say why."""
    for name, call in CALLS.items():
        for which, (x, y) in pairs.items():
            try:
                call(x, y)
            except RuntimeError as error:
                if "same device" not in str(error) and "two devices" not in str(error):
                    yield f"{name}, {which}: {error}"
            else:
                yield f"{name}, {which}: no error"


if __name__ == "__main__":
    one, other, host = (torch.rand(4, 4).to(place) for place in ("npu:0", "npu:1", "cpu"))
    found = [*wrong({"two NPUs": (one, other), "NPU, CPU": (one, host), "CPU, NPU": (host, one)})]
    sys.stdout.write("".join(f"{line}\n" for line in found) + f"{len(CALLS)} calls\n")
