# SPDX-License-Identifier: Apache-2.0
"""Runs cases one by one: device pair, scoreboard, row. Prints and writes nothing of its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from driver.backend import InspectableBackend
from driver.backend.rtl import RtlBackend
from driver.config import HwConfig
from driver.errors import UnsupportedOp, VerdictError
from driver.results import Failure, OpRow, RunSpec
from golden.backend import CmodelBackend
from golden.formats import Floats
from golden.reference import MatmulCall
from golden.scoreboard import Blame, Verdict
from tb.ops import evidence
from tb.ops.case import Case, CpuOp, refused
from tb.ops.packets import first_wrong_packet
from tb.ops.pair import DevicePair, Trial
from tb.ops.problem import Problem, judged, problem_of
from tb.ops.rows import Findings, address_of, also, failure_of, no_element, row_of, subject_of
from tb.ops.stopped import naming

_FAULT_DETAIL = "device fault: "


@dataclass(frozen=True)
class Answer:
    """The row of an op, and for each output how far its elements may be from the true ones."""

    row: OpRow
    reaches: tuple[Floats | None, ...]


class Session:
    """A device pair for one configuration and seed."""

    def __init__(
        self, spec: RunSpec, config: HwConfig, variant: str | None = None, stall: int = 0
    ) -> None:
        """`variant`: by default the one with assertions, or the one with the behavioural array.

        `stall`: chance out of 256 that a channel of the DRAM holds back for a cycle."""
        self.spec = spec
        self._config = config
        self._stall = stall
        variant = variant or ("check" if spec.array == "rtl" else spec.array)
        self.rtl = self._open_rtl(variant) if spec.backend == "rtl" else None
        rtl: InspectableBackend | None = self.rtl
        self.pair = DevicePair(config, CmodelBackend(config), rtl)
        self._began = 0
        """Cycle at which the case began."""
        self._digest = hashlib.sha256()

    def _open_rtl(self, variant: str) -> RtlBackend:
        return RtlBackend(
            self._config,
            variant=variant,
            config_file=self.spec.config_file,
            sim_log=self.spec.out / "sim.log",
            seed=self.spec.seed,
            stall=self._stall,
        )

    @property
    def config(self) -> HwConfig:
        """Of the hardware."""
        return self._config

    @property
    def digest(self) -> str:
        """SHA-256 of the bits of all results so far, the RTL's where there is one."""
        return self._digest.hexdigest()

    def count(self, trial: Trial) -> None:
        """Add the results of an op to the digest."""
        for bits in (trial.rtl or trial.cmodel).bits:
            self._digest.update(b"-" if bits is None else bits.tobytes())

    def close(self) -> None:
        """End the simulator."""
        self.pair.close()

    def run(self, case: Case) -> OpRow | CpuOp:
        """Judge one case. OpStopped when the devices stop in it, OutOfMemory as it comes."""
        try:
            problem = problem_of(case)
            with naming(case):
                self.begin(case.index)
                trial = self.pair.run(case, problem, self.spec.seed)
        except UnsupportedOp as error:
            return refused(case, error, allow_cpu=self.spec.allow_cpu)
        self.count(trial)
        return self.judged(case, problem, trial).row

    def judged(self, case: Case, problem: Problem, trial: Trial) -> Answer:
        """The verdict on what the devices made of a case; evidence where it failed."""
        rtl = None if trial.rtl is None else trial.rtl.bits
        verdict = judged(problem.call, trial.cmodel.bits, rtl, self._config.array_size)
        row = self._row(case, problem, trial, verdict)
        if row.status == "fail":
            tile = self._config.array_size
            evidence.keep(self.spec.out, row, case, problem=problem, trial=trial, tile_size=tile)
        return Answer(row, verdict.reaches)

    def begin(self, index: int) -> None:
        """What is written from now on is this op's. It has its own stalls, whatever ran before it:
        `--op` meets the same ones."""
        self._began = 0 if self.rtl is None else self.rtl.cycle
        if self.rtl is not None and self._stall:
            seed = self.spec.seed + index
            self.rtl.set_dram(self._config.dram.latency_cycles, self._stall, seed)
            self.rtl.reset()
            self.pair.reset()

    def _row(self, case: Case, problem: Problem, trial: Trial, verdict: Verdict) -> OpRow:
        blame, failure = verdict.blame, None
        if verdict.finding is not None:
            failure = self._failure(verdict, trial)
        fault, stray = self.fault_finding(trial), self.stray_finding(trial)
        if fault is not None:
            blame, failure = fault
        elif stray is not None and failure is None:
            blame, failure = stray
        elif stray is not None and failure is not None:  # the element, and what is beside it
            failure = also(failure, stray[1].detail)
        if failure is not None and blame in (Blame.RTL, Blame.CMODEL):
            blame, failure = self._by_packet(blame, failure, case, problem, trial)
        findings = Findings(
            compared=verdict.elements_compared,
            rtl_mismatches=verdict.rtl_mismatches,
            blame=blame,
            failure=failure,
            torch_max_error=verdict.comparison.max_error,
            torch_bound=verdict.comparison.bound,
            unbounded=verdict.comparison.unbounded,
            zeros=verdict.comparison.zeros,
        )
        subject = subject_of(case, problem)
        return row_of(subject, trial, findings, self.spec.backend, self._config)

    # ------------------------------------------------------------------ failures
    def _failure(self, verdict: Verdict, trial: Trial) -> Failure:
        finding = verdict.finding
        assert finding is not None
        view = trial.results[finding.output]
        assert view is not None
        cycle = self.written(address_of(view, finding.element))
        never = "" if self.rtl is None or cycle is not None else "; the RTL never wrote it"
        return failure_of(finding, cycle, f"{finding.detail}{never}")

    def _by_packet(
        self, blame: Blame, failure: Failure, case: Case, problem: Problem, trial: Trial
    ) -> tuple[Blame, Failure]:
        """What one packet's memory says is more precise than what the op's tensors say, but for a
        product, which is one packet with an opinion of its own."""
        if isinstance(problem.call, MatmulCall) and len(trial.packets) == 1:
            return blame, failure
        try:
            first = first_wrong_packet(self.pair, case, problem, self.spec.seed)
        except VerdictError as error:
            return blame, also(failure, f"run again packet by packet, the device stops: {error}")
        if first is None:
            return blame, also(failure, "run again packet by packet, nothing differs")
        return first.blame or blame, also(failure, str(first))

    def written(self, address: int) -> int | None:
        """Cycle in which the RTL last wrote the byte for this case; None when it did not."""
        cycle = None if self.rtl is None else self.rtl.last_writer(address)
        return cycle if cycle is not None and cycle >= self._began else None

    def fault_finding(self, trial: Trial) -> tuple[Blame, Failure] | None:
        """A command that the device refused. Both refuse: the packets are wrong."""
        faults = [trial.cmodel.fault, None if trial.rtl is None else trial.rtl.fault]
        if not any(faults):
            return None
        cmodel, rtl = (None if fault is None else fault.code for fault in faults)
        same = trial.rtl is None or cmodel == rtl
        text = " / ".join(
            f"{who} {fault}"
            for who, fault in zip(("cmodel:", "rtl:"), faults, strict=True)
            if fault
        )
        return (Blame.LOWERING if same else Blame.RTL), no_element(_FAULT_DETAIL + text)

    def stray_finding(self, trial: Trial) -> tuple[Blame, Failure] | None:
        """Bytes outside the result differ: whoever wrote them is to blame.

        A completion record that the RTL never wrote is missing: the cmodel's have no arithmetic.
        """
        if not trial.stray or self.rtl is None:
            return None
        address = trial.stray[0]
        cycle = self.written(address)
        missing = self.pair.is_record(address)
        blame = Blame.CMODEL if cycle is None and not missing else Blame.RTL
        text = f"memory differs outside the result, first at {address:#x}"
        return blame, no_element(text, cycle)
