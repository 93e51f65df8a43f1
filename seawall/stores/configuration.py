"""The ``[stores.<name>]`` tables of seawall.toml."""

import re
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class StoreSettings(BaseModel):
    """One place for copies."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    """``file:///absolute/path`` or ``s3://bucket/prefix``."""
    zone: str = ""
    """The zone that training in the same place has; copies in other zones are off site."""
    medium: str = "disk"
    fault_domain: str = ""
    """Two stores with the same one can be lost by one event: account, region, building, tape set."""
    endpoint: str | None = None
    """For S3 servers other than AWS."""
    region: str | None = None
    profile: str | None = None
    retrieval_minutes: int = Field(default=0, ge=0)
    """How long an object takes to become readable once it was asked for: 300 for a standard retrieval from S3 Glacier Flexible Retrieval,
    720 from Deep Archive (docs.aws.amazon.com, "Archive retrieval options"); 0 where it is readable at once."""
    lock_days: int | None = Field(default=None, ge=1)
    """For how long a committed copy is locked against deletion, by anybody; extended while it is kept. Needs a bucket with object lock."""
    upload_lock_hours: int = Field(default=24, ge=1)
    """With ``lock_days``: for how long an object is locked as it arrives, until the copy is committed."""
    aws_conn_id: str | None = None
    """Inside Airflow: the Amazon connection with the credentials. Outside it the usual AWS settings count."""

    @field_validator("url")
    @classmethod
    def _known_scheme(cls, url: str) -> str:
        if "\0" in unquote(url):
            raise ValueError(f"{url!r} has a NUL in it, which no path has")
        parts = urlsplit(url)
        if parts.scheme not in ("file", "s3"):
            raise ValueError(f"{url!r} names no store: write file:///absolute/path or s3://bucket/prefix")
        if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
            raise ValueError(f"{url!r} is no absolute path: write file:///absolute/path")
        if parts.username or parts.password or parts.query:
            raise ValueError(f"{url!r} holds more than a place: credentials come from the usual AWS settings")
        return url


def checked_store_name(name: str) -> str:
    """``name`` itself, or ``ValueError``."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no store name: lower-case letters, digits, '-' and '_', at most 32")
    return name


class CoordinationSettings(BaseModel):
    """``[coordination]``: the store whose log is the authority. In production outside both training zones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: str


class TransferSettings(BaseModel):
    """``[transfer]``: how much at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transfers: int = Field(default=16, ge=1, le=256)
    bandwidth_bits_per_second: int | None = Field(default=None, ge=1)
    """For each store, up and down each by itself, over all workers together."""
    workers: int = Field(default=1, ge=1, le=10_000)
    """How many tasks of Airflow may move bytes at once: the slots of the pool that they run in. Each takes its share of the bandwidth."""

    @property
    def share_bits_per_second(self) -> int | None:
        """What one of the workers may take."""
        return None if self.bandwidth_bits_per_second is None else max(1, self.bandwidth_bits_per_second // self.workers)
