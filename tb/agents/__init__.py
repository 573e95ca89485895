# SPDX-License-Identifier: Apache-2.0
"""UVM agents of the pins: registers (axil), the host's port (host), commands (command)."""
