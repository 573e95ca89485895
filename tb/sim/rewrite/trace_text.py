# SPDX-License-Identifier: Apache-2.0
"""Reads the functions that write waves, as Verilator generates them. Compiles nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tb.sim.plan import PREFIX, ROOT

FILES = f"{PREFIX}__Trace__*.cpp"
TEMPORARY_BEGIN = "__V"
TEMPORARY = re.compile(rf"\b{TEMPORARY_BEGIN}\w+")
"""A name that may be of one."""
CALL = re.compile(rf"({ROOT}__trace_\w+)\((\(&vlSymsp->TOP\), bufp|vlSelf, \w+)\);")
"""A statement that calls a function which is not a type's: its name, and the arguments."""
NUMBER = re.compile(r"\b(oldp\+|c\+|vlSelf, bufp, )(\d+)")
"""A signal's in a statement: what says of which kind it is, and itself."""
_FUNCTION = re.compile(
    rf"^(?P<head>(?:VL_ATTR_COLD )?void) (?P<name>{ROOT}__trace_\w+)"
    r"\((?P<parameters>[^;{}]*)\)\s*\{(?P<body>.*?)^\}\n",
    re.MULTILINE | re.DOTALL,
)
_CONSTANT = re.compile(r"^extern const .*?(\w+);\n", re.MULTILINE)
_LOCALS, _BODY = "    // Locals\n", "    // Body\n"
_PREAMBLE = re.compile(
    r"VL_DEBUG_IF|\w+\* const __restrict|auto& vlSelfRef|const int c |uint32_t\*"
)
_BASE = re.compile(r"->__Vm_baseCode(?: \+ (\d+))?\);$")
_BROKEN = {text: text.strip() for text in ("( ", "[ ", " )", " ]", " [", " .")}
"""With a space that is there only where a line is broken → without."""
_SIMPLE = re.compile(r'[^;{}"]*+(?:"[^"\\;{}()]*+"[^;{}"]*+)*+;')
"""Up to the first semicolon, if that is in no braces."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(){};]')


@dataclass(frozen=True)
class TraceFunction:
    """One function. Its text does not say where lines were broken, which is up to the digits of a
    number."""

    name: str
    head: str
    """What is before the name; of a function that runs once, an attribute says so."""
    parameters: str
    locals: dict[str, str]
    """Temporaries, and their declarations."""
    preamble: tuple[str, ...]
    statements: tuple[str, ...]
    base: int
    """What is added to the numbers of signals in the statements."""

    def text(self) -> str:
        """All of it, a statement in a line."""
        lines = (*self.locals.values(), *self.preamble, *self.statements)
        body = "".join(f"    {line}\n" for line in lines)
        return f"{self.declaration}{{\n{body}}}\n"

    @property
    def declaration(self) -> str:
        """Without what ends it."""
        return f"{self.head} {self.name}({self.parameters}) "


def statements(text: str) -> Iterator[str]:
    """The statements of `text`, in which all white space is a space. An `else` is a part of its
    statement."""
    start = 0
    while end := _end(text, start):
        yield text[start:end].strip()
        start = end


def _end(text: str, start: int) -> int:
    """Of the statement that begins there; 0: none. Most have no braces, which is seen faster
    without the tokens."""
    simple = _SIMPLE.match(text, start)
    if simple is not None and simple[0].count("(") == simple[0].count(")"):
        return simple.end()
    brackets = braces = 0
    for token in _TOKEN.finditer(text, start):
        brackets += (token[0] == "(") - (token[0] == ")")
        braces += (token[0] == "{") - (token[0] == "}")
        ended = token[0] == ";" or (token[0] == "}" and not text.startswith(" else", token.end()))
        if ended and not brackets and not braces:
            return token.end()
    return 0


def mentioned(text: str) -> list[str]:
    """What may be temporaries in a text. Most statements have none, which is seen faster without
    the pattern."""
    return TEMPORARY.findall(text) if TEMPORARY_BEGIN in text else []


def _name(declaration: str) -> str:
    """Of the temporary. ValueError: not one of Verilator's."""
    if not (names := TEMPORARY.findall(declaration)):
        raise ValueError(f"no temporary: {declaration}")
    return str(names[-1])


def parts(functions: Mapping[str, TraceFunction], name: str) -> Iterator[TraceFunction]:
    """The function and those that it calls, as parts without calls in the order in which they run:
    where Verilator ends a function is up to all that is before."""
    plain: list[str] = []
    for line in functions[name].statements:
        if (call := CALL.fullmatch(line)) is None:
            plain.append(line)
        else:
            yield replace(functions[name], statements=tuple(plain))
            plain = []
            yield from parts(functions, call[1])
    yield replace(functions[name], statements=tuple(plain))


def _one_line(text: str) -> str:
    joined = " ".join(text.split())
    for broken, whole in _BROKEN.items():
        joined = joined.replace(broken, whole)
    return joined.replace(", ", ",").replace(",", ", ")


def _read(match: re.Match[str]) -> TraceFunction:
    before, _, after = match["body"].rpartition(_BODY)
    opening, _, declared = before.partition(_LOCALS)
    found = list(statements(_one_line(after)))
    leading = [one for one in found if _PREAMBLE.match(one)]
    preamble = [*statements(_one_line(opening)), *leading]
    base = 0
    for at, line in enumerate(preamble):
        if line.startswith("uint32_t* const oldp") and (number := _BASE.search(line)):
            base = int(number[1] or 0)
            preamble[at] = _BASE.sub("->__Vm_baseCode);", line)
    return TraceFunction(
        name=match["name"],
        head=match["head"],
        parameters=_one_line(match["parameters"]),
        locals={_name(one): one for one in statements(_one_line(declared))},
        preamble=tuple(one for one in preamble if not one.startswith("VL_DEBUG_IF")),
        statements=tuple(found[len(leading) :]),
        base=base,
    )


def read_functions(generated: Path) -> tuple[dict[str, TraceFunction], dict[str, str]]:
    """By name: the functions of the files `FILES` in the folder, and the declarations of the
    constants that they use. ValueError: a text that is none of these."""
    functions: dict[str, TraceFunction] = {}
    constants: dict[str, str] = {}
    for path in sorted(generated.glob(FILES), key=lambda path: (len(path.name), path.name)):
        text = path.read_text()
        constants |= {match[1]: match[0] for match in _CONSTANT.finditer(text)}
        found = [_read(match) for match in _FUNCTION.finditer(text)]
        functions |= {function.name: function for function in found}
        if text.count("\n}\n") != len(found):
            raise ValueError(f"{path.name}: more than functions that write waves")
    return functions, constants
