"""``seawall open``: decrypt one ``.sea`` object that lies in the file system, with a key and nothing else."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import JsonOption, RecoveryKeyOption
from seawall.cli.output import emit, say, warn
from seawall.cli.restore import write_stream
from seawall.errors import CorruptError, KeyMissingError, UsageError

if TYPE_CHECKING:
    from seawall.vault.recipients import Unwrapper


def open_object(
    path: Annotated[Path, typer.Argument(help="The .sea file.")],
    target: Annotated[Path, typer.Argument(help="A path that does not exist, or '-' for standard output.")],
    keys: Annotated[Path | None, typer.Option("--keys", help="The sealing's keys-<n>.json; looked for beside the object.")] = None,
    keyring: Annotated[Path | None, typer.Option("--keyring", help="Keyring file.")] = None,
    recovery_key: RecoveryKeyOption = None,
    json: JsonOption = False,
) -> int:
    """Decrypt one object. Its signature is not checked, because nothing says here whose it should be: restore does that."""
    from seawall.vault.keyring import Keyring
    from seawall.vault.open import Opener, read_frame
    from seawall.vault.recipients import RecoveryKey, read_key_file

    unwrappers: list[Unwrapper] = list(Keyring.load(keyring).keys) if keyring else []
    if recovery_key is not None:
        try:
            unwrappers.append(RecoveryKey.from_text(read_key_file(recovery_key)))
        except OSError as error:
            raise KeyMissingError("the recovery key is not there", where=str(recovery_key), why=error.strerror or "") from error
    if not unwrappers:
        raise UsageError("a key is needed", do="give --keyring or --recovery-key")
    found = [keys] if keys else sorted(path.parent.glob("keys-*.json"), reverse=True)
    if not found:
        raise UsageError("the sealing's wrapped keys are not beside the object", where=str(path.parent), do="name them with --keys")
    try:
        documents = [(str(name), name.read_bytes()) for name in found]
        source = path.open("rb")
    except OSError as error:
        raise UsageError("a file cannot be read", where=str(error.filename), why=error.strerror or "") from error
    with source:
        length = source.seek(0, 2)

        def read(start: int, nbytes: int) -> bytes:
            source.seek(start)
            return source.read(nbytes)

        def read_into(start: int, buffer: memoryview) -> int:
            source.seek(start)
            return source.readinto(buffer)

        frame = read_frame(read, length, None, str(path))
        opener = Opener(frame, _data_key(documents, unwrappers))

        def chunks() -> Iterator[bytes]:
            digest = sha256()
            for chunk in opener.read_range(0, opener.footer.length, read_into):
                digest.update(chunk)
                yield chunk
            if digest.digest() != opener.footer.digest:
                raise CorruptError("the plaintext is not the one that was sealed", where=str(path))

        nbytes = write_stream(chunks(), target)
    name = os.fsdecode(opener.footer.name)
    warn("the signature was not checked")
    if json and str(target) != "-":
        emit({"object": str(path), "name": name, "plaintext_bytes": str(nbytes), "path": str(target), "signature": "not checked"})
    elif str(target) != "-":
        say(f"{name or path.name}: {nbytes} bytes in {target}")
    return 0


def _data_key(documents: list[tuple[str, bytes]], unwrappers: "list[Unwrapper]") -> bytes:
    from seawall.vault.wraps import read_unsigned

    problem: KeyMissingError | None = None
    for name, raw in documents:
        try:
            return read_unsigned(raw, name).unwrap(unwrappers)
        except KeyMissingError as error:
            problem = error
    assert problem is not None
    raise problem
