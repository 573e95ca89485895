# SPDX-License-Identifier: Apache-2.0
"""Which package may import which: the layers of docs/architecture.md, on the syntax tree."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BELOW_RUNTIME = frozenset(
    f"driver.{name}" for name in ("isa", "errors", "config", "backend", "runtime")
)
LAYERS: dict[str, frozenset[str]] = {
    "driver.isa": frozenset({"driver.isa"}),
    "driver": frozenset({"driver"}),
    "driver.runtime": BELOW_RUNTIME,
    "driver.lower": BELOW_RUNTIME - {"driver.backend"}
    | {"driver.lower", "driver.random_stream", "driver.validation"},
    "driver.compile": BELOW_RUNTIME - {"driver.backend"} | {"driver.compile", "driver.lower"},
    "driver.torch_device": frozenset({"driver"}),
    "driver.torch_device.judging": frozenset({"driver", "golden"}),
    "golden": frozenset({"golden", "driver"}),
    "tb": frozenset({"tb", "golden", "driver", "workloads"}),
    "regress": frozenset({"regress", "golden", "driver", "workloads"}),
    "workloads": frozenset({"workloads", "driver"}),
}
"""Package → the packages of ours that it may import. The longest matching name counts."""

FORBIDDEN: dict[str, frozenset[str]] = {
    "driver": frozenset({"driver.torch_device"}),
    "golden": frozenset({"driver.lower", "driver.torch_device"}),
}
"""Exceptions to LAYERS: a lowering bug must not cancel out in the golden answer, and the torch
device stands on the rest of the driver."""

REGRESS_ORDER = (
    "regress.check",
    "regress.run_report",
    "regress.results",
    "regress.nightly",
    "regress.analysis",
    "regress.failures",
    "regress.pages",
)
"""The folders of regress: each may import those before it, never one after it."""

REGRESS_COMMANDS = (
    "regress.cli",
    "regress.commands",
    "regress.nightly_cli",
    "regress.night_commands",
    "regress.generate",  # the schema of sim_config.yaml
    "regress.synthesis",
    "regress.power",
)
"""Modules of regress that may import its folders; all other modules are used by the folders."""

ONLY_IMPORTERS = {
    "regress.check": ("regress.commands",),
    "regress.pages": ("regress.night_commands", "regress.synthesis", "regress.power"),
}
"""A folder → the modules outside it that may import it."""

STDLIB_ONLY = ("driver.isa", "regress.bootstrap", "regress.clean")

CONFINED: dict[str, tuple[str, ...]] = {
    "cocotb": ("tb",),
    "cocotbext": ("tb",),
    "pyuvm": ("tb",),
    "torch": (
        "driver.capture",
        "driver.runtime.torch_types",
        "driver.torch_device",
        "golden.bounds",  # the true answer is torch's op in float64
        "golden.calls",
        "golden.draws",  # answers in torch's sizes and types
        "golden.judge",
        "golden.products",
        "golden.tensors",
        "tb.bench",  # what speed is compared with
        "tb.op_survey",  # torch's own samples; a process of its own
        "tb.programs",  # programs on device "npu"
        "tb.ops",  # holds the tensors of the ops it tries; outside the simulator
        "workloads",
    ),
    "transformers": ("driver.capture", "workloads"),
}
"""Third-party package → the only places of ours that may import it."""


def is_inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def module_name(path: Path, root: Path) -> str:
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, module: str) -> list[tuple[int, str]]:
    """Line and absolute name of everything imported anywhere in the file, functions included."""
    found: list[tuple[int, str]] = []
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, *filter(None, [node.module])])
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def why_not(module: str, target: str) -> str | None:
    """The rule that `module` breaks by importing `target`, or None."""
    layer = max((name for name in LAYERS if is_inside(module, name)), key=len)
    top = target.split(".", maxsplit=1)[0]
    if top in {name.split(".")[0] for name in LAYERS}:
        if not any(is_inside(target, name) for name in LAYERS[layer]):
            return f"{layer} must not know {target}"
        if any(is_inside(target, name) for name in FORBIDDEN.get(layer, ())):
            return f"{layer} must not know {target}"
        return why_not_in_regress(module, target)
    if any(is_inside(module, name) for name in STDLIB_ONLY) and (
        top not in sys.stdlib_module_names
    ):
        return f"{layer} is standard library only"
    places = CONFINED.get(top)
    if places is not None and not any(is_inside(module, place) for place in places):
        return f"{top} belongs into {', '.join(places)}"
    return None


def why_not_in_regress(module: str, target: str) -> str | None:
    """The rule between the folders of regress that the import breaks, or None."""
    folders = {name: rank for rank, name in enumerate(REGRESS_ORDER)}
    goal = next((name for name in folders if is_inside(target, name)), None)
    own = next((name for name in folders if is_inside(module, name)), None)
    if goal is None or own == goal:
        return None
    if module not in ONLY_IMPORTERS.get(goal, (module,)):
        return f"only {', '.join(ONLY_IMPORTERS[goal])} imports {goal}"
    if own is not None and folders[own] < folders[goal]:
        return f"{own} comes before {goal}"
    shared = own is None and is_inside(module, "regress") and module not in REGRESS_COMMANDS
    if shared and goal != "regress.run_report":
        return f"{module} is used by {goal}, which it must not import"
    return None


def violations(root: Path) -> tuple[list[str], int]:
    """Broken rules as `file:line: rule` below `root`, and how many imports were looked at."""
    broken: list[str] = []
    checked = 0
    tops = sorted({name.split(".")[0] for name in LAYERS})
    for path in sorted(path for top in tops for path in (root / top).rglob("*.py")):
        module = module_name(path, root)
        for line, target in imports(path, module):
            checked += 1
            reason = why_not(module, target)
            if reason is not None:
                broken.append(f"{path.relative_to(root)}:{line}: {reason}")
    return broken, checked


def test_the_project_keeps_its_layers() -> None:
    broken, checked = violations(ROOT)
    assert checked > 100
    assert broken == []


BROKEN = [
    ("driver/isa/codec.py", "import driver.errors", "driver.isa must not know driver.errors"),
    ("driver/isa/codec.py", "import numpy", "driver.isa is standard library only"),
    ("driver/isa/codec.py", "from .. import config", "driver.isa must not know driver.config"),
    ("driver/isa/__init__.py", "from ..config import x", "driver.isa must not know driver.config"),
    ("driver/files.py", "import golden.backend", "driver must not know golden.backend"),
    ("driver/files.py", "def f():\n    from golden import x", "driver must not know golden.x"),
    ("driver/runtime/device.py", "import torch.nn as nn", "torch belongs into"),
    (
        "driver/runtime/device.py",
        "import driver.lower",
        "driver.runtime must not know driver.lower",
    ),
    ("driver/lower/table.py", "import driver.capture", "driver.lower must not know driver.capture"),
    ("driver/files.py", "import driver.torch_device", "driver must not know driver.torch_device"),
    ("driver/torch_device/npu.py", "import golden", "driver.torch_device must not know golden"),
    ("driver/lower/table.py", "from torch import ops", "torch belongs into"),
    ("driver/backend/rtl.py", "import tb.sim.build", "driver must not know tb.sim"),
    ("driver/backend/rtl.py", "if True:\n    import cocotb", "cocotb belongs into tb"),
    ("golden/packets.py", "from driver.lower import x", "golden must not know driver.lower"),
    ("golden/packets.py", "from driver import lower", "golden must not know driver.lower"),
    ("golden/packets.py", "import tb.env", "golden must not know tb.env"),
    ("golden/comparison.py", "import torch", "torch belongs into"),
    ("regress/cli.py", "from tb.sim import build", "regress must not know tb.sim"),
    ("regress/cli.py", "import pyuvm", "pyuvm belongs into tb"),
    ("regress/cli.py", "from regress.pages import site", "only regress.night_commands, "),
    ("regress/lint.py", "from regress.check import steps", "only regress.commands imports"),
    ("regress/check/steps.py", "import regress.results.store", "regress.check comes before"),
    ("regress/nightly/tier.py", "def f():\n    import regress.analysis.triage", "comes before"),
    ("regress/run.py", "from regress.results import store", "which it must not import"),
    ("regress/night_commands.py", "import tb.run", "regress must not know tb.run"),
    ("tb/env/env.py", "from regress import cli", "tb must not know regress.cli"),
    ("tb/env/env.py", "import torch", "torch belongs into"),
    ("workloads/lenet.py", "import golden", "workloads must not know golden"),
]


@pytest.mark.parametrize(("file", "source", "reason"), BROKEN)
def test_the_checker_finds_a_broken_rule(
    tmp_path: Path, file: str, source: str, reason: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source + "\n", encoding="utf-8")
    broken, _ = violations(tmp_path)
    assert len(broken) == 1
    assert reason in broken[0]
    assert broken[0].startswith(f"{file}:{source.count(chr(10)) + 1}: ")


KEPT = [
    ("driver/isa/codec.py", "import struct\nfrom .types import DType\nfrom driver.isa import csr"),
    ("driver/runtime/device.py", "import numpy\nfrom driver.isa import Packet\nfrom . import ring"),
    ("driver/capture/api.py", "import torch"),
    ("golden/tensors.py", "import torch\nfrom driver.capture import capsule"),
    (
        "tb/env/env.py",
        "import cocotb\nfrom golden import backend\nfrom cocotbext.axi import AxiRam",
    ),
    ("regress/cli.py", "import typer\nfrom driver.config import load_config"),
    ("regress/night_commands.py", "import regress.pages.site\nimport regress.nightly.tier"),
    ("regress/pages/site.py", "from regress.analysis import triage\nimport regress.run"),
]


@pytest.mark.parametrize(("file", "source"), KEPT)
def test_the_checker_lets_allowed_imports_pass(tmp_path: Path, file: str, source: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source + "\n", encoding="utf-8")
    assert violations(tmp_path) == ([], source.count("import "))
