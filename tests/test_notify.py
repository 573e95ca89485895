# SPDX-License-Identifier: Apache-2.0
"""News of a night: JSON that arrives at a webhook, and a message that mail programs read."""

from __future__ import annotations

import contextlib
import email
import email.policy
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from driver.errors import InfrastructureError, InputError
from regress.analysis import notify
from regress.analysis.notify import Notification, post, to_json, write_mail

NEWS = Notification(
    tier="nightly", day="2026-01-01 01:00", plan="p1", revision="abc", red=True,
    states={"pass": 7, "fail": 3}, scope=("7 of 10 jobs were executed",),
    new=("replay:lenet[größer] seed 1",), fixed=(), flaky=("smoke[small] seed 2",),
    worse=("worse: mm: cycles 1 → 2 (+100.0%)",), replay=("make replay ID=123",),
    report="/out/report/index.html",
)  # fmt: skip


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server on loopback: /ok takes what comes, /moved sends there, everything else fails."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["Content-Type"], body))
            self.send_response({"/ok": 204, "/moved": 302}.get(self.path, 500))
            self.send_header("Location", "/ok")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()


def test_the_webhook_gets_the_night_as_json(webhook: tuple[str, list[tuple[str, bytes]]]) -> None:
    url, got = webhook
    post(f"{url}/ok", NEWS)
    ((kind, body),) = got
    assert kind == "application/json"
    found = json.loads(body)
    assert found == json.loads(to_json(NEWS))
    assert found["text"] == "[npu-cosim] nightly RED: 7 pass, 3 fail (2026-01-01 01:00, abc)"
    assert found["new"] == ["replay:lenet[größer] seed 1"]
    assert found["replay"] == ["make replay ID=123"]


def test_a_webhook_that_refuses_or_is_not_there_is_an_error_without_its_secret(
    webhook: tuple[str, list[tuple[str, bytes]]],
) -> None:
    host = webhook[0].removeprefix("http://")
    for url in (
        f"http://{host}/hook/secret",
        "http://127.0.0.1:9/hook/secret",
        f"http://me:secret@{host}/hook",
        f"http://{host}/ä-secret",
        f"http://{host}/moved",
    ):
        with pytest.raises(InfrastructureError, match=r"webhook at 127\.0\.0\.1") as caught:
            post(url, NEWS)
        assert "secret" not in str(caught.value)


def test_a_webhook_that_answers_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def drip() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            for byte in b"HTTP/1.1 204 " + b"x" * 1000:
                connection.sendall(bytes([byte]))
                time.sleep(0.1)

    monkeypatch.setattr(notify, "_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, daemon=True).start()
        with pytest.raises(InfrastructureError, match=r"webhook at .*: no answer in 0\.5 s"):
            post(f"http://127.0.0.1:{listener.getsockname()[1]}/", NEWS)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "hooks.example.org/x", ""])
def test_only_web_addresses_are_webhooks(url: str) -> None:
    with pytest.raises(InputError, match="an http or https address"):
        post(url, NEWS)


def test_the_message_can_be_read_by_a_mail_program(tmp_path: Path) -> None:
    path = tmp_path / "night.eml"
    write_mail(path, NEWS, "npu@example.org", ["ada@example.org", "alan@example.org"])
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert message["From"] == "npu@example.org"
    assert message["To"] == "ada@example.org, alan@example.org"
    assert message["Subject"] == NEWS.subject
    text = message.get_content()
    for words in (*NEWS.new, *NEWS.flaky, *NEWS.worse, *NEWS.replay, NEWS.report):
        assert words in text
    assert "Fixed:" not in text


@pytest.mark.parametrize("to", ["nobody", "a@b\nBcc: evil@c", "<a@b>", "@", " "])
def test_what_is_no_address_is_refused(tmp_path: Path, to: str) -> None:
    with pytest.raises(InputError, match="addresses as name@host"):
        write_mail(tmp_path / "night.eml", NEWS, "npu@example.org", [to])
    assert not (tmp_path / "night.eml").exists()
