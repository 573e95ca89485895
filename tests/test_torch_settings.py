# SPDX-License-Identifier: Apache-2.0
"""Device "npu" without what it needs, and with wrong variables of the environment."""

from __future__ import annotations

import pytest
from test_torch_device import run_python

from driver.errors import InputError
from driver.torch_device.settings import DeviceSettings


def test_without_its_core_there_is_a_warning_and_torch_works() -> None:
    done = run_python(
        "import sys\n"
        "sys.modules['driver.torch_device._core'] = None\n"
        "import torch\n"
        "print(torch.ones(2).sum().item())\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.0\n"
    assert "no device npu" in done.stderr
    assert "make setup" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NPU_DEVICES", "0", "a number, 1 to 16"),
        ("NPU_DEVICES", "many", "a number, 1 to 16"),
        ("NPU_BACKEND", "abacus", "one of null, cmodel, rtl"),
        ("NPU_BACKND", "rtl", "no such variable, or NPU_BACKEND"),
        ("NPU_DEVICE", "2", "no such variable, or NPU_DEVICES"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str, expected: str) -> None:
    with pytest.raises(InputError, match=f"environment: {name}: got {value}, .*{expected}"):
        DeviceSettings.from_environment({name: value})


@pytest.mark.parametrize(
    "name", ["NPU_DEVICES", "NPU_BACKEND", "NPU_DEBUG", "NPU_CHECK", "NPU_FUSION"]
)
def test_a_wrong_setting_is_an_error_of_the_first_tensor_on_the_device(name: str) -> None:
    program = "import torch; print(torch.ones(2).sum().item()); torch.ones(2, device='npu:1')"
    done = run_python(program, **{name: "none"})
    assert done.stdout == "2.0\n"
    assert done.returncode == 1
    assert f"InputError: environment: {name}: got none, expected" in done.stderr
    assert "Warning" not in done.stderr


def test_a_variable_of_other_software_is_none_of_ours() -> None:
    assert DeviceSettings.from_environment({"NPU_VISIBLE_DEVICES": "0", "NPUS": "1"}).count == 1


def test_the_environment_turns_fusion_off() -> None:
    assert DeviceSettings.from_environment({}).fusion
    assert not DeviceSettings.from_environment({"NPU_FUSION": "0"}).fusion
    with pytest.raises(InputError, match="NPU_FUSION"):
        DeviceSettings.from_environment({"NPU_FUSION": "off"})
