# SPDX-License-Identifier: Apache-2.0
"""Files, modules, tests and commands that texts name, held against what there is.

Texts are the pages, and the docstrings and comments of the sources. A page's code spans and blocks
are read for commands; every text is read for paths and modules.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_TOPS = ("driver", "golden", "tb", "regress", "rtl", "workloads", "tests", "docs", ".ci")
_PACKAGES = "driver|golden|tb|regress|workloads"
_PATH = re.compile(rf"(?<![\w/.~$-])((?:{'|'.join(map(re.escape, _TOPS))})/[\w./*-]*)")
_FILE = re.compile(r"(?<![\w/.*$-])(\w+\.(?:py|sv|svh|hpp|cpp|h|rdl|j2|vlt|sh|yaml))(?![\w(])")
_MODULE = re.compile(rf"(?<![\w/.-])((?:{_PACKAGES})(?:\.[A-Za-z_]\w*)+)(?![/\w])")
_TEST = re.compile(r"(?<![\w/.*])(test_\w+)(?![\w.*<])")
_CODE = re.compile(r"`([^`\n]+)`")
_COMMENT = {".py": re.compile(r"(?:^|\s)#(.*)"), ".sv": re.compile(r"//(.*)")}
_STRING = re.compile(r'"""(.*?)"""', re.DOTALL)
_MAKE = re.compile(r"(?:^|\s)make((?: -C \S+)?(?: (?:[A-Z_]+=(?:'[^']*'|\S+)|[a-z][a-z-]*))+)")
_PROGRAM = re.compile(r"(?:^|[\s/])npu-cosim ([a-z][a-z-]*)((?: \S+)*)")
_VARIABLE = re.compile(r"(?<![\w.-])([A-Z][A-Z_]+)=(\S*)")

_UNWANTED = re.compile(
    r"\b(nobody|somebody|anybody|everybody|whoever|who watches|the morning after)\b", re.IGNORECASE
)


FOREIGN = frozenset(
    ("Python.h", "lz4.h", "svdpi.h", "verilated.h", "jobqueue.yaml", "modeling_qwen2.py")
)
"""Files that are not this project's."""
MADE = ("golden._cmodel", "regress/baselines/", "test_shrunk_")
"""What a build or a command makes: a module, a folder's files."""


class Text(NamedTuple):
    """Something to read, and where it stands."""

    place: str
    text: str


