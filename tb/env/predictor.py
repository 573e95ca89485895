# SPDX-License-Identifier: Apache-2.0
"""The expected behaviour: the cmodel runs the accesses that the monitors saw on the pins."""

from __future__ import annotations

from pyuvm import ConfigDB, uvm_component, uvm_subscriber

from driver.isa import DeviceState, csr
from golden.backend import CmodelBackend
from tb.agents.axil import AxilItem
from tb.agents.host import HostItem


class _RegisterTap(uvm_subscriber):
    """Register writes go to the model at once, and the commands they queue run at once. A write
    where no register is changes nothing; who made it judges the answer."""

    def build_phase(self) -> None:
        self.model: CmodelBackend = ConfigDB().get(self, "", "model")

    def write(self, item: AxilItem) -> None:
        if not item.write or item.response or item.offset not in csr.REGISTERS:
            return
        self.model.write_csr(item.offset, item.data)
        while (self.model.read_csr(csr.STATUS) & csr.STATUS_STATE_MASK) == DeviceState.BUSY:
            pass


class _HostTap(uvm_subscriber):
    """Writes through the host's port change the model's memory."""

    def build_phase(self) -> None:
        self.model: CmodelBackend = ConfigDB().get(self, "", "model")

    def write(self, item: HostItem) -> None:
        if item.write and not item.response:
            self.model.write_memory(item.address, item.data)


class Predictor(uvm_component):
    """Both taps on one model. The model takes no simulated time, so it is ahead of the device."""

    def build_phase(self) -> None:
        self.registers = _RegisterTap("registers", self)
        self.host = _HostTap("host", self)
