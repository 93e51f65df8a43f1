"""Every error that seawall raises on purpose.

An error says *what* happened, *where*, *why*, and what to *do* next, and belongs to one of three outcomes:

``transient``
    It may go away by itself; a retry of the same idempotent request is right.
``permanent``
    A retry gives the same answer.
``ambiguous``
    The request may or may not have taken effect. Nothing retries it by itself: whoever asked reads the
    state back first, and decides then.

The exit code of the command line is a property of the error's class (docs/cli.md lists them).
"""

from typing import ClassVar, Literal

Outcome = Literal["transient", "permanent", "ambiguous"]


class SeawallError(Exception):
    """Base of all of them; by itself it is an unexpected permanent failure."""

    outcome: ClassVar[Outcome] = "permanent"
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, where: str = "", why: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.do = do

    def __str__(self) -> str:
        text = self.what
        if self.where:
            text += f" [{self.where}]"
        if self.why:
            text += f": {self.why}"
        if self.do:
            text += f". Next: {self.do}"
        return text

    def as_json(self) -> dict[str, str]:
        """The same facts for ``--json``."""
        return {
            "error": type(self).__name__,
            "outcome": self.outcome,
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "do": self.do,
        }


class UsageError(SeawallError):
    """The request itself is wrong: an option, a path, a configuration key."""

    exit_code = 2


class ConfigurationError(UsageError):
    """seawall.toml is missing, unreadable, or says something that cannot be meant."""


class IncompleteError(SeawallError):
    """A checkpoint is not finished yet, or a part that it names is not there."""

    exit_code = 3


class SourceChangedError(IncompleteError):
    """A source file changed while it was read; the checkpoint is still being written."""


class CorruptError(SeawallError):
    """Bytes are there and are not what was signed, checksummed or named."""

    exit_code = 4


class HostileError(SeawallError):
    """Reading this the usual way would run code, leave the directory or exhaust memory."""

    exit_code = 5


class NoSuchCopyError(SeawallError):
    """No copy, checkpoint, file or run answers to what was asked for."""

    exit_code = 6


class StoreError(SeawallError):
    """A store could not be reached or did not do what was asked."""

    exit_code = 7


class StoreUnavailableError(StoreError):
    """The store did not answer, or said to come back later."""

    outcome = "transient"


class StoreAmbiguousError(StoreError):
    """The store may have carried the request out: the connection died before the answer."""

    outcome = "ambiguous"


class StoreRefusedError(StoreError):
    """The store answered and refused: rights, bucket, lock, checksum of the request."""


class NoSuchObjectError(StoreError):
    """The store is there and has no object of that key (or version)."""

    exit_code = 6


class ObjectExistsError(StoreError):
    """Create-if-absent found the key taken. Read what is there before deciding anything."""


class AlertError(SeawallError):
    """A receiver of alerts could not be told. Never raised through the work that the alert is about."""

    exit_code = 7


class AlertUnavailableError(AlertError):
    """The receiver was not reached, or said to come back later."""

    outcome = "transient"


class AlertAmbiguousError(AlertError):
    """The receiver may have taken it: the connection died before the answer."""

    outcome = "ambiguous"


class AlertRefusedError(AlertError):
    """The receiver answered and refused."""


class KeyMissingError(SeawallError):
    """A key that is needed is not on this host, or does not open what it should."""

    exit_code = 8


class BusyError(SeawallError):
    """Somebody else is doing this right now."""

    outcome = "transient"
    exit_code = 9


class TrustError(SeawallError):
    """A signature, a role, or the order of signed things is not what the trust root allows."""

    exit_code = 10


class FreshnessError(TrustError):
    """What is shown is older than what was seen before, or two histories exist for one run."""


class EpochClosedError(TrustError):
    """The checkpoint was written under an epoch that has been fenced off since."""


class UnknownLayoutError(SeawallError):
    """What is at this path is no checkpoint layout that seawall reads."""

    exit_code = 11
