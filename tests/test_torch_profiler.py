# SPDX-License-Identifier: Apache-2.0
"""torch.profiler sees the NPU's ops, each beside the CPU op that started it."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from driver.torch_device.hardware import OpenDevice
from driver.torch_device.observers import OBSERVERS


def program() -> None:
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh()).to("npu")
    model(torch.ones(4, 8).to("npu")).sum().backward()


def trace(taken: profile, folder: Path) -> list[dict[str, Any]]:
    """The events of the exported file."""
    taken.export_chrome_trace(str(folder / "trace.json"))
    events: list[dict[str, Any]] = json.loads((folder / "trace.json").read_text())["traceEvents"]
    return events


def named(events: list[dict[str, Any]], category: str) -> dict[str, dict[str, Any]]:
    return {event["name"]: event for event in events if event.get("cat") == category}


def test_an_exported_trace_has_a_track_of_the_npu(tmp_path: Path) -> None:
    with profile() as taken:
        program()
    assert not OBSERVERS
    events = trace(taken, tmp_path)
    ops = named(events, "kernel")
    assert {"aten.addmm.default", "aten.tanh.default", "aten.tanh_backward.default"} <= set(ops)
    tanh = ops["aten.tanh.default"]
    number = tanh["args"]["External id"]
    (cpu,) = [
        event
        for event in events
        if event.get("cat") == "cpu_op" and event["args"]["External id"] == number
    ]
    assert cpu["name"] == "aten::tanh"
    assert tanh["dur"] > 0
    assert cpu["ts"] <= tanh["ts"] <= tanh["ts"] + tanh["dur"] <= cpu["ts"] + cpu["dur"]
    tracks = {
        (event["name"], event["pid"]): event["args"] for event in events if event.get("ph") == "M"
    }
    assert tracks["process_name", tanh["pid"]] == {"name": "npu"}
    assert tanh["pid"] != cpu["pid"]
    arrows = [
        (event["ph"], event["pid"], event["tid"])
        for event in events
        if event.get("cat") == "ac2g" and event["id"] == number
    ]
    assert sorted(arrows) == [("f", tanh["pid"], 0), ("s", cpu["pid"], cpu["tid"])]


def test_the_table_has_a_column_of_the_npu() -> None:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as taken:
        program()
    averages = taken.key_averages()
    times = {row.key: row.self_device_time_total for row in averages}
    assert times["aten::tanh"] > 0
    assert times["aten::mm"] > 0
    assert times["aten::t"] == 0
    assert "Self NPU" in averages.table()


def test_a_cycle_counts_as_a_nanosecond(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = torch.ones(3, device="npu")
    clock = count(1000, 250)
    monkeypatch.setattr(OpenDevice, "cycles", lambda _self: next(clock))
    monkeypatch.setattr(OpenDevice, "has_clock", True)
    with profile() as taken:
        torch.tanh(x)
    (tanh,) = named(trace(taken, tmp_path), "kernel").values()
    assert tanh["args"]["cycles"] == "250"
    assert tanh["dur"] == 0.25


def test_a_profile_of_the_cpu_alone_leaves_the_npu_alone(tmp_path: Path) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as taken:
        assert not OBSERVERS
        program()
    assert not named(trace(taken, tmp_path), "kernel")
