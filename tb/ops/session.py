# SPDX-License-Identifier: Apache-2.0
"""Runs cases one by one: device pair, scoreboard, row. Prints and writes nothing of its own."""

from __future__ import annotations

import hashlib

from driver.backend import InspectableBackend
from driver.backend.rtl import RtlBackend
from driver.config import HwConfig
from driver.errors import UnsupportedOp, VerdictError
from driver.results import Blame, Failure, OpRow, RunSpec
from golden.backend import CmodelBackend
from golden.judge import judge
from golden.verdict import Verdict
from tb.checks import no_element
from tb.mutants.activation import activation, with_mutant
from tb.ops import evidence
from tb.ops.case import Case
from tb.ops.pair import DevicePair, PairResult
from tb.ops.rows import CpuOp, address_of, also, judged_row, refused
from tb.ops.stopped import naming
from tb.ops.timing import impossible
from tb.ops.wrong_packet import first_wrong_packet

_FAULT_DETAIL = "device fault: "
_OVERWRITTEN_DETAIL = "memory is overwritten where no result lies, first at "


def _variant_of(spec: RunSpec) -> str:
    """The build that a run uses (tb/sim/spec.py)."""
    if spec.simulator != "verilator":
        return spec.simulator
    plain = "check" if spec.array == "rtl" else spec.array
    return plain if spec.variant == "plain" else f"{plain}-{spec.variant}"


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
        variant = variant or _variant_of(spec)
        self.rtl = self._open_rtl(variant) if spec.backend == "rtl" else None
        rtl: InspectableBackend | None = self.rtl
        self.pair = DevicePair(config, CmodelBackend(config), rtl)
        self._began = 0
        """Cycle at which the case began."""
        self._digest = hashlib.sha256()
        self.stopped = False
        """Whether the device stopped when a failed case ran again: nothing can run on it."""

    def _open_rtl(self, variant: str) -> RtlBackend:
        mutant = self.spec.mutant
        return RtlBackend(
            self._config,
            variant=with_mutant(variant, mutant),
            arguments=activation(mutant),
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

    def count(self, result: PairResult) -> None:
        """Add the results of an op to the digest."""
        for bits in (result.rtl or result.cmodel).bits:
            self._digest.update(b"-" if bits is None else bits.tobytes())

    def close(self) -> None:
        """End the simulator."""
        self.pair.close()

    def run(self, case: Case) -> OpRow | CpuOp:
        """Judge one case. OpStopped when the devices stop in it, OutOfMemory as it comes."""
        try:
            case.check()
            with naming(case):
                self.begin(case.index)
                result = self.pair.run(case, self.spec.seed)
        except UnsupportedOp as error:
            return refused(case, error, allow_cpu=self.spec.allow_cpu)
        self.count(result)
        return self.judged(case, result)[0]

    def judged(self, case: Case, result: PairResult) -> tuple[OpRow, Verdict]:
        """The verdict on what the devices made of a case; evidence where it failed."""
        rtl, tile = None if result.rtl is None else result.rtl.bits, self._config.array_size
        verdict = judge(case.call, result.cmodel.bits, rtl, tile)
        found = self._found(case, result, verdict)
        row = judged_row(case, result, verdict, found, where=self.spec.backend, config=self._config)
        if row.status == "fail":
            evidence.keep(self.spec.out, row, case, result=result, tile_size=tile)
        return row, verdict

    def begin(self, index: int) -> None:
        """What is written from now on is this op's. It has its own stalls, whatever ran before it:
        `--op` meets the same ones."""
        self._began = 0 if self.rtl is None else self.rtl.cycle
        if self.rtl is not None and self._stall:
            seed = self.spec.seed + index
            self.rtl.set_dram(self._config.dram.latency_cycles, self._stall, seed)
            self.rtl.reset()
            self.pair.reset()

    # ------------------------------------------------------------------ failures
    def _found(
        self, case: Case, result: PairResult, verdict: Verdict
    ) -> tuple[Blame, Failure] | None:
        """What is wrong: a fault, an element, a write outside the results; None: nothing."""
        fault, stray = self.fault_finding(result), self.stray_finding(result)
        if fault is not None:
            return self._by_packet(*fault, case, result, verdict)
        if verdict.failure is not None:
            failure = self._with_cycle(verdict.failure, result)
            if stray is not None:  # the element, and what is beside it
                failure = also(failure, stray[1].detail)
            return self._by_packet(verdict.blame, failure, case, result, verdict)
        if stray is not None:
            return self._by_packet(*stray, case, result, verdict)
        if result.overwritten:
            where = f"{result.overwritten[0]:#x}"
            return "lowering", no_element(f"{_OVERWRITTEN_DETAIL}{where}")
        records = () if result.rtl is None else result.rtl.records
        wrong = impossible(result.packets, records, self._config)
        return None if wrong is None else ("rtl", no_element(wrong))

    def _with_cycle(self, failure: Failure, result: PairResult) -> Failure:
        """With the cycle in which the RTL wrote the element."""
        view = result.results[failure.output]
        assert view is not None
        cycle = self.written(address_of(view, failure.element))
        never = self.rtl is not None and cycle is None
        found = also(failure, "the RTL never wrote it") if never else failure
        return found.model_copy(update={"cycle": cycle})

    def _by_packet(
        self, blame: Blame, failure: Failure, case: Case, result: PairResult, verdict: Verdict
    ) -> tuple[Blame, Failure]:
        """Between RTL and cmodel, what one packet's memory says is more precise than what the op's
        tensors say, but for a product, which is one packet with an opinion of its own."""
        if blame not in ("rtl", "cmodel"):
            return blame, failure
        if verdict.by_integers and len(result.packets) == 1:
            return blame, failure
        try:
            first = first_wrong_packet(self.pair, case, self.spec.seed)
        except VerdictError as error:
            self.stopped = True
            return blame, also(failure, f"run again packet by packet, the device stops: {error}")
        if first is None:
            return blame, also(failure, "run again packet by packet, nothing differs")
        return first.blame or blame, also(failure, str(first))

    def written(self, address: int) -> int | None:
        """Cycle in which the RTL last wrote the byte for this case; None when it did not."""
        cycle = None if self.rtl is None else self.rtl.last_writer(address)
        return cycle if cycle is not None and cycle >= self._began else None

    def fault_finding(self, result: PairResult) -> tuple[Blame, Failure] | None:
        """A command that the device refused. Both refuse: the packets are wrong."""
        faults = [result.cmodel.fault, None if result.rtl is None else result.rtl.fault]
        if not any(faults):
            return None
        cmodel, rtl = (None if fault is None else fault.code for fault in faults)
        same = result.rtl is None or cmodel == rtl
        text = " / ".join(
            f"{who} {fault}"
            for who, fault in zip(("cmodel:", "rtl:"), faults, strict=True)
            if fault
        )
        return ("lowering" if same else "rtl"), no_element(_FAULT_DETAIL + text)

    def stray_finding(self, result: PairResult) -> tuple[Blame, Failure] | None:
        """Bytes outside the result differ: the side that wrote them is to blame.

        A completion record that the RTL never wrote is missing: the cmodel's have no arithmetic.
        """
        if not result.stray or self.rtl is None:
            return None
        address = result.stray[0]
        cycle = self.written(address)
        missing = self.pair.is_record(address)
        blame: Blame = "cmodel" if cycle is None and not missing else "rtl"
        text = f"memory differs outside the result, first at {address:#x}"
        return blame, no_element(text, cycle)
