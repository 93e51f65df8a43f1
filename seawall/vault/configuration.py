"""The ``[keys]`` tables of seawall.toml: where this host's keys lie. Secrets themselves never stand there."""

from pydantic import BaseModel, ConfigDict


class KeyringSettings(BaseModel):
    """``[keys.keyring]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str


class RecoverySettings(BaseModel):
    """``[keys.recovery]``: the public half of the offline recovery key. Its private half is on no host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    public: str
    """Path of the file with the public half."""


class SigningSettings(BaseModel):
    """``[keys.signing]``: key files of the roles that this host may have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    writer: str | None = None
    verifier: str | None = None
    operator: str | None = None
    coordinator: str | None = None


class KeySettings(BaseModel):
    """``[keys]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keyring: KeyringSettings | None = None
    recovery: RecoverySettings | None = None
    signing: SigningSettings = SigningSettings()
