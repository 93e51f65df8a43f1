"""Objects of a bucket in key order, also from servers that list in another.

S3 lists by the UTF-8 bytes of the whole key. SeaweedFS lists folder by folder, so that ``a/b`` comes before ``a-b``, and
``StartAfter=a-b`` then leaves ``a/b`` out. Where S3's order is not promised, each folder is listed by itself and sorted here, with no
more in memory than the entries of the folders on the current path.
"""

from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

from seawall.stores.base import Stored

PROBES = ".seawall-probe/"
"""Where s3_probe.py puts what it removes again; never listed."""
Pages = Callable[[dict[str, Any]], Iterator[dict[str, Any]]]
"""Pages of ListObjectsV2 for these parameters."""


def list_flat(pages: Pages, prefix: str, after: str) -> Iterator[Stored]:
    """Objects of full keys that begin with ``prefix`` and come after ``after``, in the order of the server."""
    for page in pages({"Prefix": prefix, **({"StartAfter": after} if after else {})}):
        yield from _objects(page)


def list_by_folder(pages: Pages, prefix: str, after: str) -> Iterator[Stored]:
    """The same in key order, whatever the order of the server."""
    base = prefix[: prefix.rfind("/") + 1]
    marker = ""
    if after.startswith(base):
        marker = start_marker(base, after)
    elif after > base:
        return
    entries: list[tuple[str, Stored | None]] = []
    for page in pages({"Prefix": prefix, "Delimiter": "/", **({"StartAfter": marker} if marker else {})}):
        entries += [(found.key, found) for found in _objects(page) if found.key > after]
        entries += [(found["Prefix"], None) for found in page.get("CommonPrefixes", [])]
    entries.sort(key=lambda entry: entry[0])
    for key, found in entries:
        if found is not None:
            yield found
        elif key > after or after.startswith(key):
            yield from list_by_folder(pages, key, after)


def start_marker(base: str, after: str) -> str:
    """Where the listing of folder ``base`` may begin so that nothing greater than ``after`` is left out, in either order.

    The two orders differ only for a folder whose name is followed, in ``after``, by a character not greater than ``/``. One
    character less than that name comes before the folder in both.
    """
    rest = after[len(base) :]
    border = next((at for at, character in enumerate(rest) if character <= "/"), len(rest))
    return base + rest[: border - 1] if border > 1 else ""


def _objects(page: dict[str, Any]) -> Iterator[Stored]:
    for found in page.get("Contents", []):
        # Consoles and some servers keep "folders" as empty objects; they are no keys of ours.
        if not found["Key"].endswith("/"):
            yield Stored(found["Key"], int(found["Size"]), modified=found["LastModified"].astimezone(UTC))
