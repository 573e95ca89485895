# SPDX-License-Identifier: Apache-2.0
"""Runs cases one by one: device pair, scoreboard, row. Owns the rows; prints and writes nothing."""

from __future__ import annotations

import math

from driver.backend import InspectableBackend
from driver.backend.rtl import RtlBackend
from driver.config import HwConfig
from driver.errors import UnsupportedOp
from driver.isa import DTYPE_BYTES, Opcode
from driver.results import Failure, OpRow, RunSpec
from golden.backend import CmodelBackend
from golden.reference import MatmulCall
from golden.scoreboard import Blame, Finding, Verdict, judge
from tb.ops import evidence
from tb.ops.case import Case, CpuOp
from tb.ops.pair import DevicePair, Outcome, Trial

_FAULT_DETAIL = "device fault: "


class Session:
    """A device pair for one configuration and seed."""

    def __init__(
        self, spec: RunSpec, config: HwConfig, variant: str = "check", stall: int = 0
    ) -> None:
        """`stall`: chance out of 256 that a channel of the DRAM holds back for a cycle."""
        self._spec = spec
        self._config = config
        self._stall = stall
        self.rtl = self._open_rtl(variant) if spec.backend == "rtl" else None
        rtl: InspectableBackend | None = self.rtl
        self._pair = DevicePair(config, CmodelBackend(config), rtl)
        self._began = 0
        """Cycle at which the case began."""

    def _open_rtl(self, variant: str) -> RtlBackend:
        return RtlBackend(
            self._config,
            variant=variant,
            config_file=self._spec.config_file,
            sim_log=self._spec.out / "sim.log",
            seed=self._spec.seed,
            stall=self._stall,
        )

    def close(self) -> None:
        """End the simulator."""
        self._pair.close()

    def run(self, case: Case) -> OpRow | CpuOp:
        """Judge one case. Errors of the machinery, and operands that do not fit, are raised."""
        self._began = 0 if self.rtl is None else self.rtl.cycle
        try:
            call = case.call()
            self._restart_stalls(case)
            trial = self._pair.run(case, call, self._spec.seed)
        except UnsupportedOp as error:
            return on_cpu(case, str(error))
        row = self._row(case, call, trial, self._verdict(call, trial))
        if row.status == "fail":
            tile = self._config.array_size
            evidence.keep(self._spec.out, row, case, call=call, trial=trial, tile_size=tile)
        return row

    def _restart_stalls(self, case: Case) -> None:
        """The case's own stalls, whatever ran before it: `--op` meets the same ones."""
        if self.rtl is not None and self._stall:
            seed = self._spec.seed + case.index
            self.rtl.set_dram(self._config.dram.latency_cycles, self._stall, seed)
            self.rtl.reset()
            self._pair.reset()

    def _verdict(self, call: MatmulCall, trial: Trial) -> Verdict:
        rtl = None if trial.rtl is None else trial.rtl.bits
        return judge(call, trial.cmodel.bits, rtl, self._config.array_size)

    def _row(self, case: Case, call: MatmulCall, trial: Trial, verdict: Verdict) -> OpRow:
        blame, failure = verdict.blame, None
        if verdict.finding is not None:
            failure = self._failure(verdict.finding, call, trial)
        for check in (self._fault_finding, self._stray_finding):
            found = check(trial)
            if found is not None:
                blame, failure = found
        measured = trial.rtl
        cycles = None if measured is None else sum(record.cycles for record in measured.records)
        macs = math.prod(call.sizes) * call.a.shape[-1]
        return OpRow(
            index=case.index,
            op=case.op,
            module=case.module,
            source=case.source,
            where=self._spec.backend,
            dtype=dtype_text(call),
            shapes=(tuple(call.a.shape), tuple(call.b.shape)),
            elements_compared=verdict.elements_compared,
            rtl_vs_cmodel_mismatches=None if measured is None else verdict.rtl_mismatches,
            torch_max_error=verdict.comparison.max_error,
            torch_bound=verdict.comparison.bound,
            cycles=cycles,
            macs=macs,
            utilisation=None if measured is None else self._utilisation(measured, macs),
            status="pass" if failure is None else "fail",
            blame=blame.value,
            failure=failure,
        )

    def _utilisation(self, outcome: Outcome, macs: int) -> float | None:
        busy = sum(r.cycles for r in outcome.records if r.opcode == Opcode.MATMUL)
        return macs / (busy * self._config.array_size**2) if busy else None

    # ------------------------------------------------------------------ failures
    def _failure(self, finding: Finding, call: MatmulCall, trial: Trial) -> Failure:
        offset = 0
        for index, size in zip(finding.element, call.sizes, strict=True):
            offset = offset * size + index
        address = trial.result.address + offset * DTYPE_BYTES[call.result]
        cycle = self._written(address)
        never = "" if self.rtl is None or cycle is not None else "; the RTL never wrote it"
        return Failure(
            element=finding.element,
            tile=finding.tile,
            expected_bits=f"{finding.expected_bits:#x}",
            actual_bits=f"{finding.actual_bits:#x}",
            expected=finding.expected,
            actual=finding.actual,
            cycle=cycle,
            detail=f"{finding.detail}{never}",
        )

    def _written(self, address: int) -> int | None:
        """Cycle in which the RTL last wrote the byte for this case; None when it did not."""
        cycle = None if self.rtl is None else self.rtl.last_writer(address)
        return cycle if cycle is not None and cycle >= self._began else None

    def _fault_finding(self, trial: Trial) -> tuple[Blame, Failure] | None:
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
        return (Blame.LOWERING if same else Blame.RTL), _no_element(_FAULT_DETAIL + text)

    def _stray_finding(self, trial: Trial) -> tuple[Blame, Failure] | None:
        """Bytes outside the result differ: whoever wrote them is to blame.

        A completion record that the RTL never wrote is missing: the cmodel's have no arithmetic.
        """
        if not trial.stray or self.rtl is None:
            return None
        address = trial.stray[0]
        cycle = self._written(address)
        missing = self._pair.is_record(address)
        blame = Blame.CMODEL if cycle is None and not missing else Blame.RTL
        text = f"memory differs outside the result, first at {address:#x}"
        return blame, _no_element(text, cycle)


def _no_element(detail: str, cycle: int | None = None) -> Failure:
    return Failure(
        element=(),
        tile=None,
        expected_bits="0x0",
        actual_bits="0x0",
        expected=0.0,
        actual=0.0,
        cycle=cycle,
        detail=detail,
    )


def dtype_text(call: MatmulCall) -> str:
    """The type of operands and result, once when they are the same."""
    names = [call.operand.name.lower(), call.result.name.lower()]
    return names[0] if names[0] == names[1] else "→".join(names)


def on_cpu(case: Case, reason: str) -> CpuOp:
    """A case that the NPU refuses: it is accounted for, and nobody's to compare."""
    tensors = [tensor for _, tensor in case.tensors()]
    return CpuOp(
        index=case.index,
        op=case.op,
        module=case.module,
        source=case.source,
        dtype=str(tensors[0].dtype).removeprefix("torch.") if tensors else "",
        shapes=tuple(tuple(tensor.shape) for tensor in tensors),
        reason=reason,
    )
