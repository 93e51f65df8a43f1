"""The outcome of a conformance kit."""

from dataclasses import dataclass, field
from typing import Any, Literal

Outcome = Literal["passed", "failed", "not attainable"]


class CheckFailedError(AssertionError):
    """A check did not find what the contract promises."""


class NotAttainableError(Exception):
    """The thing under test says itself that it does not do this; the reason is the message."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check, its outcome, and for a person what was seen."""

    name: str
    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Report:
    """All checks of one run."""

    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether none failed. What is not attainable is no failure: whoever needs it looks at the capabilities."""
        return not self.failed

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.outcome == "failed"]

    def outcome(self, name: str) -> Outcome:
        """Of one check by name; ``KeyError`` when there is none."""
        for check in self.checks:
            if check.name == name:
                return check.outcome
        raise KeyError(name)

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "ok": self.ok,
            "checks": [
                {"name": check.name, "outcome": check.outcome, "detail": check.detail, "seconds": round(check.seconds, 3)}
                for check in self.checks
            ],
        }


def expect(holds: bool, text: str) -> None:
    """Fail the check with ``text`` unless it holds."""
    if not holds:
        raise CheckFailedError(text)


def expect_error(kind: type[BaseException] | tuple[type[BaseException], ...], action: Any, text: str) -> BaseException:
    """The error that ``action`` raises, which must be of this kind."""
    try:
        answer = action()
    except kind as error:
        return error
    raise CheckFailedError(f"{text}: answered {answer!r:.200} instead of refusing")
