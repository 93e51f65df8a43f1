"""seawall.toml: one strict file, composed of the tables that each room owns. Unknown keys are errors."""

import os
import tomllib
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from seawall.alerts.configuration import AlertSettings
from seawall.errors import ConfigurationError
from seawall.protect.configuration import RunSettings
from seawall.protect.retention_settings import RetentionSettings
from seawall.stores.configuration import CoordinationSettings, StoreSettings, TransferSettings, checked_store_name
from seawall.vault.configuration import KeySettings
from seawall.vault.identity import checked_run
from seawall.verify.configuration import VerifySettings

FILE_NAME = "seawall.toml"
VARIABLE = "SEAWALL_CONFIG"


class Configuration(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trust_root: str
    """``ed25519:<hex>``, given out of band."""
    state: str = ".state/seawall"
    """Folder for this host's caches and freshness floor."""
    stores: dict[str, StoreSettings]
    coordination: CoordinationSettings
    runs: dict[str, RunSettings] = Field(default_factory=dict)
    keys: KeySettings = KeySettings()
    verify: VerifySettings = VerifySettings()
    transfer: TransferSettings = TransferSettings()
    alerts: AlertSettings = AlertSettings()
    retention: RetentionSettings = RetentionSettings()

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        for name in self.stores:
            checked_store_name(name)
        if self.coordination.store not in self.stores:
            raise ValueError(f"[coordination] names store {self.coordination.store!r}, which [stores] does not have")
        for run, settings in self.runs.items():
            checked_run(run)
            unknown = [name for name in settings.copies if name not in self.stores]
            if unknown:
                raise ValueError(f"[runs.{run}] copies names stores that [stores] does not have: {', '.join(unknown)}")
            if settings.primary_zone and settings.primary_zone not in settings.paths:
                raise ValueError(f"[runs.{run}] has no path for its primary zone {settings.primary_zone!r}")
            soonest = min(self.stores[name].retrieval_minutes for name in settings.copies)
            if settings.rto_minutes is not None and soonest >= settings.rto_minutes:
                raise ValueError(
                    f"[runs.{run}] rto_minutes is {settings.rto_minutes}, and no store of the run "
                    f"hands out a copy in less than {soonest} minutes"
                )
        return self


def find_config(given: Path | None) -> Path:
    """The file that was named, else ``$SEAWALL_CONFIG``, else ``seawall.toml`` here."""
    path = given or Path(os.environ.get(VARIABLE) or FILE_NAME)
    if not path.is_file():
        raise ConfigurationError(
            "there is no configuration", where=str(path), do="run `seawall init`, or name the file with --config or $SEAWALL_CONFIG"
        )
    return path.absolute()


def load_config(path: Path) -> Configuration:
    """Read and check the file; :class:`ConfigurationError` names every key that cannot be meant."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError("the configuration cannot be read", where=str(path), why=str(error)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(
            "the configuration is no TOML", where=str(path), why=str(error), do="mend the line that is named"
        ) from error
    try:
        return Configuration.model_validate(document)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(str(part) for part in item['loc']) or 'file'}: {item['msg']}" for item in error.errors())
        raise ConfigurationError(
            "the configuration says something that cannot be meant",
            where=str(path),
            why=problems,
            do="docs/configuration.md lists every key",
        ) from None
