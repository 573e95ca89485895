# SPDX-License-Identifier: Apache-2.0
"""The functions keep what docs/numerics.md's table says of them, and the table is of this code."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from rich.console import Console

from driver.errors import InputError
from driver.isa.programs import PROGRAMS
from golden.accuracy import BF16, FP16, FP32, digest, errors, measure, run
from golden.functions import FUNCTIONS, Function
from regress.accuracy import PAGE, accuracy, recorded, table, with_table
from regress.paths import ROOT

RECORDED = recorded()
BY_NAME = {function.name: function for function in FUNCTIONS}
CASES = [(row.function, row.format) for row in RECORDED]
FORMATS = {form.name: form for form in (FP32, FP16, BF16)}
SAMPLE = 60_000
PROMISED_ULP = 2.0
BETWEEN_SAMPLES = 1.05
"""A sample may meet a number that the recorded one passed by, a little worse."""


@pytest.mark.parametrize(("name", "form"), CASES)
def test_an_error_is_what_the_table_says(name: str, form: str) -> None:
    (row,) = (row for row in RECORDED if (row.function, row.format) == (name, form))
    found = measure(BY_NAME[name], FORMATS[form], SAMPLE, seed=7)
    assert found.points > SAMPLE / 2
    assert found.max_ulp <= min(PROMISED_ULP, BETWEEN_SAMPLES * row.max_ulp)
    assert found.max_ulp > 0.49  # an error below half an ULP was not measured at all


def test_the_table_is_of_these_programs() -> None:
    now = {row.function: digest(PROGRAMS[row.program]) for row in RECORDED}
    stale = [row.function for row in RECORDED if digest(PROGRAMS[row.program]) != row.code]
    assert stale == [], "run `npu-cosim accuracy`, and commit what it writes"
    assert set(now) == set(BY_NAME)
    assert {(row.function, row.format) for row in RECORDED} == {
        (name, form) for name in BY_NAME for form in FORMATS
    }


def test_the_page_shows_the_record() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert with_table(page, RECORDED) == page
    assert len(table(FUNCTIONS, RECORDED)) == len(FUNCTIONS) + 2
    assert all(row.max_ulp <= PROMISED_ULP for row in RECORDED)
    assert all(row.points >= 10_000_000 for row in RECORDED if row.format == "fp32")


def test_a_digest_follows_the_code_and_nothing_else() -> None:
    digests = {name: digest(program) for name, program in PROGRAMS.items()}
    assert digests["exp"] != digests["exp2"]
    assert digests["exp_difference"] == digests["exp_difference_sum"]


@pytest.mark.parametrize(
    ("got", "true", "ulp"),
    [
        (1.0, 1.0, 0.0),
        (1.0 + 2**-23, 1.0, 1.0),
        (1.0, 1.0 + 2**-24, 0.5),
        (0.0, 2.0**-150, 0.5),
        (np.inf, 2.0**128 - 2.0**103, 0.5),
        (np.inf, 1e300, 0.0),
        (3.0, np.inf, np.inf),
        (-np.inf, np.inf, np.inf),
        (np.nan, np.nan, 0.0),
        (np.nan, 1.0, np.inf),
        (0.0, np.nan, np.inf),
        (0.0, -0.0, np.inf),
    ],
)
def test_an_ulp_is_the_spacing_at_the_true_value(got: float, true: float, ulp: float) -> None:
    assert errors(FP32, np.array([got]), np.array([true])).tolist() == [ulp]


def test_a_wrong_function_is_measured_as_wrong() -> None:
    wrong = Function("tanh", np.sin)
    assert measure(wrong, FP32, 2000).max_ulp > 1e3


def test_a_step_the_wrong_way_is_seen() -> None:
    falling = Function("tanh", np.tanh, monotonic=(-1.0, 1.0), direction=-1)
    for form in (FP32, FP16, BF16):
        assert measure(falling, form, 100_000).monotonic is False


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_far_from_0_a_wave_stays_within_1(name: str) -> None:
    x = np.arange(0x4880_0000, 0x7F80_0000, 7919, dtype=np.int64).astype(np.uint32)
    for sign in (np.uint32(0), np.uint32(0x8000_0000)):
        wave = run(PROGRAMS[name], x | sign).view(np.float32)
        assert wave.size > 100_000
        assert np.all(np.abs(wave) <= 1)


PROMISES = {
    name: float(match[1])
    for name, program in PROGRAMS.items()
    for match in [re.search(r"to 2\^(-[\d.]+)", program.text)]
    if match
}


@pytest.mark.parametrize("name", PROMISES)
def test_a_short_program_is_as_good_as_its_text(name: str) -> None:
    function = BY_NAME[name.removesuffix("_16").removesuffix("_fp16").removesuffix("_bf16")]
    x = np.random.default_rng(3).uniform(-9, 20, 2_000_000).astype(np.float32)
    true = function.true(x.astype(np.float64))
    got = run(PROGRAMS[name], x.view(np.uint32)).view(np.float32).astype(np.float64)
    worst = float(np.max(np.abs(got / true - 1)))
    assert 0.5 * 2.0 ** PROMISES[name] < worst <= 2.0 ** PROMISES[name]


def test_short_exponentials_are_good_to_13_6_bits() -> None:
    x = np.random.default_rng(3).uniform(-86, 0, 1_000_000).astype(np.float32)
    zero = np.zeros(x.size, np.uint32)
    got = run(PROGRAMS["exp_difference_16"], x.view(np.uint32), zero).view(np.float32)
    worst = float(np.max(np.abs(got.astype(np.float64) / np.exp(x.astype(np.float64)) - 1)))
    assert 2.0**-14.6 < worst <= 2.0**-13.6


def test_a_wrong_special_value_fails_and_leaves_the_record(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Function("exp", lambda x: np.where(np.isinf(x), np.nan, np.exp(np.minimum(x, 100.0))))
    monkeypatch.setattr("regress.accuracy.FUNCTIONS", (wrong,))
    monkeypatch.setattr("regress.accuracy.write_text", lambda *_: pytest.fail("wrote"))
    assert accuracy(Console(width=200), [], 40_000_000) == 1
    assert "exp of (inf,), fp32: ∞, NaN or −0 is wrong" in capsys.readouterr().out


def test_only_enough_points_are_put_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regress.accuracy.RECORDED_POINTS", 3000)
    written: dict[str, str] = {}
    monkeypatch.setattr(
        "regress.accuracy.write_text", lambda path, text: written.update({path.name: text})
    )
    assert accuracy(Console(), ["exp"], 2999) == 0
    assert written == {}
    assert accuracy(Console(), ["exp"], 3000) == 0
    rows = json.loads(written["accuracy.json"])
    assert [(row["function"], row["format"]) for row in rows] == CASES
    assert {row["function"] for row in rows if row["format"] == "fp32" and row["points"] < 1e6} == {
        "exp"
    }
    assert written["numerics.md"].count("| `exp` |") == 1


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(InputError, match=r"sine.*one of rsqrt, exp"):
        accuracy(Console(), ["sine"], 1000)


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(InputError, match="marks"):
        with_table("no table here", RECORDED)
