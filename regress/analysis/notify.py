# SPDX-License-Identifier: Apache-2.0
"""Tells people how a night went: JSON to a webhook, and a message as a file that mail tools send.

Owns the two forms. Knows no chat service: a webhook takes the JSON or what it is made into.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from http.client import HTTPException
from pathlib import Path

from driver.errors import InfrastructureError, InputError
from driver.results import write_text

_TIMEOUT_S = 20.0
_SHORT = 12
_SCHEMES = ("http", "https")


@dataclass(frozen=True)
class Notification:
    """A night in a few words."""

    tier: str
    day: str
    """When it was planned, UTC, to the minute."""
    plan: str
    revision: str
    red: bool
    states: Mapping[str, int]
    new: tuple[str, ...]
    """Labels of the jobs that fail since this night."""
    fixed: tuple[str, ...]
    flaky: tuple[str, ...]
    scope: tuple[str, ...]
    """What the verdict does not speak of, and what makes it doubtful."""
    worse: tuple[str, ...]
    """Ratchets that were lost."""
    replay: tuple[str, ...]
    """One command per bug that is not a known issue."""
    report: str

    @property
    def subject(self) -> str:
        """The news in one line."""
        verdict = "RED" if self.red else "green"
        counts = ", ".join(f"{number} {state}" for state, number in self.states.items())
        of = f"{self.day}, {self.revision[:_SHORT] or 'no revision'}"
        return f"[npu-cosim] {self.tier} {verdict}: {counts} ({of})"


def to_json(news: Notification) -> str:
    """What a webhook gets. `text` is what chat services show."""
    return json.dumps({"text": news.subject, **asdict(news)}, ensure_ascii=False)


def check_webhook(url: str) -> None:
    """InputError for what is no web address."""
    try:
        parts = urllib.parse.urlsplit(url)
        sound = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        sound = False
    if not sound or not url.isprintable() or " " in url:
        raise InputError("command line", "webhook", url, "an http or https address")


def check_mail(path: Path) -> None:
    """InputError for a file in a folder that is not there."""
    if not path.absolute().parent.is_dir():
        raise InputError("command line", "--mail", path, "a file in a folder that is there")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without the message: HTTPError."""

    def redirect_request(self, *_args: object) -> None:
        """None: not followed."""
        return


def post(url: str, news: Notification) -> None:
    """Send the JSON. InputError for what is no web address; InfrastructureError when it fails."""
    check_webhook(url)
    request = urllib.request.Request(  # noqa: S310 (the scheme was checked)
        url, to_json(news).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    failures: list[object] = []

    def send() -> None:
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S):
                pass
        except (OSError, HTTPException, ValueError) as error:
            failures.append(getattr(error, "reason", error))

    # The limit of a socket is one per byte: a server can answer for ever.
    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    sending.join(_TIMEOUT_S)
    if sending.is_alive():
        failures.append(f"no answer in {_TIMEOUT_S:g} s")
    if failures:
        host = urllib.parse.urlsplit(url).hostname  # the rest may be a secret
        raise InfrastructureError(f"webhook at {host}: {failures[0]}")


def write_mail(path: Path, news: Notification, sender: str, to: Sequence[str]) -> None:
    """The message as an .eml file, ready for `sendmail -t` or a mail program."""
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = Address(addr_spec=sender)
        message["To"] = tuple(Address(addr_spec=one) for one in to)
    except (ValueError, IndexError, MessageError) as error:
        wrong = ", ".join([sender, *to])
        raise InputError("command line", "mail", wrong, "addresses as name@host") from error
    message["Subject"] = news.subject
    message["Date"] = formatdate()
    message.set_content("\n".join(_lines(news)))
    write_text(path, message.as_string())


def _lines(news: Notification) -> list[str]:
    lines = [f"{news.tier}, plan {news.plan}, revision {news.revision or '-'}", ""]
    groups = {
        "New failures": news.new,
        "Fixed": news.fixed,
        "Flaky": news.flaky,
        "Note": news.scope,
        "Ratchets lost": news.worse,
        "Reproduce": news.replay,
    }
    for title, entries in groups.items():
        if entries:
            lines += [f"{title}:", *(f"  {entry}" for entry in entries), ""]
    return [*lines, f"Report: {news.report}", ""]
