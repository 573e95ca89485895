# SPDX-License-Identifier: Apache-2.0
"""torch.npu.custom_op: an op of a user's file on the device, judged, differentiated, tested."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from judged_call import CONFIG, open_pair

from driver.custom_ops import CUSTOM_OPS, load_custom_ops
from driver.errors import InputError
from driver.isa import DESCRIPTOR_BYTES, FLAGS, ErrorCode, Opcode, Packet
from driver.isa.assembler import Assembler, Value, vector_program
from driver.isa.image import PROGRAM_RAM, PROGRAM_RAM_LINES
from driver.reproduce import reproduce_line
from driver.results import RunSpec
from golden.backend import CmodelBackend
from golden.bounds import own
from golden.judge import judge, supports
from tb.ops.case import Case
from tb.ops.pair import DevicePair
from tb.ops.samples import T, with_custom_ops
from tb.ops.samples.variants import variants
from tb.ops.wrong_packet import first_wrong_packet

pytestmark = pytest.mark.usefixtures("ops_forgotten")
ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "custom_op.py"
OWN_PROGRAM = ROOT / "examples" / "own_program.py"
PAGE = (ROOT / "docs" / "custom-ops.md").read_text(encoding="utf-8")
SAMPLES = [(T(),)]


def example() -> Any:
    load_custom_ops(EXAMPLE)
    return torch.ops.mylib


def arguments(device: str, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    x = torch.linspace(-5, 5, 60).reshape(4, 15).to(dtype)
    return [x.to(device), torch.tensor(0.03).to(device), torch.tensor(4).int().to(device)]


# ---------------------------------------------------------------------- what the op does
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["quantize", "fake_quantize"])
def test_the_op_is_the_references_on_the_device(name: str, dtype: torch.dtype) -> None:
    op = getattr(example(), name)
    before = torch.npu.cpu_fallbacks()
    found = op(*arguments("npu", dtype))
    assert found.device.type == "npu"
    assert torch.equal(found.cpu(), op(*arguments("cpu", dtype)))
    assert len(found.cpu().unique()) > 20
    assert torch.npu.cpu_fallbacks() == before


def test_the_gradient_is_the_formulas_on_the_device() -> None:
    op, gradients = example().fake_quantize, []
    for device in ("cpu", "npu"):
        x, *rest = arguments(device)
        op(x.requires_grad_(), *rest).square().sum().backward()
        assert x.grad is not None
        gradients.append(x.grad.cpu())
    assert torch.equal(*gradients)
    assert 0 < gradients[0].count_nonzero() < 60


def test_autocast_converts_what_the_op_declares() -> None:
    x, *rest = arguments("npu", torch.float16)
    with torch.autocast("npu", torch.float16):
        assert example().fake_quantize(x, *rest).dtype is torch.float32


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("name", ["quantize", "fake_quantize"])
def test_torchs_own_check_of_the_declaration_passes(name: str, device: str) -> None:
    tests = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    tests += ["test_autograd_registration"] if device == "cpu" else []
    x, *rest = arguments(device)
    given = (x.requires_grad_(name == "fake_quantize"), *rest)
    found = torch.library.opcheck(getattr(example(), name).default, given, test_utils=tests)
    assert found == dict.fromkeys(tests, "SUCCESS")


def test_check_mode_judges_the_op_and_its_gradient() -> None:
    op = example().fake_quantize
    x, *rest = arguments("npu")
    with torch.npu.check() as report:
        op(x.requires_grad_(), *rest).sum().backward()
    assert not report.not_judged
    assert report.elements > 60


def test_an_op_brings_its_own_vector_program() -> None:
    load_custom_ops(OWN_PROGRAM)
    x = torch.linspace(-3, 3, 700)
    x[:3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    for dtype in (torch.float32, torch.bfloat16):
        given = x.to(dtype)
        with torch.npu.check() as report:
            found = torch.ops.mylib.squared_relu(given.to("npu").reshape(7, 100).t(), 0.25)
        wanted = torch.ops.mylib.squared_relu(given.reshape(7, 100).t(), 0.25)
        torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=0, equal_nan=True)
        assert not report.not_judged and report.elements >= 690


def test_its_samples_are_right_on_the_cmodel() -> None:
    example()
    load_custom_ops(OWN_PROGRAM)
    pair, compared = open_pair(), 0
    for op in ("quantize", "fake_quantize", "squared_relu"):
        name = f"mylib.{op}.default"
        assert supports(name)
        for variant in variants(with_custom_ops()[name]):
            args, kwargs = variant.arguments(7)
            case = Case(0, name, args, "sample", kwargs=kwargs)
            verdict = judge(case.call, pair.run(case, 7).cmodel.bits, None, CONFIG.array_size)
            assert verdict.failure is None, f"{variant}: {verdict.failure}"
            compared += verdict.elements_compared
    assert compared > 1000


# ---------------------------------------------------------------------- wrong ones
class SecondResultSpoiled(CmodelBackend):
    """Stands in for an RTL: a bit of the second result of a loaded program with a list is wrong."""

    cycle = 0

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        command = Packet.unpack(packet)
        if command.opcode == Opcode.VECTOR and command.flags & FLAGS["OPERAND_LIST"].mask:
            assert PROGRAM_RAM <= command.params[0] < PROGRAM_RAM + PROGRAM_RAM_LINES
            at = command.src1 - CONFIG.memory.base + 2 * DESCRIPTOR_BYTES
            base = int.from_bytes(self.memory[at : at + 8].tobytes(), "little")
            self.memory[base - CONFIG.memory.base + 4] ^= 2
        return code

    def last_writer(self, address: int) -> int | None:
        return 7


def test_a_wrong_result_of_an_own_program_is_named_and_the_device_blamed() -> None:
    @vector_program(sources=1)
    def first(p: Assembler) -> Value:
        return p.mul(p.src1, p.src1)

    @vector_program(sources=1)
    def both(p: Assembler) -> tuple[Value, Value]:
        return p.add(p.src1, p.f(1.0)), p.sub(p.src1, p.f(1.0))

    def reference(x: torch.Tensor) -> torch.Tensor:
        return (x * x + 1) * (x * x - 1)

    def rule(b: Any, out: Any, x: Any) -> None:
        square, above, below = (b.temp(out.dtype, out.sizes) for _ in range(3))
        b.vector(first, (x,), square)
        b.vector(both, (square,), [above, below])
        b.vector("mul", (above, below), out)

    torch.npu.custom_op("mylib::quartic", reference=reference, bound=own.ulps(9), samples=SAMPLES)(
        rule
    )
    case = Case(0, "mylib.quartic.default", (torch.linspace(1, 2, 40),), "net")
    plain = CONFIG.model_copy(update={"fusion": False})  # one pass would have no second result
    pair = DevicePair(plain, CmodelBackend(plain), SecondResultSpoiled(plain))
    for _ in range(2):  # the memories are alike again
        found = first_wrong_packet(pair, case, 1)
        assert found is not None and found.element is not None
        assert (found.number, found.count, found.blame) == (2, 3, "rtl")
        assert (found.element.result, found.element.index) == (1, (1,))
        assert "packet 2 of 3, VECTOR both, element [1]" in str(found)
        assert found.right == found.element.cmodel == found.element.rtl ^ 2
    sound = DevicePair(plain, CmodelBackend(plain), CmodelBackend(plain))
    assert first_wrong_packet(sound, case, 1) is None


def halved(name: str, program: str, bound: Any) -> Any:
    def reference(x: torch.Tensor) -> torch.Tensor:
        return x / 3

    def rule(b: Any, out: Any, x: Any) -> None:
        b.vector(program, (x,), out, 3.0)

    return torch.npu.custom_op(name, reference=reference, bound=bound, samples=SAMPLES)(rule)


def test_an_op_that_is_declared_again_is_the_new_one() -> None:
    x = torch.linspace(-1, 1, 33, device="npu")
    right = torch.linspace(-1, 1, 33) / 3
    halved("mylib::third", "imm_div", own.ulps(1))
    assert not torch.equal(torch.ops.mylib.third(x).cpu(), right)
    halved("mylib::third", "div_imm", own.ulps(1))
    assert torch.equal(torch.ops.mylib.third(x).cpu(), right)
    assert list(CUSTOM_OPS) == ["mylib.third.default"]


@pytest.mark.parametrize("bound", [own.ulps(1), own.equal, own.roundings(2, lambda c: c["x"] / 3)])
def test_a_wrong_rule_is_found_with_the_line_to_run_it_again(bound: Any, tmp_path: Path) -> None:
    op = halved("mylib::wrong_third", "imm_div", bound)
    x = torch.linspace(1, 2, 33, device="npu")
    with pytest.raises(torch.npu.WrongResult) as caught, torch.npu.check(tmp_path):
        op(x)
    text = str(caught.value)
    assert "mylib.wrong_third.default is wrong (lowering" in text
    assert f" CUSTOM_OPS={Path(__file__)}" in text
    assert (tmp_path / "mylib.wrong_third.default").is_dir()


def test_without_a_gradient_backward_is_refused() -> None:
    op = halved("mylib::no_gradient", "div_imm", own.ulps(1))
    made = op(torch.ones(3, device="npu", requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula"):
        made.sum().backward()


def one(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@pytest.mark.parametrize(
    ("name", "samples", "rule", "expected"),
    [
        ("quantize", SAMPLES, lambda b, out, x: None, "namespace::name"),
        ("aten::mine", SAMPLES, lambda b, out, x: None, "a namespace other than aten, npu"),
        (
            "mylib::mine",
            [],
            lambda b, out, x: None,
            "mylib::mine: samples: got none, expected one list of arguments",
        ),
        ("mylib::mine", SAMPLES, lambda b, out, y: None, "builder, result, x: the reference's"),
    ],
)
def test_a_wrong_declaration_says_what_was_expected(
    name: str, samples: Any, rule: Any, expected: str
) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        torch.npu.custom_op(name, reference=one, bound=own.equal, samples=samples)(rule)


@pytest.mark.parametrize(
    ("rule", "error", "expected"),
    [
        (
            lambda b, out, x: b.copy(x.reshaped((3,), (2,)), out),
            NotImplementedError,
            "view: got bytes 0 to 20, expected inside its buffer of 12 bytes",
        ),
        (
            lambda b, out, x: b.fill(out.reshaped((3, 2), (1, 3)), 1.0),
            NotImplementedError,
            "view: got bytes 0 to 24, expected inside its buffer of 12 bytes",
        ),
        (
            lambda b, out, x: b.vector("add", (x,), out),
            InputError,
            "sources of add: got 1, expected 2",
        ),
        (
            lambda b, out, x: b.vector("relu", (x,), out, 3.0),
            InputError,
            "numbers of relu: got 1, expected 0",
        ),
        (
            lambda b, out, x: b.copy(x.sliced(0, 0, 2), out),
            NotImplementedError,
            "sizes: got (2,) to (3,), expected a copy between equal sizes",
        ),
    ],
)
def test_a_rule_that_cannot_be_right_is_refused_on_the_device(
    rule: Any, error: type[Exception], expected: str
) -> None:
    """Beside its tensors is the memory of others."""
    torch.npu.custom_op("mylib::amiss", reference=one, bound=own.equal, samples=SAMPLES)(rule)
    with pytest.raises(error, match=re.escape(expected)):
        torch.ops.mylib.amiss(torch.ones(3, device="npu"))


# ---------------------------------------------------------------------- files and the page
WRONG = """
import torch
from golden.backend import CmodelBackend
from golden.bounds import own
from tb.ops.samples import T

