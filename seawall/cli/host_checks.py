"""`seawall doctor`: this host, that is its configuration and its keys. Nothing is asked of any store."""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.cli.checks import Check, bad, doubtful, failure, good
from seawall.errors import ConfigurationError, SeawallError

if TYPE_CHECKING:
    from seawall.cli.site import Site

_OFFLINE = ("root.key", "recovery.key")
"""What `seawall init` writes and daily work never needs."""


def host_checks(site: "Site") -> Iterator[Check]:
    """Configuration and keys, in the order in which a person would mend them."""
    yield _configuration(site)
    yield _keyring(site)
    yield _recovery(site)
    yield from _signing(site)
    yield _offline_keys(site)


def _configuration(site: "Site") -> Check:
    if site.path.stat().st_mode & stat.S_IWOTH:
        text = f"{site.path} can be written by every user: whoever does so names the trust root"
        return doubtful("configuration", "", text, f"chmod o-w {site.path}")
    stores, runs = len(site.config.stores), len(site.config.runs)
    return good("configuration", "", f"{site.path}: {stores} stores, {runs} runs")


def _keyring(site: "Site") -> Check:
    from seawall.vault.keyring import Keyring

    if site.config.keys.keyring is None:
        return good("keyring", "", "none on this host, by its configuration: it can prove copies up to L2 and open none")
    path = site.resolve(site.config.keys.keyring.path)
    try:
        keyring = Keyring.load(path)
    except SeawallError as error:
        return failure("keyring", "", error)
    return good("keyring", "", f"{path}: {len(keyring.keys)} keys, new sealings are for {keyring.current.id}")


def _recovery(site: "Site") -> Check:
    from seawall.vault.recipients import RecoveryPublicKey, read_key_file

    if site.config.keys.recovery is None:
        if not site.has_signing_key("writer"):
            return good("recovery key", "", "its public half is not needed here: this host does not write")
        return doubtful(
            "recovery key",
            "",
            "what is sealed here opens with the keyring only",
            "add [keys.recovery] with the public half of an offline key",
        )
    path = site.resolve(site.config.keys.recovery.public)
    try:
        return good("recovery key", "", f"sealings are for {RecoveryPublicKey.from_text(read_key_file(path)).id} too")
    except SeawallError as error:
        return failure("recovery key", "", error)
    except OSError as error:
        return bad("recovery key", "", f"{path}: {error.strerror}", "put the public half there, from the first host", ConfigurationError)


def _signing(site: "Site") -> Iterator[Check]:
    from seawall.vault.signing import ROLES

    for role in ROLES:
        if not site.has_signing_key(role):
            continue
        try:
            yield good("signing key", role, site.signing_key(role).key_id)
        except SeawallError as error:
            yield failure("signing key", role, error)
    if site.has_signing_key("writer") and site.has_signing_key("verifier"):
        yield doubtful(
            "separation",
            "",
            "this host holds a writer's and a verifier's key: who breaks into it can write and certify",
            "in production verify from another host, and take the verifier's key off this one",
        )


def _offline_keys(site: "Site") -> Check:
    """The secret halves that `seawall init` asked to move away."""
    keys = site.config.keys
    named = [keys.keyring.path if keys.keyring else None, keys.recovery.public if keys.recovery else None]
    named += [keys.signing.writer, keys.signing.verifier, keys.signing.operator, keys.signing.coordinator]
    folders = {site.folder / "keys", *(site.resolve(path).parent for path in named if path is not None)}
    found: list[Path] = [folder / name for folder in sorted(folders) for name in _OFFLINE if (folder / name).exists()]
    if not found:
        return good("offline keys", "", "neither root.key nor recovery.key lies beside the keys of this host")
    names = ", ".join(str(path) for path in found)
    return doubtful("offline keys", "", f"still here: {names}", "move them to a safe, in two places; daily work needs neither")
