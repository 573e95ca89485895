# SPDX-License-Identifier: Apache-2.0
"""A TLS certificate and its key, made by openssl for this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


def make_pair(folder: Path, host: str = "127.0.0.1") -> tuple[Path, Path]:
    """Certificate and key in `folder`, signed by itself, for one address."""
    certificate, key = folder / f"{host}.pem", folder / f"{host}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "1", "-subj", "/CN=npu", "-addext", f"subjectAltName=IP:{host}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return certificate, key
