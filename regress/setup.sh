#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Finds a Python of 3.11 or newer, or takes $PYTHON, and runs regress/bootstrap.py with it.
# The version that the pinned packages are tested with comes first; one without venv or C headers is
# taken only when there is nothing better, for bootstrap.py to say what it lacks.
set -eu

old_enough='import sys; sys.exit(sys.version_info < (3, 11))'
complete='import sys, sysconfig, os, venv, ensurepip
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info < (3, 11) or not os.path.isfile(header))'

for question in "$complete" "$old_enough"; do
  for python in ${PYTHON:-python3.11 python3.12 python3.13 python3 python .venv/bin/python}; do
    if "$python" -I -c "$question" >/dev/null 2>&1; then
      exec "$python" -I regress/bootstrap.py
    fi
  done
done

if [ -n "${PYTHON:-}" ]; then
  echo "error: setup: PYTHON=$PYTHON is not a Python of 3.11 or newer" >&2
else
  echo "error: setup: no Python of 3.11 or newer on PATH (make PYTHON=/path/to/python3)" >&2
fi
exit 2
