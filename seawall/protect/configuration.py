"""The ``[runs.<name>]`` tables of seawall.toml: where a run's checkpoints are, and what is asked of their copies."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from seawall.verify.levels import Level

DEFAULT_EXCLUDE = ("*.log", "*.tmp")


class RunSettings(BaseModel):
    """One training run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paths: dict[str, str] = Field(default_factory=dict)
    """Zone → folder that training writes checkpoints to."""
    primary_zone: str = ""
    """Where the run trains now; may be left out when there is one path."""
    layout: str = "auto"
    commit_mark: str = "_COMMITTED"
    """The file that says a save is finished, for layouts that have none of their own."""
    copies: tuple[str, ...]
    """Stores that get a copy; the first must take it before a checkpoint is committed."""
    archive: str = ""
    """One of ``copies`` that `seawall archive` fills with the newest proved checkpoint, once a day, and a sync does not."""
    rto_minutes: int | None = Field(default=None, ge=1)
    """Within which a restore is to be under way; refused when no store of the run can hand out a copy so soon."""
    rpo_minutes: int = Field(default=60, ge=1)
    required_level: str = "L3"
    """What a copy must be proved to before it counts as a recovery point."""
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    codec: Literal["none", "zstd", "fast", "balanced", "small"] = "fast"
    """``fast``, ``balanced`` and ``small`` are byte planes; ``none`` is for links that are faster than a codec."""
    batch_bytes: int = Field(default=64 << 30, ge=1 << 20)
    """Bytes of plaintext that one task seals; 64 GiB take under half an hour at 300 Mbit/s."""

    @field_validator("required_level")
    @classmethod
    def _a_level(cls, text: str) -> str:
        return Level.parse(text).name

    @field_validator("copies")
    @classmethod
    def _some_copies(cls, copies: tuple[str, ...]) -> tuple[str, ...]:
        if not copies or len(set(copies)) != len(copies):
            raise ValueError("copies names at least one store, each once")
        return copies

    @model_validator(mode="after")
    def _an_archive_apart(self) -> Self:
        if self.archive and (self.archive not in self.copies[1:]):
            raise ValueError("archive is one of copies, and not the first, which a sync must fill")
        return self

    @property
    def training_zone(self) -> str:
        """Where the run trains now: the primary zone, or that of the only path; empty where neither tells."""
        return self.primary_zone or (next(iter(self.paths)) if len(self.paths) == 1 else "")

    @property
    def synced(self) -> tuple[str, ...]:
        """Stores that a sync fills."""
        return tuple(name for name in self.copies if name != self.archive)
