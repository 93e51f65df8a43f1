"""Levels of proof, and what a policy says about their age. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum


class Level(IntEnum):
    """How far a copy was proved (docs/architecture.md)."""

    L0 = 0
    """Listed: the store says that every object is there."""
    L1 = 1
    """Sizes and the store's own checksums agree with the manifest."""
    L2 = 2
    """Every stored byte read back; leaf hashes and signatures agree. Needs no decryption key."""
    L3 = 3
    """Decrypted; the SHA-256 of every file's plaintext agrees."""
    L4 = 4
    """Structure read: every tensor's name, shape, dtype and checksum are as at save time."""
    L5 = 5
    """Training resumed from it and its loss matched within tolerance."""

    @property
    def of_sealing(self) -> bool:
        """Whether the level is about the sealing's content, which is the same in every store, or about one copy's bytes."""
        return self >= Level.L3

    @classmethod
    def parse(cls, text: str) -> "Level":
        """From ``L3``; ``ValueError`` otherwise."""
        if len(text) == 2 and text[0] in "Ll" and text[1] in "012345":
            return cls(int(text[1]))
        raise ValueError(f"{text!r} is no level; levels are L0 to L5")


DEFAULT_MAX_AGE_DAYS: Mapping[Level, int] = {Level.L0: 7, Level.L1: 7, Level.L2: 7, Level.L3: 30, Level.L4: 30, Level.L5: 90}
"""On-line media: every byte is read back within a week (disks are scrubbed at that rhythm), the expensive levels monthly and quarterly."""


@dataclass(frozen=True)
class AgePolicy:
    """After how long a proof of each level no longer counts. The reader decides, not the prover.

    ``per_medium`` has the media that differ (tape is read back once a year, not once a week), ``media`` the medium of each store by its id.
    """

    max_age_days: Mapping[Level, int] = field(default_factory=lambda: dict(DEFAULT_MAX_AGE_DAYS))
    per_medium: Mapping[str, Mapping[Level, int]] = field(default_factory=dict)
    media: Mapping[str, str] = field(default_factory=dict)

    def max_age(self, level: Level, store: str = "") -> timedelta:
        """For a copy in ``store`` (an id). Where nobody knows the store's medium, the strictest of all tables: what is not known makes
        nothing look better."""
        of_medium = [self.max_age_days, *self.per_medium.values()]
        if store in self.media:
            of_medium = [self.per_medium.get(self.media[store], self.max_age_days)]
        return timedelta(days=min(self._days(table, level) for table in of_medium))

    def _days(self, table: Mapping[Level, int], level: Level) -> int:
        return table.get(level, self.max_age_days.get(level, DEFAULT_MAX_AGE_DAYS[level]))
