# SPDX-License-Identifier: Apache-2.0
"""A result as JUnit XML for CI servers: one test case per op."""

from __future__ import annotations

from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from driver.results import OpRow, RunResult
from regress.run_report.text import failure_lines

JUNIT_FILE = "junit.xml"


def write_junit(result: RunResult, path: Path) -> None:
    """Write junit.xml, whole or not at all."""
    suite = TestSuite(f"{result.test}.{result.config}")
    for name in ("backend", "array", "seed", "reproduce"):
        suite.add_property(name, legal(str(getattr(result, name))))
    suite.add_testcases([_case(result, row) for row in result.ops])  # one by one is quadratic
    if result.message and not any(row.status == "fail" for row in result.ops):
        suite.add_testcase(_run_case(result))
    xml = JUnitXml()
    xml.add_testsuite(suite)
    xml.update_statistics()  # type: ignore[no-untyped-call]
    suite.time = xml.time = result.wall_seconds  # not the sum of the ops, which have no time each
    write_whole(xml, path)


def write_whole(xml: JUnitXml, path: Path) -> None:
    """Write a report whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    xml.write(str(fresh), pretty=True)
    fresh.replace(path)


def _case(result: RunResult, row: OpRow) -> TestCase:
    name = f"{row.index} {row.op} {row.dtype} {row.module}"
    case = TestCase(legal(name), classname=f"{result.test}.{result.config}")
    if row.where == "cpu":
        case.result = [Skipped("ran on the CPU: nothing to compare")]
    elif row.status == "fail":
        failure = Failure(f"blame: {row.blame}", type_="mismatch")
        failure.text = legal("\n".join(failure_lines(result, row)))
        case.result = [failure]
    return case


def _run_case(result: RunResult) -> TestCase:
    """What no op row says: the run itself went wrong."""
    case = TestCase("run", classname=f"{result.test}.{result.config}")
    kind = Failure if result.status == "fail" else Error
    case.result = [kind(legal(result.message or ""), type_=result.status)]
    return case


def legal(text: str) -> str:
    """Without the characters that XML has no way to write."""
    return "".join(c if c in "\t\n" or ord(c) >= 0x20 else "?" for c in text)
