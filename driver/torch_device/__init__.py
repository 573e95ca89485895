# SPDX-License-Identifier: Apache-2.0
"""PyTorch's device "npu": unmodified torch programs on the NPU, by changing one word.

torch finds it by the entry point `torch.backends`, in every process that imports torch; importing
this package does the same. No device is opened before the first tensor is made on it.
"""

from __future__ import annotations

import warnings


def autoload() -> None:
    """Make the device known to torch. Any number of calls is fine.

    Without the C++ core, or with one of another torch, there is a warning and no device: a program
    that does not ask for it goes on.
    """
    from driver.torch_device.registration import CoreMissing, register  # noqa: PLC0415

    try:
        register()
    except CoreMissing as error:
        warnings.warn(f"no device npu: {error}", RuntimeWarning, stacklevel=2)


# After `autoload` is there: torch asks for it while it is imported, and it is imported here where
# this package comes first.
import torch  # noqa: E402, F401

autoload()
