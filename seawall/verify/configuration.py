"""The ``[verify]`` table of seawall.toml: after how long a proof lapses."""

from pydantic import BaseModel, ConfigDict, Field

from seawall.verify.levels import DEFAULT_MAX_AGE_DAYS, AgePolicy, Level

_DEFAULT = {level.name: days for level, days in DEFAULT_MAX_AGE_DAYS.items()}


class MaxAgeDays(BaseModel):
    """``[verify.max_age_days]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    L0: int = Field(default=_DEFAULT["L0"], ge=1)
    L1: int = Field(default=_DEFAULT["L1"], ge=1)
    L2: int = Field(default=_DEFAULT["L2"], ge=1)
    L3: int = Field(default=_DEFAULT["L3"], ge=1)
    L4: int = Field(default=_DEFAULT["L4"], ge=1)
    L5: int = Field(default=_DEFAULT["L5"], ge=1)


class VerifySettings(BaseModel):
    """``[verify]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_age_days: MaxAgeDays = MaxAgeDays()
    scratch: str | None = None
    """Folder with room for a whole checkpoint, for L4; the system's temporary folder without it."""

    def policy(self) -> AgePolicy:
        return AgePolicy({level: getattr(self.max_age_days, level.name) for level in Level})
