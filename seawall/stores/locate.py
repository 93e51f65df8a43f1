"""From a url to a store that is ready to use."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from seawall.clock import Clock, SystemClock
from seawall.errors import UsageError
from seawall.stores.base import Capabilities, Store

if TYPE_CHECKING:
    from seawall.stores.s3_signing import AwsKeys

SCHEMES = ("file", "s3")


def open_store(
    url: str,
    *,
    create: bool = False,
    endpoint: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    keys: "Callable[[], AwsKeys] | None" = None,
    transfers: int = 16,
    bandwidth_bits_per_second: int | None = None,
    capabilities: Capabilities | None = None,
    on_request: Callable[[str], None] | None = None,
    clock: Clock | None = None,
) -> Store:
    """The store behind ``file:///abs/path`` or ``s3://bucket/prefix``, with retries and, if wanted, a bandwidth limit.

    ``create`` makes the folder of a file store; without it a missing folder is refused. Everything from ``endpoint`` to ``keys``,
    ``capabilities`` (known ones, which saves the probe) and ``on_request`` (hears the name of every HTTP request) concerns S3 only.
    Nothing is sent before the first call. Raises ``UsageError`` for a url that names no store.
    """
    store: Store
    scheme = urlsplit(url).scheme
    if scheme == "file":
        from seawall.stores.file import FileStore

        store = FileStore(url, create=create)
    elif scheme == "s3":
        from seawall.stores.s3 import S3Store

        store = S3Store(
            url,
            endpoint=endpoint,
            region=region,
            profile=profile,
            keys=keys,
            transfers=transfers,
            capabilities=capabilities,
            on_request=on_request,
            clock=clock,
        )
    else:
        raise UsageError(
            "this url names no store",
            where=url,
            why=f"the scheme is {scheme or 'missing'}",
            do="write file:///absolute/path or s3://bucket/prefix",
        )
    if bandwidth_bits_per_second is not None:
        from seawall.stores.throttle import ThrottleStore

        store = ThrottleStore(store, bandwidth_bits_per_second, clock or SystemClock())
    from seawall.stores.retry import RetryStore

    return RetryStore(store)
