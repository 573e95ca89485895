# SPDX-License-Identifier: Apache-2.0
"""Devices below the driver: the verbs of one, and the backends that answer them, found by name."""

from driver.backend.protocol import Backend, Feature, InspectableBackend
from driver.backend.registry import (
    BACKENDS,
    BackendInfo,
    backend_info,
    backend_names,
    check_name,
    open_backend,
)

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendInfo",
    "Feature",
    "InspectableBackend",
    "backend_info",
    "backend_names",
    "check_name",
    "open_backend",
]
