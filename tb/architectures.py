# SPDX-License-Identifier: Apache-2.0
"""Architectures of transformers on the cmodel: a line of JSON for each, as soon as it is done.

`python -m tb.architectures CONFIG_FILE CONFIG SEED OUT NAME …`; started by
`npu-cosim architectures`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from driver.capture import capture
from driver.config import load_config
from driver.results import RunSpec
from driver.survey import Surveyed
from tb.ops.session import Session
from tb.ops.survey import survey
from workloads._architecture_table import table
from workloads._architectures import build, silence


def surveyed(session: Session, name: str, seed: int) -> Surveyed:
    """Build, record and judge one architecture."""
    model = table().architectures[name].model
    try:
        module, inputs = build(name, seed)
        capsule = capture(module, inputs, name=name, seed=seed)
    except Exception as error:  # transformers' code: any of it may raise anything
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return Surveyed(name=name, model=model, error=text[:300])
    found = survey(session, capsule)
    return Surveyed(name=name, model=model, npu=found.npu, free=found.free, troubles=found.troubles)


def main(arguments: Sequence[str]) -> None:
    """Survey the architectures of these names."""
    file, config, seed, out, *names = arguments
    silence()
    spec = RunSpec(
        test="architectures", config=config, config_file=Path(file), seed=int(seed),
        backend="cmodel", waves="none", out=Path(out), capsules={}, op_filter=None,
        timeout_s=3600.0, allow_cpu=True,
    )  # fmt: skip
    session = Session(spec, load_config(spec.config_file, config))
    try:
        for name in names:
            sys.stdout.write(surveyed(session, name, spec.seed).model_dump_json() + "\n")
            sys.stdout.flush()
    finally:
        session.close()


if __name__ == "__main__":
    main(sys.argv[1:])
