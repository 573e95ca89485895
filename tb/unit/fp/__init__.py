# SPDX-License-Identifier: Apache-2.0
"""C++ of the arithmetic benches, and what each is made of."""
