# SPDX-License-Identifier: Apache-2.0
"""torch.npu.debug: a line on stderr for each op, copy and packet."""

from __future__ import annotations

import pytest
import torch
from test_torch_device import run_python

from driver.errors import InputError


def printed(level: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with torch.npu.debug.debug_mode(level):
        x = torch.ones(32, 48).to("npu")
        _ = (x @ x.t()).cpu()
    lines = capsys.readouterr().err.splitlines()
    _ = x + 1
    assert capsys.readouterr().err == ""
    return lines


def test_each_level_says_more(capsys: pytest.CaptureFixture[str]) -> None:
    product = "[NPU] mm [32x48] @ [48x32]"
    copies = ["[COPY] H→D 6 KB", "[VIEW] [32x48] → [48x32]", product, "[COPY] D→H 4 KB"]
    assert printed(0, capsys) == []
    assert printed(1, capsys) == [product]
    assert printed(2, capsys) == copies
    packets = printed(3, capsys)
    assert [text for text in packets if not text.startswith("[PACKET]")] == copies
    assert "[PACKET] MATMUL for aten.mm.default" in packets


def test_an_op_on_the_cpu_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(3, dtype=torch.float64).to("npu")
    torch.npu.allow_cpu_fallback(True)
    try:
        with torch.npu.debug.debug_mode(1), pytest.warns(RuntimeWarning, match="sin"):
            x.sin()
    finally:
        torch.npu.allow_cpu_fallback(False)
    assert capsys.readouterr().err.startswith("[CPU] sin [3]")


def test_only_four_levels_exist() -> None:
    with pytest.raises(InputError, match="0 to 3"):
        torch.npu.debug.enable(4)


def test_the_environment_sets_the_level() -> None:
    source = "import torch\ntorch.ones(2, device='npu').add_(1)"
    done = run_python(source, NPU_DEBUG="1")
    assert done.stderr.splitlines() == ["[NPU] fill_ [2], 1.0", "[NPU] add [2], 1"]
    assert "0 to 3" in run_python(source, NPU_DEBUG="all").stderr


def test_a_terminal_gets_colours_unless_it_wants_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    torch.npu.debug.line("NPU", "add [2]")
    monkeypatch.setenv("NO_COLOR", "1")
    torch.npu.debug.line("NPU", "add [2]")
    assert capsys.readouterr().err == "\033[32m[NPU]\033[0m add [2]\n[NPU] add [2]\n"
