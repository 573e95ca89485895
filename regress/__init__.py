# SPDX-License-Identifier: Apache-2.0
"""Plans, schedules, stores and reports runs; the command line. Starts tb as subprocesses."""