@cache
def files(root: Path = ROOT) -> frozenset[str]:
    """Every file of the project, relative to its root."""
    found = subprocess.run(
        [shutil.which("git") or "git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(found.stdout.splitlines())


def pages(root: Path = ROOT) -> Iterator[Text]:
    """The lines of all pages but the change log and the decisions, which speak of their day."""
    for file in sorted([root / "README.md", *(root / "docs").glob("*.md")]):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            yield Text(f"{file.relative_to(root)}:{number}", line)


def source_texts(root: Path = ROOT) -> Iterator[Text]:
    """Docstrings and comments, line by line. Tests are left out: they name files that they make."""
    for name in sorted(files(root)):
        suffix = Path(name).suffix
        if suffix not in (".py", ".sv", ".cpp", ".hpp", ".h") or name.startswith("tests/"):
            continue
        text = (root / name).read_text(encoding="utf-8")
        comment = _COMMENT[".py" if suffix == ".py" else ".sv"]
        documented: set[int] = set()
        if suffix == ".py":
            for match in _STRING.finditer(text):
                first = text.count("\n", 0, match.start())
                documented.update(range(first, first + match[0].count("\n") + 1))
        for number, line in enumerate(text.splitlines()):
            found = comment.search(line)
            if number in documented:
                yield Text(f"{name}:{number + 1}", line)
            elif found:
                yield Text(f"{name}:{number + 1}", found[1])


def missing_files(texts: Iterable[Text], known: frozenset[str]) -> list[str]:
    """Paths and names of files that no file has."""
    names = {Path(file).name for file in known}
    folders = {str(parent) for file in known for parent in Path(file).parents}
    problems = []
    for place, text in texts:
        problems += [
            f"{place}: {path}: no such file or folder"
            for path in (found.rstrip("./") for found in _PATH.findall(text))
            if path not in known | folders and not _matches(path, known)
        ]
        problems += [
            f"{place}: {name}: no file has this name"
            for name in _FILE.findall(text)
            if name not in names | FOREIGN and not _matches(name, names)
        ]
    return problems


def _matches(name: str, known: Iterable[str]) -> bool:
    """A pattern (`rtl/*_pkg.sv`, `test_HASH.py`), a decision's number, or the end of a name."""
    if name.startswith(MADE):
        return True
    pattern = re.sub("[A-Z]{3,}", "*", name)
    pattern += "-*" if name.startswith("docs/adr/") else ""
    pattern = f"*{pattern}" if name.startswith("_") else pattern
    return "*" in pattern and any(fnmatchcase(file, pattern) for file in known)


def unwanted_words(texts: Iterable[Text]) -> list[str]:
    """Words that make persons of processes: name the process, the user or the passive instead."""
    return [f"{place}: {word}" for place, text in texts for word in _UNWANTED.findall(text)]


def missing_modules(texts: Iterable[Text], root: Path = ROOT) -> list[str]:
    """Dotted names that are neither a module nor something that a module declares."""
    return [
        f"{place}: {name}: no such module, or nothing of this name in it"
        for place, text in texts
        for name in _MODULE.findall(text)
        if name not in MADE and not _resolves(name, root)
    ]


@cache
def _resolves(name: str, root: Path) -> bool:
    at = root
    parts = name.split(".")
    while parts and (at / parts[0]).is_dir():
        at /= parts.pop(0)
    if not parts:
        return True
    file = at / f"{parts[0]}.py"
    if file.is_file():
        parts.pop(0)
    else:
        file = at / "__init__.py"
    if not parts:
        return True
    return file.is_file() and bool(re.search(rf"\b{parts[0]}\b", file.read_text(encoding="utf-8")))


def missing_tests(texts: Iterable[Text], root: Path = ROOT) -> list[str]:
    """Names of tests that no file of tests declares."""
    declared = "\n".join(file.read_text(encoding="utf-8") for file in root.glob("tests/*.py"))
    known = set(re.findall(r"def (test_\w+)", declared)) | {
        Path(file).stem for file in files(root) if file.startswith("tests/")
    }
    return [
        f"{place}: {name}: no such test"
        for place, text in texts
        for name in _TEST.findall(text)
        if name not in known
    ]


def commands(texts: Iterable[Text]) -> Iterator[Text]:
    """Code spans, and code blocks cut at what explains them."""
    for place, text in texts:
        if text.startswith("    "):
            yield Text(place, re.split(r"\s{2,}|\s#\s", text.strip())[0])
        else:
            yield from (Text(place, span) for span in _CODE.findall(text))


def wrong_make(texts: Iterable[Text], root: Path = ROOT) -> list[str]:
    """Targets that the Makefile has not, and variables that a target does not take."""
    return [
        f"{place}: make{command}: {problem}"
        for place, text in texts
        for command in _MAKE.findall(text)
        if (problem := _make_problem(re.sub(r"^ -C \S+", "", command), root))
    ]


@cache
def _make_problem(command: str, root: Path) -> str:
    """What make says to a command without running it; empty if it is right."""
    words = [word for word in re.findall(r"(?:'[^']*'|[^\s'])+", command) if word != "-C"]
    given = {w.split("=")[0]: w.split("=", 1)[1].strip("'") for w in words if w[0].isupper()}
    targets = [word for word in words if not word[0].isupper()][:1]
    done = subprocess.run(
        [
            shutil.which("make") or "make",
            "-n",
            *targets,
            *(f"{name}={value}" for name, value in given.items()),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip().partition("*** ")[2] if done.returncode else ""


def wrong_commands(texts: Iterable[Text], known: Mapping[str, frozenset[str]]) -> list[str]:
    """Commands of npu-cosim that do not exist, and options that a command has not."""
    every = frozenset(("--help",)).union(_script_options(), *known.values())
    problems = []
    for place, text in texts:
        if (first := text.split(" ")[0].split("=")[0]).startswith("--") and first not in every:
            problems.append(f"{place}: {first}: no command has this option")
        for name, rest in _PROGRAM.findall(text):
            if name not in known:
                problems.append(f"{place}: npu-cosim {name}: no such command")
                continue
            options = re.findall(r"(?<=\s)(--?[a-z][a-z-]*)", rest)
            problems += [
                f"{place}: npu-cosim {name} {option}: no such option"
                for option in options
                if option not in known[name]
            ]
    return problems


@cache
def _script_options(root: Path = ROOT) -> frozenset[str]:
    """Options of the modules that are started by `python -m`."""
    sources = [root / file for file in files(root) if file.startswith(("tb/", "regress/"))]
    text = "".join(file.read_text(encoding="utf-8") for file in sources if file.suffix == ".py")
    return frozenset(re.findall(r'"(--[a-z][a-z-]*)"', text))


def wrong_variables(texts: Iterable[Text], root: Path = ROOT) -> list[str]:
    """Variables that neither the Makefile nor a source reads, and values that do not exist."""
    makefiles = "\n".join(
        (root / file).read_text(encoding="utf-8")
        for file in files(root)
        if file.endswith((".mk", "Makefile"))
    )
    sources = "\n".join(
        (root / file).read_text(encoding="utf-8")
        for file in files(root)
        if file.endswith(".py") and file.startswith("tests/") and file != "tests/test_docs.py"
    )
    tests = {Path(file).stem for file in files(root) if file.startswith("tb/tests/")}
    benches = "".join(file.read_text(encoding="utf-8") for file in root.glob("tb/unit/*.py"))
    units = set(re.findall(r'"(\w+)"', benches))
    configs = set(re.findall(r"^  (\w+):", (root / "sim_config.yaml").read_text(), re.MULTILINE))
    values = {"TEST": tests | units | {"name"}, "CONFIG": configs | {"mine", "wide", "name"}}
    problems = []
    for place, text in texts:
        for name, value in _VARIABLE.findall(text):
            if not re.search(rf"\b{name}\b", makefiles + sources):
                problems.append(f"{place}: {name}: no such variable")
            elif name in values and re.fullmatch(r"\w+", value) and value not in values[name]:
                problems.append(f"{place}: {name}={value}: no such {name.lower()}")
    return problems