def third(x: torch.Tensor) -> torch.Tensor:
    return x / 3

@torch.npu.custom_op("mylib::third", reference=third, bound=own.ulps(1), samples=[(T(),)])
def rule(b, out, x):
    b.vector("imm_div", (x,), out, 3.0)
"""


def npu_cosim(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "regress.cli", *map(str, arguments)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, cwd=ROOT
    )


@pytest.mark.broad
def test_the_bench_runs_and_replays_ops_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(WRONG)
    own_file = ("--custom-ops", path, "--backend", "cmodel", "--config", "small")
    right = npu_cosim(
        *("run", "ops", "--custom-ops", EXAMPLE, "--filter", "mylib.fake"),
        *("--backend", "cmodel", "--config", "small", "--out", tmp_path / "right"),
    )
    assert right.returncode == 0, right.stdout + right.stderr
    assert "2 passed, 0 failed" in right.stdout
    wrong = npu_cosim("run", "ops", *own_file, "--filter", "mylib", "--out", tmp_path / "wrong")
    assert wrong.returncode == 1, wrong.stdout + wrong.stderr
    assert f"--custom-ops {path}" in wrong.stdout
    load_custom_ops(path)
    with pytest.raises(torch.npu.WrongResult), torch.npu.check(tmp_path):
        torch.ops.mylib.third(torch.ones(33, device="npu"))
    capsule = tmp_path / "mylib.third.default"
    again = npu_cosim("replay", capsule, *own_file, "--out", tmp_path / "again")
    assert again.returncode == 1, again.stdout + again.stderr
    none = npu_cosim("run", "ops", *own_file, "--filter", "nothing", "--out", tmp_path / "none")
    assert none.returncode == 2
    assert "filter: got nothing, expected a part of the name of an op" in none.stdout + none.stderr


def test_the_line_that_runs_it_again_has_the_file_and_the_filter() -> None:
    spec = RunSpec.model_construct(
        **{"test": "ops", "config": "small", "seed": 1, "backend": "rtl", "capsules": {}},
        **{"config_file": ROOT / "sim_config.yaml", "op_filter": None, "modes": ("isolated",)},
        **{"custom_ops": Path("/a b.py"), "name_filter": "my lib"},
    )
    line = reproduce_line(spec)
    assert line.endswith(" --custom-ops '/a b.py' --filter 'my lib'")
    assert reproduce_line(spec, 7).endswith(" --custom-ops '/a b.py' --op 7")


def test_the_page_shows_the_example() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert textwrap.dedent(block) in EXAMPLE.read_text(encoding="utf-8")
    names = {op.name for op in load_custom_ops(EXAMPLE)}
    assert names == {"mylib.quantize.default", "mylib.fake_quantize.default"}
    assert all(name in PAGE for name in ("own.equal", "own.ulps", "own.roundings"))
    assert {"equal", "ulps", "roundings"} == set(own.__all__)
