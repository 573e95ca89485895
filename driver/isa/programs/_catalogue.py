# SPDX-License-Identifier: Apache-2.0
"""The one catalogue that the families fill."""

from driver.isa.assembler import Catalogue

CATALOGUE = Catalogue()
