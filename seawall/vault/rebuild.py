"""Rebuilding the files of a sealing in a folder. A file has its name only once the digest of its plaintext agreed."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from seawall.errors import CorruptError, NoSuchObjectError, SeawallError, TrustError
from seawall.stores.part_buffers import PartBuffers
from seawall.vault.drivers import drivers_here
from seawall.vault.inventory import Inventory, InventoryFile
from seawall.vault.names import posix_bytes, stays_inside
from seawall.vault.plaintext import plaintext_of
from seawall.vault.planes import Earlier
from seawall.vault.sealing import Sealing

BUFFER_BYTES = 9 << 20
"""For each transfer: a record of 8 MiB and some room."""

Progress = Callable[[int, int], None]
Observe = Callable[[int, int, memoryview], None]
"""Called with a file's number, an offset and the plaintext there, in order within each file."""


def rebuild_files(
    sealing: Sealing,
    inventory: Inventory,
    numbers: Sequence[int],
    data_key: bytes,
    tree: Path | None,
    *,
    transfers: int = 16,
    progress: Progress = lambda nbytes, files: None,
    observe: Observe | None = None,
    check_leaves: bool = False,
) -> None:
    """Rebuild the files of these numbers below ``tree``, or with None only read and verify them. With ``check_leaves`` every stored byte
    is held against its signed digest on the way.

    Raises :class:`CorruptError` with the file's name when a copy is damaged; files that were finished stay.
    """
    if tree is not None:
        _make_folders(tree, inventory)
    with ThreadPoolExecutor(transfers, "receiver") as pool, ThreadPoolExecutor(min(drivers_here(), transfers), "driver") as drivers:
        buffers = PartBuffers(transfers * BUFFER_BYTES)
        suffix = _free_suffix(inventory)

        def one(number: int) -> None:
            _rebuild_file(sealing, inventory, number, data_key, tree, suffix, pool, buffers, progress, observe, check_leaves)

        futures = [drivers.submit(one, number) for number in numbers]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _rebuild_file(
    sealing: Sealing,
    inventory: Inventory,
    number: int,
    data_key: bytes,
    tree: Path | None,
    suffix: str,
    pool: ThreadPoolExecutor,
    buffers: PartBuffers,
    progress: Progress,
    observe: Observe | None,
    check_leaves: bool,
) -> None:
    file = inventory.files[number]
    digest, at = sha256(), 0
    descriptor, path, fresh = None, None, None
    if tree is not None:
        path = tree / file.name
        fresh = path.with_name(f".{number}{suffix}")
        descriptor = _create(fresh, file.name)
    # What was written comes back from the page cache; without a file it is read from the store again.
    earlier = None if descriptor is None else _reads_back(descriptor, file.name)
    try:
        with _naming(file.name):
            for chunk in plaintext_of(sealing, inventory, number, data_key, pool, buffers, earlier, check_leaves):
                digest.update(chunk)
                if observe is not None:
                    observe(number, at, memoryview(chunk))
                if descriptor is not None:
                    _write(descriptor, memoryview(chunk), file.name)
                at += len(chunk)
                progress(len(chunk), 0)
        if digest.digest() != file.plaintext_digest:
            raise CorruptError("the plaintext is not the one that was sealed", where=file.name, do="use another copy")
        if descriptor is not None:
            os.fchmod(descriptor, file.mode & 0o777)
            os.utime(descriptor, ns=(mtime_ns(file), mtime_ns(file)))
            os.fsync(descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)
    if path is not None and fresh is not None:
        with _writing(file.name):
            os.rename(fresh, path)
    progress(0, 1)


def _reads_back(descriptor: int, name: str) -> Earlier:
    """What was written to a file so far. The digest of the whole would tell if somebody changed it meanwhile."""

    def earlier(start: int, length: int) -> bytes:
        with _writing(name):
            found = os.pread(descriptor, length, start)
        if len(found) != length:
            raise SeawallError(
                "a rebuilt file cannot be read back", where=name, why=f"{len(found)} of {length} bytes", do="then run it again"
            )
        return found

    return earlier


def _free_suffix(inventory: Inventory) -> str:
    """Ending of the temporary names: nothing in the checkpoint has it, so nothing is taken for a part of another or stands in its way."""
    suffix = ".seawall-part"
    names = [*(file.name for file in inventory.files), *(folder.name for folder in inventory.folders)]
    names += [link.name for link in inventory.links]
    while any(suffix in name for name in names):
        suffix += "-"
    return suffix


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """What is wrong with a stored object, as an error that names the file that it holds too."""
    try:
        yield
    except (CorruptError, TrustError, NoSuchObjectError) as error:
        if not error.where.endswith(f" {name}"):
            error.where = f"{name}: {error.where}"
        raise


@contextmanager
def _writing(name: str) -> Iterator[None]:
    """What the file system refuses, as an error that names the file."""
    try:
        yield
    except OSError as error:
        raise SeawallError("a rebuilt file cannot be written", where=name, why=error.strerror or "", do="then run it again") from error


def _create(path: Path, name: str) -> int:
    # What is there is no link: it would be written through, to wherever it leads.
    with _writing(name):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def finish_tree(tree: Path, inventory: Inventory) -> None:
    """What comes after the files: links, modes of empty folders, the pointer. :class:`CorruptError` for a link that leaves the tree."""
    targets = {link.name: link.target for link in inventory.links}
    for link in inventory.links:
        if not stays_inside(link.name, targets):
            raise CorruptError("a link of the checkpoint leaves it", where=link.name, why=link.target)
        with _writing(link.name):
            if not (tree / link.name).is_symlink():
                (tree / link.name).symlink_to(link.target)
    for folder in inventory.folders:
        with _writing(folder.name):
            os.chmod(tree / folder.name, folder.mode & 0o777)
    if inventory.pointer is not None:
        descriptor = _create(tree / inventory.pointer.name, inventory.pointer.name)
        with os.fdopen(descriptor, "wb") as file, _writing(inventory.pointer.name):
            os.fchmod(descriptor, 0o644)
            file.write(posix_bytes(inventory.pointer.content))


def mtime_ns(file: InventoryFile) -> int:
    """When the file was last changed where it was sealed, in nanoseconds since 1970."""
    return int(file.identity.split(":", 1)[0])


def _make_folders(tree: Path, inventory: Inventory) -> None:
    folders = {folder.name for folder in inventory.folders}
    folders.update(os.path.dirname(file.name) for file in inventory.files)
    folders.update(os.path.dirname(link.name) for link in inventory.links)
    for name in folders:
        with _writing(name):
            (tree / name).mkdir(parents=True, exist_ok=True)


def _write(descriptor: int, view: memoryview, name: str) -> None:
    with _writing(name):
        while view:
            view = view[os.write(descriptor, view) :]
