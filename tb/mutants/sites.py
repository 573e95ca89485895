# SPDX-License-Identifier: Apache-2.0
"""Where an expression of the RTL can be wrong, and how: found in slang's elaborated npu_top.

It is any expression that is evaluated in a simulation: no constant, no bound of a loop, no
assertion. What replaces it is one small mistake of those that people make, and keeps its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyslang
from pyslang import ast
from pyslang.syntax import ParenthesizedExpressionSyntax
from pyslang.syntax import SyntaxNode as Syntax

from driver.errors import InfrastructureError
from driver.filelist import FILELIST
from tb.mutants.expression import Site

_BINARY: Final = ast.BinaryOperator
_OTHER: Final = {
    _BINARY.Add: "-",
    _BINARY.Subtract: "+",
    _BINARY.BinaryAnd: "|",
    _BINARY.BinaryOr: "&",
    _BINARY.BinaryXor: "|",
    _BINARY.Equality: "!=",
    _BINARY.Inequality: "==",
    _BINARY.LessThan: "<=",
    _BINARY.LessThanEqual: "<",
    _BINARY.GreaterThan: ">=",
    _BINARY.GreaterThanEqual: ">",
    _BINARY.LogicalAnd: "||",
    _BINARY.LogicalOr: "&&",
    _BINARY.LogicalShiftLeft: ">>",
    _BINARY.LogicalShiftRight: "<<",
    _BINARY.ArithmeticShiftRight: ">>",
}
"""The operator that is mistaken for it."""
_LOGICAL: Final = (_BINARY.LogicalAnd, _BINARY.LogicalOr, ast.UnaryOperator.LogicalNot)
_EITHER_SIDE: Final = (*_LOGICAL, _BINARY.BinaryAnd, _BINARY.BinaryOr, _BINARY.BinaryXor)
"""Operators of which each side is forgotten once."""
_FIRST_SIDE: Final = (_BINARY.Add, _BINARY.Subtract)
_INVERSIONS: Final = (ast.UnaryOperator.LogicalNot, ast.UnaryOperator.BitwiseNot)
_NEVER_SIMULATED: Final = (
    ast.ParameterSymbol,
    ast.ImmediateAssertionStatement,
    ast.ConcurrentAssertionStatement,
)
_SMALLEST: Final = "-GArraySize=8 -GBusBits=128 -GVectorLanes=4"
"""As the configuration `small`: what it leaves out is no site."""
GENERATED: Final = "gen"
"""Name of the folders of what a generator wrote."""


def find_sites() -> list[Site]:
    """All that are not in generated files, by file, place and mistake.

    InfrastructureError for RTL that does not elaborate.
    """
    design = _elaborated()
    found = _Finder(design)
    design.getRoot().visit(found.visit)
    return sorted(site for site in found.sites if site.file.parent.name != GENERATED)


def _elaborated() -> ast.Compilation:
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    command = f"slang -F {FILELIST} --top npu_top {_SMALLEST}"
    if not (
        driver.parseCommandLine(command) and driver.processOptions() and driver.parseAllSources()
    ):
        raise InfrastructureError(f"cannot be parsed: {command}")
    design = driver.createCompilation()
    if any(found.isError() for found in design.getAllDiagnostics()):
        raise InfrastructureError(f"does not elaborate: {command}")
    return design


class _Finder:
    """Collects the sites of what it visits; a module that is there twice counts once."""

    def __init__(self, design: ast.Compilation) -> None:
        self.sites: set[Site] = set()
        self._files = design.sourceManager
        self._context = ast.EvalContext(design.getRoot())
        self._text: dict[Path, bytes] = {}

    def visit(self, node: object) -> ast.VisitAction:
        """For slang's visitor."""
        if isinstance(node, _NEVER_SIMULATED) or _only_asserts(node):
            return ast.VisitAction.Skip
        if isinstance(node, ast.ForLoopStatement):  # with another bound or step it may never end
            node.body.visit(self.visit)
            return ast.VisitAction.Skip
        if isinstance(node, ast.Expression) and node.syntax is None:  # of `a += b`
            return ast.VisitAction.Advance  # type: ignore[unreachable] # pyslang's types omit None
        if isinstance(node, ast.ConditionalStatement):
            for condition in node.conditions:
                self._add(condition.expr, ["1'b0", "1'b1"])
        elif isinstance(node, ast.ConditionalExpression):
            choice = _bare(node.syntax)
            self._add(node, [self._slice(side) for side in (choice.left, choice.right)])
        elif isinstance(node, ast.BinaryExpression):
            self._add(node, list(self._of_binary(node)))
        elif isinstance(node, ast.UnaryExpression) and node.op in _INVERSIONS:
            self._add(
                node, [self._side(_bare(node.syntax).operand, node.operand, node.op in _LOGICAL)]
            )
        return ast.VisitAction.Advance

    def _of_binary(self, node: ast.BinaryExpression) -> Iterator[str]:
        logical = node.op in _LOGICAL
        syntax = _bare(node.syntax)
        left = self._side(syntax.left, node.left, logical)
        right = self._side(syntax.right, node.right, logical)
        if node.op in _OTHER:
            yield f"{left} {_OTHER[node.op]} {right}"
        if node.op in (*_EITHER_SIDE, *_FIRST_SIDE):
            yield left
        if node.op in _EITHER_SIDE:
            yield right

    def _side(self, syntax: Syntax, node: ast.Expression, logical: bool) -> str:
        """Text of an operand, in brackets: of one bit where an operator made it one."""
        text = self._slice(syntax)
        return f"|({text})" if logical and node.type.bitWidth > 1 else f"({text})"

    def _slice(self, syntax: Syntax) -> str:
        extent = syntax.sourceRange
        return self._read(extent.start)[extent.start.offset : extent.end.offset].decode()

    def _read(self, place: pyslang.SourceLocation) -> bytes:
        path = self._path(place)
        if path not in self._text:
            self._text[path] = path.read_bytes()
        return self._text[path]

    def _path(self, place: pyslang.SourceLocation) -> Path:
        return Path(self._files.getFullPath(place.buffer))

    def _add(self, node: ast.Expression, mistakes: list[str]) -> None:
        extent = node.syntax.sourceRange
        if node.eval(self._context).value is None and self._files.isFileLoc(extent.start):
            place, first, end = self._path(extent.start), extent.start.offset, extent.end.offset
            right = self._slice(node.syntax)
            self.sites.update(Site(place, first, end, right, wrong) for wrong in mistakes)


def _only_asserts(node: object) -> bool:
    """Whether a statement does nothing but assert, under whatever condition."""
    if isinstance(node, ast.ConditionalStatement):
        return node.ifFalse is None and _only_asserts(node.ifTrue)  # type: ignore[unreachable]
    if isinstance(node, ast.BlockStatement):
        return _only_asserts(node.body)
    if isinstance(node, ast.StatementList):
        return all(map(_only_asserts, node.list))
    return isinstance(node, ast.ImmediateAssertionStatement)


def _bare(syntax: Syntax) -> Any:
    """Without brackets around it."""
    while isinstance(syntax, ParenthesizedExpressionSyntax):
        syntax = syntax.expression
    return syntax
