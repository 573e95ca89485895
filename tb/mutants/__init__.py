# SPDX-License-Identifier: Apache-2.0
"""Wrong lines of RTL, planted in the whole NPU or in a block of it, that tests must catch."""
