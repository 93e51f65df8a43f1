"""Make sure that a finished upload won, on servers that may let two uploads of one key finish."""

from typing import Any

from seawall.errors import ObjectExistsError, StoreAmbiguousError, StoreUnavailableError
from seawall.stores.base import Stored
from seawall.stores.s3_control import call
from seawall.stores.s3_facts import stored, version_of
from seawall.stores.s3_session import S3Session
from seawall.stores.s3_wire import S3Wire

_PATIENCE_SECONDS = 5.0
"""A server is done with a completion within moments. An upload of the same key that is listed longer was left behind by a kill."""
_POLL_SECONDS = 0.1


def confirm_finish(wire: S3Wire, session: S3Session, name: dict[str, Any], where: str, mine: Stored) -> Stored:
    """``mine`` if the object is still the one that was just finished; else ``ObjectExistsError``, as if the other had come first.

    A rival that passed the server's look at the key before our object was there still has its upload listed until its object is
    written; one that comes to that look later is refused. So once no other upload of the key is listed, nobody can overwrite the
    object any more, and its version tells whose it is.
    """
    clock = session.clock
    try:
        deadline = clock.monotonic() + _PATIENCE_SECONDS
        while _has_rivals(wire, name, where) and clock.monotonic() < deadline:
            clock.sleep(_POLL_SECONDS)
        head = wire.request("head_object", name, "read", where, {}, needs="content-length")
    except StoreUnavailableError as error:
        raise StoreAmbiguousError(
            "the upload is finished, and whether another one overwrote it is not known",
            where=where,
            why=str(error),
            do="read the key and compare",
        ) from error
    if version_of(head.headers) != mine.version:
        there = stored(mine.key, int(head.headers.get("content-length", "0")), head.headers, trust_crc=False)
        raise ObjectExistsError(
            "another upload of this key won",
            where=where,
            why=f"version {there.version} is there, not {mine.version}",
            do="read it and compare",
        )
    return mine


def _has_rivals(wire: S3Wire, name: dict[str, Any], where: str) -> bool:
    page = call(wire, "list_multipart_uploads", "read", where, {"Bucket": name["Bucket"], "Prefix": name["Key"]})
    return any(found["Key"] == name["Key"] for found in page.get("Uploads", []))
