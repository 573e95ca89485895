# SPDX-License-Identifier: Apache-2.0
"""The shrinker: a failing op becomes the smallest that still fails, and a test that fails too."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from night_host import RUNNER, row
from wrong_runner import LEAST_K

from driver.capture import Capsule, load_capsule
from driver.capture.single import Call, recall, single_call
from driver.errors import InfrastructureError, InputError
from driver.results import OpRow, RunResult
from regress.failures.shrink import search, shrink_job
from regress.failures.shrink.axes import axes
from regress.failures.shrink.candidates import OpCandidate, plainer, shorter
from regress.failures.shrink.search import all_rows, rows_of
from regress.failures.shrink.standalone import write_test
from regress.results.night import StoredJob, load_job
from regress.results.store import Store


@pytest.fixture(scope="module")
def job(wrong_store: tuple[Path, str]) -> Iterator[StoredJob]:
    with Store.open(wrong_store[0]) as store:
        yield load_job(store, wrong_store[1])


@pytest.mark.parametrize(
    ("op", "shapes", "found"),
    [
        ("aten.mm.default", [(2, 3), (3, 4)], {"m": 2, "k": 3, "n": 4}),
        ("aten.addmm.default", [(4,), (2, 3), (3, 4)], {"m": 2, "k": 3, "n": 4}),
        ("aten.addmm.default", [(2, 1), (2, 3), (3, 4)], {"m": 2, "k": 3, "n": 4}),
        ("aten.bmm.default", [(5, 2, 3), (5, 3, 4)], {"b": 5, "m": 2, "k": 3, "n": 4}),
        ("aten.linear.default", [(7, 2, 3), (4, 3), (4,)], {"z": 7, "y": 2, "k": 3, "n": 4}),
        ("aten.add.Tensor", [(2, 3, 4), (4,)], {"a": 2, "b": 3, "c": 4}),
        ("aten.mul.Tensor", [(2, 1), (1, 4)], {"a": 2, "b": 4}),
        ("aten.relu.default", [()], {}),
    ],
)
def test_axes_of_operands_are_tied(
    op: str, shapes: list[tuple[int, ...]], found: dict[str, int]
) -> None:
    named = {f"inputs[{i}]": shape for i, shape in enumerate(shapes)}
    made = axes(op, named)
    assert {axis.name: axis.size for axis in made} == found
    for axis in made:
        assert all(named[name][dimension] == axis.size for name, dimension in axis.places)


def operands(*arrays: np.ndarray, op: str = "aten.mm.default") -> OpCandidate:
    named = {f"inputs[{i}]": array for i, array in enumerate(arrays)}
    return OpCandidate(op, named, dict.fromkeys(named, "float32"))


def test_every_shorter_candidate_is_a_legal_product() -> None:
    a, b = np.ones((6, 5), np.float32), np.ones((5, 7), np.float32)
    found = list(shorter(operands(a, b), (4, 3)))
    assert len(found) > 20
    for one in found:
        left, right = one.arrays.values()
        assert left.shape[1] == right.shape[0]
        assert one.size < operands(a, b).size


def test_a_transposed_operand_stays_transposed() -> None:
    turned = np.arange(12, dtype=np.float32).reshape(3, 4).T
    for one in shorter(operands(turned, np.ones((3, 2), np.float32)), (0, 0)):
        array = one.arrays["inputs[0]"]
        assert 1 in array.shape or array.strides[0] < array.strides[1]


def test_plainer_numbers_are_smaller_or_fewer() -> None:
    start = operands(np.full((2, 3), 1.7, np.float32), np.full((3, 2), 0.3, np.float32))
    found = list(plainer(start))
    assert len(found) > 12
    assert min(one.size for one in found) < start.size
    assert any((one.arrays["inputs[0]"] == 1).all() for one in found)


def test_a_size_named_in_a_list_follows_the_cut() -> None:
    x, weight, bias = torch.ones(4, 8), torch.ones(8), torch.ones(8)
    op = "aten.native_layer_norm.default"
    capsule = single_call("norm", [Call(op, (x, [8], weight, bias, 1e-5))])
    names = [name for name, _ in capsule.ops[0].refs() if name.startswith("inputs")]
    sizes = [(4, 2), (2,), (2,)]
    arrays = {n: np.ones(s, np.float32) for n, s in zip(names, sizes, strict=True)}
    call = recall(capsule, 0, arrays)
    assert call.args[1] == [2]
    assert single_call("smaller", [call]).ops[0].inputs[1] == (2,)


def test_a_call_that_writes_to_its_arguments_leaves_them_as_they_are() -> None:
    x = torch.ones(4)
    call = Call("aten.add_.Tensor", (x[1:], torch.ones(3)))
    first, again = (single_call("probe", [call]).hash for _ in range(2))
    assert torch.equal(x, torch.ones(4))
    assert first == again


def test_bfloat16_survives_as_bits() -> None:
    a, b = torch.full((2, 2), 1.5, dtype=torch.bfloat16), torch.ones(2, 2, dtype=torch.bfloat16)
    capsule = single_call("bf", [Call("aten.mm.default", (a, b))])
    bits = {"inputs[0]": np.array([[0x3FC0, 0x4000]], np.uint16)}
    call = recall(capsule, 0, bits)
    assert call.args[0].tolist() == [[1.5, 2.0]]
    assert call.args[0].dtype is torch.bfloat16


@pytest.mark.broad
def test_a_failing_op_shrinks_to_what_the_bug_needs(job: StoredJob, tmp_path: Path) -> None:
    products = [
        row
        for row in job.failing
        if row.op == "aten.mm.default" and min(min(shape) for shape in row.shapes) > LEAST_K
    ]
    small = min(products, key=lambda row: sum(math.prod(shape) for shape in row.shapes))
    found = shrink_job(job, small.index, out=tmp_path, runner=RUNNER)
    # The bug wants K ≥ 3, something in A[0, 0], and a second element to spoil.
    assert f"×{LEAST_K} {LEAST_K}×" in found.after
    rows, columns = found.after.split()[1].split("×")[0], found.after.split()[2].split("×")[1]
    assert {rows, columns} == {"1", "2"}
    assert "(1 of 9 elements not 0)" in found.after
    assert found.trials > found.rounds > 3
    assert _tested(found.test, "-m", "regress.cli") == "passed", "the cmodel has no such bug"
    assert _tested(found.test, "-c", ON_WRONG_DEVICE) == "failed"


ON_WRONG_DEVICE = f"""
import regress.run
from regress import cli
regress.run.run.__defaults__ = ({RUNNER!r},)
cli.main()
"""


def _tested(file: Path, *program: str) -> str:
    """The outcome of the written test: on the cmodel alone, or beside the wrong device."""
    text = file.read_text()
    assert text.count("options = [") == text.count('"-m", "regress.cli"') == 1
    if program[0] == "-m":
        text = text.replace("options = [", "options = ['--backend', 'cmodel', ")
    copy = file.with_name(f"test_{program[0].strip('-')}.py")
    copy.write_text(text.replace('"-m", "regress.cli"', f"{program[0]!r}, {program[1]!r}"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"1 (passed|failed)", done.stdout)
    assert found is not None, done.stdout
    return found[1]


def test_the_test_has_the_configuration_that_it_needs(job: StoredJob, tmp_path: Path) -> None:
    """The file of a night with another one may be gone, or on another machine."""
    spec = job.spec
    assert spec is not None
    config = tmp_path / "other.yaml"
    config.write_text(spec.config_file.read_text().replace(f"  {spec.config}:", "  own_name:"))
    capsule = single_call("add", [Call("aten.add.Tensor", (torch.ones(2), torch.ones(2)))])
    other = spec.model_copy(update={"config": "own_name", "config_file": config})
    test = write_test(tmp_path, capsule, other, row(), job.attempt.id)
    config.unlink()
    assert _tested(test, "-m", "regress.cli") == "passed"
    config.write_text("configs: {}")
    text = test.read_text()
    test.write_text(text.replace("write_text(CONFIGURATION)", "write_text('configs: {}')"))
    assert _tested(test, "-m", "regress.cli") == "failed"


def test_an_op_that_passes_alone_is_said_to(job: StoredJob, tmp_path: Path) -> None:
    right = (sys.executable, "-c", "import sys, tb.run; sys.exit(tb.run.main(sys.argv[1:]))")
    spec_on_cmodel = job.spec
    assert spec_on_cmodel is not None
    job.__dict__["spec"] = spec_on_cmodel.model_copy(update={"backend": "cmodel"})
    try:
        with pytest.raises(InputError, match="got passes alone"):
            shrink_job(job, None, out=tmp_path, runner=right)
    finally:
        job.__dict__["spec"] = spec_on_cmodel


def test_operands_that_do_not_align_at_the_last_dimension_are_cut_by_size() -> None:
    shapes = {"input": (2, 6, 3, 5), "weight": (6,), "bias": (6,)}
    found = {axis.size: axis.places for axis in axes("aten.native_batch_norm.default", shapes)}
    assert found == {
        2: (("input", 0),),
        6: (("input", 1), ("weight", 0), ("bias", 0)),
        3: (("input", 2),),
        5: (("input", 3),),
    }


def test_candidates_behind_one_that_stops_the_device_are_run_anew() -> None:
    runs: list[list[int]] = []

    def stops_at_2_and_3(sizes: Sequence[int]) -> list[OpRow]:
        runs.append(list(sizes))
        ends = next((at for at, size in enumerate(sizes, 1) if size in (2, 3)), len(sizes))
        return [row(size) for size in sizes[:ends]]

    found = all_rows([1, 2, 3, 4, 5], stops_at_2_and_3)
    assert [one.index for one in found] == [1, 2, 3, 4, 5]
    assert runs == [[1, 2, 3, 4, 5], [3, 4, 5], [4, 5]]
    with pytest.raises(InfrastructureError, match="before its first op"):
        all_rows([1, 2], lambda sizes: [row(1)] if len(sizes) > 1 else [])


def test_a_candidate_that_ends_its_run_is_left_out_and_the_others_are_tried() -> None:
    runs: list[list[int]] = []

    def run(sizes: Sequence[int]) -> list[OpRow]:
        runs.append(list(sizes))
        if 3 in sizes:
            raise InfrastructureError("division by zero")
        return [row(size) for size in sizes]

    found = rows_of([1, 2, 3, 4], run)
    assert [None if one is None else one.index for one in found] == [1, 2, None, 4]
    assert runs == [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]]


def test_what_fails_only_among_others_gives_way_to_the_last_that_fails_alone(
    tmp_path: Path,
) -> None:
    def terms(capsule: Capsule) -> int:
        (ref, _) = (ref for name, ref in capsule.ops[0].refs() if name.startswith("inputs"))
        return int(capsule.array(ref).shape[1])

    class Bench:
        recorded = single_call(
            "mm", [Call("aten.mm.default", (torch.ones(2, 3), torch.ones(3, 2)))]
        )

        def _run(self, capsule: Capsule) -> RunResult:
            status = "fail" if terms(capsule) >= least else "pass"
            ops = (wrong.model_copy(update={"status": status}),)
            return RunResult.model_construct(status=status, ops=ops)

    wrong, notes = row(0), list[str]()
    steps = [
        (operands(np.ones((2, k), np.float32), np.ones((k, 2), np.float32)), wrong)
        for k in (3, 2, 1)
    ]
    least = 2
    bench: Any = Bench()
    found = search._last_alone(bench, steps, tmp_path / "capsule", notes.append)
    assert found[0] is steps[1][0]
    assert terms(load_capsule(tmp_path / "capsule")) == 2
    assert len(notes) == 1 and "2×1" in notes[0] and "passes alone" in notes[0]
    least = 9
    with pytest.raises(InfrastructureError, match="failed once, and passes now"):
        search._last_alone(bench, steps, tmp_path / "capsule", notes.append)
