# SPDX-License-Identifier: Apache-2.0
"""One item on one sequencer: the building block of the other sequences."""

from __future__ import annotations

from pyuvm import uvm_sequence, uvm_sequence_item, uvm_sequencer


class OneItem(uvm_sequence):
    """Sends `item` and returns when it is done."""

    def __init__(self, item: uvm_sequence_item) -> None:
        super().__init__("one_item")
        self.item = item

    async def body(self) -> None:
        await self.start_item(self.item)
        await self.finish_item(self.item)


async def perform(sequencer: uvm_sequencer, item: uvm_sequence_item) -> None:
    """Have the agent behind `sequencer` perform `item`; results are in the item afterwards."""
    await OneItem(item).start(sequencer)
