"""The ``[verify]`` table of seawall.toml: after how long a proof lapses, and what the integrity matrix takes for odd."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from seawall.clock import CENTURY_DAYS
from seawall.verify.levels import DEFAULT_MAX_AGE_DAYS, AgePolicy, Level

_DEFAULT = {level.name: days for level, days in DEFAULT_MAX_AGE_DAYS.items()}


class MaxAgeDays(BaseModel):
    """``[verify.max_age_days]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    L0: int = Field(default=_DEFAULT["L0"], ge=1, le=CENTURY_DAYS)
    L1: int = Field(default=_DEFAULT["L1"], ge=1, le=CENTURY_DAYS)
    L2: int = Field(default=_DEFAULT["L2"], ge=1, le=CENTURY_DAYS)
    L3: int = Field(default=_DEFAULT["L3"], ge=1, le=CENTURY_DAYS)
    L4: int = Field(default=_DEFAULT["L4"], ge=1, le=CENTURY_DAYS)
    L5: int = Field(default=_DEFAULT["L5"], ge=1, le=CENTURY_DAYS)


class MediumAgeDays(BaseModel):
    """``[verify.max_age_days_of.<medium>]``: the levels for which a medium differs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    L0: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)
    L1: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)
    L2: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)
    L3: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)
    L4: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)
    L5: int | None = Field(default=None, ge=1, le=CENTURY_DAYS)


class MatrixSettings(BaseModel):
    """``[verify.matrix]``: from where on a cell of the integrity matrix is not ok. Each is a safety parameter.

    That every stored byte must match (100 %), and that a sealing must match its own inventory exactly, are no parameters.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    structure_share: float = Field(default=0.001, ge=0, le=1)
    """Share of the state dict's keys that may differ between consecutive checkpoints of a run. One key in a thousand: a counter or a buffer
    may come or go, a missing layer or rank is more than that."""
    late_minutes: int = Field(default=30, ge=1, le=CENTURY_DAYS * 1440)
    """How far a copy, or the newest checkpoint, may be behind. What is lost with the primary zone is what is behind; thirty minutes fit
    between two checkpoints of most runs."""
    zero_share_jump: float = Field(default=0.05, ge=0, le=1)
    """By how much the share of zeros among all floating-point values may rise from one checkpoint to the next. One rank of 16 that saved
    zeros moves it by 0.0625; training moves it by much less."""
    saturated_share_jump: float = Field(default=0.0001, ge=0, le=1)
    """By how much the share of values at the largest finite magnitude of their type may rise: 65504 in half precision is where overflow
    begins, and weights that are healthy do not lie there."""
    live_wraps: int = Field(default=1, ge=1)
    """How many keys that exist must open a sealing. Two, one of them off line, survive the loss of a key store."""


class VerifySettings(BaseModel):
    """``[verify]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_age_days: MaxAgeDays = MaxAgeDays()
    max_age_days_of: dict[str, MediumAgeDays] = Field(default_factory=dict)
    """For media that are read back at another rhythm, by the ``medium`` of a store."""
    matrix: MatrixSettings = MatrixSettings()
    scratch: str | None = None
    """Folder with room for a whole checkpoint, for L4; the system's temporary folder without it."""

    def policy(self, media: Mapping[str, str] | None = None) -> AgePolicy:
        """``media`` has the medium of each store by its id. A store that it lacks is judged by the strictest of all tables."""
        per_medium = {
            medium: {level: days for level in Level if (days := getattr(table, level.name)) is not None}
            for medium, table in self.max_age_days_of.items()
        }
        return AgePolicy({level: getattr(self.max_age_days, level.name) for level in Level}, per_medium, media or {})
