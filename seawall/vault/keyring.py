"""The keyring file: wrapping keys of this host, mode 0600, newest last. Rotation appends; nothing is dropped while a sealing needs it."""

import os
import stat
from pathlib import Path

from seawall.errors import ConfigurationError, CorruptError, KeyMissingError
from seawall.vault import canonical
from seawall.vault.recipients import DATA_KEY_BYTES, KeyringKey

_MAX_FILE_BYTES = 1 << 20


def _sync_folder(folder: Path) -> None:
    """Without this a power cut may bring the old file back, when sealings are wrapped for the new key already."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Keyring:
    """The wrapping keys in one file. New wraps use the last one; any of them unwraps."""

    def __init__(self, keys: list[KeyringKey]) -> None:
        self.keys = keys

    @property
    def current(self) -> KeyringKey:
        return self.keys[-1]

    def find(self, key_id: str) -> KeyringKey | None:
        return next((key for key in self.keys if key.id == key_id), None)

    @classmethod
    def generate(cls) -> "Keyring":
        return cls([KeyringKey(os.urandom(DATA_KEY_BYTES))])

    def rotated(self) -> "Keyring":
        """The same keys with a new one at the end."""
        return Keyring([*self.keys, KeyringKey(os.urandom(DATA_KEY_BYTES))])

    def _encode(self) -> bytes:
        return canonical.encode({"format": canonical.FORMAT, "keys": [key.key.hex() for key in self.keys]})

    def create(self, path: Path) -> None:
        """Write a new file; :class:`ConfigurationError` if one is there, which is left alone."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise ConfigurationError("a keyring is there already", where=str(path), do="keep it: sealed copies need it") from None
        except OSError as problem:
            raise ConfigurationError("the keyring cannot be written", where=str(path), why=problem.strerror or "") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(self._encode())
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)

    def replace(self, path: Path) -> None:
        """Write the file anew, atomically. The caller holds every key that the old file had."""
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        # Of a process of this number that was killed here.
        fresh.unlink(missing_ok=True)
        self.create(fresh)
        os.replace(fresh, path)
        _sync_folder(path.parent)

    @classmethod
    def load(cls, path: Path) -> "Keyring":
        """Read the file; :class:`KeyMissingError` if it is absent, damaged or readable by others."""
        where = str(path)
        try:
            with path.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                raw = file.read(_MAX_FILE_BYTES + 1)
        except OSError as problem:
            raise KeyMissingError(
                "the keyring is not on this host", where=where, why=problem.strerror or "", do="see [keys.keyring] in seawall.toml"
            ) from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyMissingError(
                "the keyring is open to other users", where=where, why=f"mode {stat.S_IMODE(mode):04o}", do=f"chmod 600 {where}"
            )
        try:
            document = canonical.decode(raw.rstrip(b"\n"), where=where, max_bytes=_MAX_FILE_BYTES)
            canonical.check_format(document, where=where)
            keys = [
                KeyringKey(bytes.fromhex(canonical.hex_text(key, DATA_KEY_BYTES, where=where)))
                for key in canonical.list_field(document, "keys", where=where)
            ]
        except CorruptError as problem:
            raise KeyMissingError(
                "the keyring cannot be read", where=where, why=str(problem), do="restore the file from its backup"
            ) from None
        if not keys:
            raise KeyMissingError("the keyring is empty", where=where, do="restore the file from its backup")
        return cls(keys)
