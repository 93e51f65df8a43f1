"""One line of `seawall doctor`: what was looked at, how it is, and what to do about it."""

from dataclasses import dataclass
from typing import Any, Literal

from seawall.errors import SeawallError

Outcome = Literal["ok", "warn", "failed"]


@dataclass(frozen=True)
class Check:
    """``exit_code`` is that of the error class that the finding would be; it counts only for ``failed``."""

    name: str
    subject: str
    """Store, run or role."""
    outcome: Outcome
    text: str
    do: str = ""
    exit_code: int = 0

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "check": self.name,
            "subject": self.subject,
            "outcome": self.outcome,
            "text": self.text,
            "do": self.do,
            "exit_code": self.exit_code if self.outcome == "failed" else 0,
        }


def good(name: str, subject: str, text: str) -> Check:
    """Nothing to do."""
    return Check(name, subject, "ok", text)


def doubtful(name: str, subject: str, text: str, do: str) -> Check:
    """Works, and should not stay so."""
    return Check(name, subject, "warn", text, do)


def bad(name: str, subject: str, text: str, do: str, kind: type[SeawallError]) -> Check:
    """Does not work. ``kind`` is the error that a command would end with."""
    return Check(name, subject, "failed", text, do, kind.exit_code)


def failure(name: str, subject: str, error: SeawallError) -> Check:
    """A check that ended with this error."""
    text = error.what + (f" [{error.where}]" if error.where else "") + (f": {error.why}" if error.why else "")
    return Check(name, subject, "failed", text, error.do, error.exit_code)
