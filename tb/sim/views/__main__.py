# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.sim.views`: write the viewers' files."""

from tb.sim.views import FILES, FOLDER

for name, text in FILES.items():
    (FOLDER / name).write_text(text())
