"""DingTalk's group robot: a signed webhook that takes Markdown (https://open.dingtalk.com/document/robots/custom-robot-access).

The address holds the robot's token, and the signature needs its secret: neither is ever said or logged.
"""

import base64
import hmac
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from seawall.alerts.alert import Message
from seawall.alerts.http import post_json, shown
from seawall.errors import AlertRefusedError, AlertUnavailableError

MAX_TEXT_BYTES = 16_000
"""The robot takes 20,000 bytes a message."""
_TOO_FAST = {130101, 410100}
"""``errcode``: more than 20 messages a minute. They may be sent later."""
_MEANINGS = {
    300001: "the token is no robot's",
    310000: "the signature, a keyword or the sender's address is not what the robot is set to ask for",
    400101: "the token is wrong",
    400102: "the robot was stopped",
    400105: "the robot takes no such kind of message",
    430101: "the message holds an address that is not safe",
}


@dataclass(frozen=True)
class DingTalk:
    """One robot."""

    webhook: str = field(repr=False)
    """The whole URL with ``access_token``; a secret."""
    secret: str = field(default="", repr=False)
    """``SEC…`` of a robot that asks for signatures; a secret. Empty for one that asks for none."""

    @property
    def where(self) -> str:
        """What of its address may be said."""
        return shown(self.webhook)

    def send(self, message: Message, now: datetime) -> None:
        """Post one message. ``now`` is signed, and must be within an hour of DingTalk's clock.

        Raises an :class:`~seawall.errors.AlertError`; an ambiguous one means that the group may have got it.
        """
        text = _text(message)
        body = {"msgtype": "markdown", "markdown": {"title": message.title, "text": text}}
        _, answer = post_json(self._signed(now), body, idempotent=False)
        code = _code(answer)
        if code == 0:
            return
        if code in _TOO_FAST:
            raise AlertUnavailableError("the robot takes no more messages for now", where=self.where, why=f"errcode {code}")
        # Not what the robot says: it may repeat what was sent.
        why = f"errcode {code}: {_MEANINGS.get(code, 'see the list of codes at open.dingtalk.com')}" if code is not None else "no errcode"
        raise AlertRefusedError("the robot refused the message", where=self.where, why=why, do="compare token and secret with its settings")

    def _signed(self, now: datetime) -> str:
        parts = urlsplit(self.webhook)
        query = parse_qsl(parts.query, keep_blank_values=True)
        if self.secret:
            timestamp = str(int(now.timestamp() * 1000))
            query += [("timestamp", timestamp), ("sign", signature(self.secret, timestamp))]
        return urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), ""))


def signature(secret: str, timestamp: str) -> str:
    """Base64 of HMAC-SHA256 under the robot's secret over ``<timestamp>\\n<secret>``, the timestamp in milliseconds."""
    return base64.b64encode(hmac.new(secret.encode(), f"{timestamp}\n{secret}".encode(), sha256).digest()).decode()


def _code(answer: Any) -> int | None:
    code = answer.get("errcode") if isinstance(answer, dict) else None
    return code if isinstance(code, int) else None


def _text(message: Message) -> str:
    lines = [f"### {message.title}", *message.lines]
    if message.link:
        lines.append(f"[open in Airflow]({message.link})")
    # A line break in Markdown is an empty line.
    text = "\n\n".join(lines)
    raw = text.encode()
    return text if len(raw) <= MAX_TEXT_BYTES else raw[:MAX_TEXT_BYTES].decode(errors="ignore") + "…"
