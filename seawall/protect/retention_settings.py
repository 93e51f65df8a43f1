"""The ``[retention]`` table of seawall.toml: what is kept, and the safety parameters of deleting, each with the harm that it prevents."""

from datetime import timedelta

from pydantic import BaseModel, ConfigDict, Field, field_validator

from seawall.clock import CENTURY_DAYS
from seawall.verify.levels import Level


class RetentionSettings(BaseModel):
    """What a run keeps, and under which conditions anything else goes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_last: int = Field(default=7, ge=1)
    """Newest proved checkpoints that are kept. Newer ones that are not proved are kept as well and do not count."""
    daily: int = Field(default=7, ge=0)
    """Days of which the newest proved checkpoint is kept. Days, weeks and months are UTC, by the store's time in the first receipt."""
    weekly: int = Field(default=4, ge=0)
    """ISO weeks, likewise."""
    monthly: int = Field(default=3, ge=0)
    """Months, likewise."""
    keep_best: int = Field(default=1, ge=0)
    """Checkpoints of the lowest recorded loss that are kept; none where no loss is known."""
    keep_archived: int = Field(default=7, ge=0)
    """Newest proved checkpoints that were archived and are kept, in the archive and elsewhere: a week of daily archives."""
    protect_steps: tuple[int, ...] = ()
    """Steps that are never deleted, whatever their age."""
    min_copies: int = Field(default=2, ge=2)
    """Proved copies in different media or fault domains that every protected checkpoint must have, or nothing at all is deleted.
    With one, the loss of one disk between two verifications is the loss of the checkpoint."""
    min_level: str = "L3"
    """What a copy must be proved to before it counts for that. Below L3 nobody has decrypted it."""
    detection_days: int = Field(default=7, ge=1, le=CENTURY_DAYS)
    """How long corrupt training may go unnoticed: one proved checkpoint older than this is always kept. Silent data corruption is found
    after hours to days; with a shorter time every copy left may be of the corrupted weights."""
    cooling_off_hours: int = Field(default=24, ge=1, le=CENTURY_DAYS * 24)
    """Between a plan and its first deletion, by the store's clock: the time that people have to notice a plan that they did not want."""
    plan_valid_days: int = Field(default=7, ge=1, le=CENTURY_DAYS)
    """After that a plan is not carried out any more: it was made from facts that nobody remembers."""
    quarantined_days: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)
    """Age from which a quarantined checkpoint may go; never without it, because it is evidence."""
    orphan_days: int | None = Field(default=30, ge=1, le=CENTURY_DAYS)
    """Age from which the orphans of a closed epoch may go: until then the old primary may be asked what it did."""
    unfinished_days: int = Field(default=7, ge=1, le=CENTURY_DAYS)
    """Age from which a sealing that nobody committed may go: a sync that is still at work is younger."""
    max_deletions: int = Field(default=500, ge=1)
    """Copies that one plan may delete. A mistake in the rules then shows while most copies are still there."""
    lease_minutes: int = Field(default=15, ge=2, le=1440)
    """How long the deletions of a run are one process's alone; extended while it works. Another one waits so long after a crash."""
    local_clock: bool = False
    """Let this host's clock decide where no store has one of its own (folders on local disks). Whoever sets that clock can then make a plan
    cool off at once."""

    @field_validator("min_level")
    @classmethod
    def _a_level(cls, text: str) -> str:
        level = Level.parse(text)
        if level < Level.L2:
            raise ValueError("below L2 nobody has read the copy")
        return level.name

    @property
    def level(self) -> Level:
        return Level.parse(self.min_level)

    @property
    def detection(self) -> timedelta:
        return timedelta(days=self.detection_days)

    @property
    def cooling_off(self) -> timedelta:
        return timedelta(hours=self.cooling_off_hours)

    @property
    def plan_valid(self) -> timedelta:
        return timedelta(days=self.plan_valid_days)

    @property
    def lease(self) -> timedelta:
        return timedelta(minutes=self.lease_minutes)
