# SPDX-License-Identifier: Apache-2.0
"""PyTorch's device on other backends than the one in its process: a server, a board, a plug-in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_remote import start_server

from driver.backend import backend_names, open_backend, registry
from driver.backend.named import named_backends, torch_device_section
from driver.backend.server import BackendServer, ServerSettings
from driver.config import load_config
from driver.errors import InfrastructureError, InputError

ROOT = Path(__file__).parents[1]
SMALL = load_config(ROOT / "sim_config.yaml", "small")


def run_python(
    source: str, *arguments: str, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", source, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


TRAINING = """
import hashlib, os, signal, sys
import torch
from driver.errors import BackendDied

def model_and_optimizer():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(12, 9), torch.nn.Tanh(), torch.nn.Linear(9, 4))
    model = model.to("npu")
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

def steps(model, optimizer, numbers):
    for number in numbers:
        draws = torch.Generator().manual_seed(number)
        x, classes = torch.randn(6, 12, generator=draws), torch.arange(6) % 4
        loss = torch.nn.functional.cross_entropy(model(x.to("npu")), classes.to("npu"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def digest(model):
    data = b"".join(x.detach().cpu().numpy().tobytes() for x in model.state_dict().values())
    return hashlib.sha256(data).hexdigest()

def trained(name):
    torch.npu.set_backend(name)
    model, optimizer = model_and_optimizer()
    steps(model, optimizer, range(3))
    return digest(model)
"""

SAME_BITS = (
    TRAINING
    + """
def stored(name):  # what lies between the elements of a result stays
    torch.npu.set_backend(name)
    x = torch.arange(12.0, device="npu").view(3, 4)
    x[:, ::2].copy_(torch.full((3, 2), -1.0))
    return x.tolist()

results = [(trained(name), stored(name)) for name in sys.argv[1:]]
assert results[0][1] == [[-1.0, at + 1.0, -1.0, at + 3.0] for at in (0.0, 4.0, 8.0)], results[0]
print(sum(one != results[0] for one in results), torch.npu.get_backend_info()["features"])
"""
)

PLUG_IN = """
import sys, tempfile
from pathlib import Path
sys.path.insert(0, {tests!r})
from uio_standin import StandInBoard

class Board(StandInBoard):
    version = "7.5"
    def __init__(self, config):
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(config, Path(self.folder.name))
"""


def plug_in(site: Path, package: str, source: str, names: str) -> None:
    """A package as pip installs it, with entry points for backends."""
    module = package.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-7.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 7.5\n")
    (info / "entry_points.txt").write_text(f"[npu_cosim.backends]\n{names}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    registry._plug_ins.cache_clear()
    yield tmp_path
    registry._plug_ins.cache_clear()


@pytest.mark.broad
def test_training_has_the_same_bits_on_a_server_and_on_a_board(site: Path) -> None:
    source = PLUG_IN.format(tests=str(Path(__file__).parent))
    plug_in(site, "board-maker", source, "board = board_maker:Board")
    server, name = start_server(SMALL)
    try:
        done = run_python(SAME_BITS, "cmodel", name, "board", NPU_CONFIG="small")
    finally:
        server.kill()
        server.wait(10)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == ["0", "('clock', 'mapped_memory')\n"]


DEATH = (
    TRAINING
    + """
first, second, victim = sys.argv[1:]
expected = trained("cmodel")
torch.npu.set_backend(first)
model, optimizer = model_and_optimizer()
steps(model, optimizer, range(2))
torch.save([model.state_dict(), optimizer.state_dict()], "checkpoint.pt")
from driver.torch_device.pool import POOL
backend = POOL[0]._backend
if first.startswith("remote://"):  # 50 ops are one doorbell and one round trip, and so is one
    x = torch.ones(8).to("npu")
    for count in (1, 50):
        torch.npu.synchronize()
        waits = backend.waits
        made = [x + 1 for _ in range(count)]
        torch.npu.synchronize()
        assert backend.waits - waits == 1
if victim == "simulator":
    victim = backend.simulator.pid
os.kill(int(victim), signal.SIGKILL)
for _ in range(2):
    try:
        steps(model, optimizer, [2])
        torch.npu.synchronize()
    except BackendDied as error:
        print("died:", error)
torch.npu.set_backend(second)
for touch in (lambda: model(torch.ones(1, 12, device="npu")), lambda: model[0].bias.cpu()):
    try:
        touch()
    except RuntimeError as error:
        print("touched:", str(error).splitlines()[0])
model, optimizer = model_and_optimizer()
states = torch.load("checkpoint.pt")
model.load_state_dict(states[0])
optimizer.load_state_dict(states[1])
steps(model, optimizer, [2])
print("same bits:", digest(model) == expected)
"""
)


def check_death(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    died, again, touched, copied, same = done.stdout.splitlines()
    assert died.startswith("died: ")
    assert again.startswith("died: ")
    for line in (touched, copied):
        assert line.startswith("touched: npu:0")
    assert same == "same bits: True"


def test_after_a_servers_death_training_goes_on_from_a_checkpoint_on_a_board(site: Path) -> None:
    source = PLUG_IN.format(tests=str(Path(__file__).parent))
    plug_in(site, "board-maker", source, "board = board_maker:Board")
    server, name = start_server(SMALL)
    try:
        done = run_python(DEATH, name, "board", str(server.pid), cwd=site, NPU_CONFIG="small")
        check_death(done)
        assert "the connection broke" in done.stdout
    finally:
        server.kill()
        server.wait(10)


@pytest.mark.broad
def test_after_a_simulators_death_training_goes_on_from_a_checkpoint(
    tmp_path: Path,
) -> None:
    done = run_python(DEATH, "rtl", "cmodel", "simulator", cwd=tmp_path, NPU_CONFIG="small")
    check_death(done)
    assert "SIGKILL" in done.stdout


# ---------------------------------------------------------------------- plug-ins
def test_two_packages_with_one_name_are_an_error_of_that_name_alone(site: Path) -> None:
    plug_in(site, "maker-one", "", "card = maker_one:Card\nother = maker_one:Other")
    plug_in(site, "maker-two", "", "card = maker_two:Card\ncmodel = maker_two:Model")
    assert backend_names().count("card") == 1
    with pytest.raises(InputError, match=r"expected one such backend, not those of .*maker"):
        open_backend("card", SMALL)
    with pytest.raises(InputError, match="not those of npu-cosim and maker-two"):
        open_backend("cmodel", SMALL)
    open_backend("null", SMALL).close()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_this_name", "cannot be opened: ModuleNotFoundError: No module named"),
        ("", "cannot be opened: AttributeError: "),
        ("def Card(config):\n    raise OSError('no\\nboard')", "opened: OSError: no board"),
        ("def Card(config):\n    return object()", "lacks read_csr, write_csr, read_memory"),
    ],
)
def test_a_broken_plug_in_is_one_line_with_its_package(
    site: Path, source: str, reason: str
) -> None:
    plug_in(site, "maker-three", source, "card = maker_three:Card")
    sys.modules.pop("maker_three", None)
    with pytest.raises(InfrastructureError) as caught:
        open_backend("card", SMALL)
    text = str(caught.value)
    assert text.startswith("backend card of package maker-three (maker_three:Card) ")
    assert reason in text
    assert "\n" not in text


# ---------------------------------------------------------------------- the configuration file
def config_file(folder: Path, text: str) -> Path:
    path = folder / "sim_config.yaml"
    path.write_text((ROOT / "sim_config.yaml").read_text() + text)
    return path


def test_a_backend_has_a_name_in_the_file(tmp_path: Path) -> None:
    text = "backends: {model: {kind: cmodel, options: {threads: 1}}}\n"
    path = config_file(tmp_path, text + "torch_device: {backend: model, devices: 2}\n")
    backend = open_backend("model", load_config(path, "small"), file=path)
    assert type(backend).__name__ == "CmodelBackend"
    section = torch_device_section(path)
    assert (section.backend, section.config, section.devices) == ("model", "default", 2)
    assert "model" in backend_names(path)


@pytest.mark.parametrize("key", ['"torch_device"', "'torch_device'", "? torch_device\n"])
def test_a_section_counts_however_its_name_is_written(tmp_path: Path, key: str) -> None:
    path = config_file(tmp_path, f"{key}: {{backend: model, devices: 3}}\n")
    assert torch_device_section(path).devices == 3


def test_a_simulator_is_built_from_the_file_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(Exception):
        pass

    def build(file: Path, *_args: object, **_options: object) -> None:
        raise Asked(file)

    monkeypatch.setattr("driver.backend.rtl.build_simulator", build)
    path = config_file(tmp_path, "")
    settings = ServerSettings("rtl", load_config(path, "small"), path)
    with pytest.raises(Asked) as asked:
        BackendServer(settings)
    assert asked.value.args == (path,)


@pytest.mark.broad
def test_the_file_that_a_variable_names_decides_for_torch(tmp_path: Path) -> None:
    text = "backends: {model: {kind: cmodel, options: {threads: 1}}}\n"
    path = config_file(tmp_path, text + "torch_device: {backend: model, devices: 2}\n")
    code = 'import torch; print(torch.npu.get_backend_info()["name"], torch.npu.device_count())'
    done = run_python(code, NPU_CONFIG_FILE=str(path))
    assert done.stdout.split() == ["model", "2"], done.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("backends: {a: {kind: uio, registers: x}}", "backends.a.memory: got nothing"),
        ("backends: {a: {kind: remote, adress: x}}", "backends.a.adress: got an unknown key"),
        ("backends: {a: 3}", "backends.a: got 3, expected keys with values"),
        ("backends: {A: {kind: uio}}", "expected a name of a-z"),
        ("backends: {a: {kind: remote, address: x}}", "backends.a.address: got remote://x"),
        ("backends: {a: {kind: b}, b: {kind: cmodel}}", "expected a kind of backend"),
        ("backends: {a: {kind: gone}}", "backend: got gone, expected one of"),
        ("backends: {cmodel: {kind: null}}", "backends.cmodel.kind"),
        ("backends: {cmodel: {kind: rtl}}", "not those of npu-cosim and "),
        ("backends: {a: {kind: uio, registers: /none, memory: /none}}", "registers: got /none"),
        ("backends: {a: {kind: cmodel, options: {thread: 2}}}", "backends.a.options: got"),
        ("backends: {a: {kind: cmodel, options: {threads: two}}}", "backends.a.options: got"),
        ("backends: {a: {kind: remote, address: 'foo..bar:7000'}}", "backends.a.address: got"),
    ],
)
def test_a_mistake_in_the_file_names_its_field(tmp_path: Path, text: str, reason: str) -> None:
    path = config_file(tmp_path, text + "\n")
    name = "cmodel" if "cmodel: {kind" in text else "a"
    with pytest.raises(InputError) as caught:
        open_backend(name if "A:" not in text else "A", SMALL, file=path)
    assert reason in str(caught.value)
    assert named_backends(ROOT / "sim_config.yaml") == {}
