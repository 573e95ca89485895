# SPDX-License-Identifier: Apache-2.0
"""Agents, predictor and scoreboard, connected."""

from __future__ import annotations

from pyuvm import ConfigDB, uvm_env

from tb.agents.axil import AxilAgent
from tb.agents.command import CommandAgent
from tb.agents.host import HostAgent
from tb.env.predictor import Predictor
from tb.env.scoreboard import Scoreboard


class NpuEnv(uvm_env):
    """Expects in the ConfigDB: dut, memory, model, records, ring_bases, ring_entries, where."""

    def build_phase(self) -> None:
        self.axil = AxilAgent("axil", self)
        self.host = HostAgent("host", self)
        ConfigDB().set(None, "*", "axil", self.axil)
        ConfigDB().set(None, "*", "host", self.host)
        self.command = CommandAgent("command", self)
        self.predictor = Predictor("predictor", self)
        self.scoreboard = Scoreboard("scoreboard", self)

    def connect_phase(self) -> None:
        registers, host = self.axil.monitor.ap, self.host.monitor.ap
        # The predictor first: a read is compared with the model as of that read.
        registers.connect(self.predictor.registers.analysis_export)
        host.connect(self.predictor.host.analysis_export)
        registers.connect(self.scoreboard.axil.analysis_export)
        host.connect(self.scoreboard.host.analysis_export)
        registers.connect(self.command.monitor.analysis_export)
        self.command.monitor.ap.connect(self.scoreboard.commands.analysis_export)
