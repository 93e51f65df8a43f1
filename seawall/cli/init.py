"""``seawall init``: keys, trust list and configuration of a new site, and the ids of its stores."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seawall.cli.options import JsonOption
from seawall.cli.output import emit, say, warn
from seawall.clock import SystemClock
from seawall.errors import ConfigurationError, CorruptError, ObjectExistsError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site

_KEYS = "keys"


def init(
    store: Annotated[
        list[str] | None,
        typer.Option("--store", help="NAME=URL of a place for copies; give it for each. The last is the coordination store."),
    ] = None,
    endpoint: Annotated[
        list[str] | None, typer.Option("--endpoint", help="NAME=URL of the S3 server of a store, where it is not AWS.")
    ] = None,
    coordination: Annotated[str | None, typer.Option("--coordination", help="Name of the store whose log is the authority.")] = None,
    folder: Annotated[Path, typer.Option("--folder", help="Where seawall.toml and keys/ are written.")] = Path("."),
    airflow: Annotated[
        Path | None, typer.Option("--airflow", help="The dags_folder of an Airflow: write the DAG files there. Needs no --store.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Make keys and seawall.toml in a folder, and prepare its stores. Running it again only prepares the stores."""
    from seawall.cli.config import FILE_NAME
    from seawall.cli.site import Site

    if airflow is not None and not store:
        return _dag_files(airflow, json)
    path = folder.absolute() / FILE_NAME
    fresh = not path.exists()
    if fresh:
        if not store:
            raise UsageError("a new site needs a place for copies", do="give --store NAME=URL for each")
        stores = _pairs(store, "--store")
        endpoints = _pairs(endpoint or [], "--endpoint")
        coordinator = coordination or list(stores)[-1]
        if coordinator not in stores or not endpoints.keys() <= stores.keys():
            raise UsageError("an option names a store that no --store has", why=f"stores: {', '.join(stores)}")
        _make_site(path, stores, endpoints, coordinator)
    site = Site(path, create_stores=True)
    prepared = _prepare_stores(site)
    site.close()
    keys = path.parent / _KEYS
    if airflow is not None:
        _dag_files(airflow, json=False, quiet=json)
    if json:
        emit({"config": str(path), "created": fresh, "trust_root": site.config.trust_root, "stores": prepared, "keys": str(keys)})
        return 0
    say(f"{'wrote' if fresh else 'kept'} {path}")
    for name, store_id in prepared.items():
        say(f"  store {name}: {site.config.stores[name].url} is {store_id}")
    say(f"  trust root {site.config.trust_root}: write it down where no store is")
    if fresh:
        say(f"Move {keys / 'root.key'} and {keys / 'recovery.key'} off this host now: a safe, two places. Daily work needs neither.")
    return 0


def _dag_files(folder: Path, json: bool, quiet: bool = False) -> int:
    from seawall.cli.airflow import write_dags

    done = write_dags(folder)
    if json:
        emit({"folder": str(folder.absolute()), "written": done.written, "unchanged": done.unchanged, "kept": done.kept})
    elif not quiet:
        say(f"{folder}: wrote {', '.join(done.written) or 'no DAG file'}")
    for name in done.kept:
        warn(f"{folder / name} is another file and was kept; move it away to get the one of this release")
    return 0


def _pairs(options: list[str], name: str) -> dict[str, str]:
    pairs = {}
    for option in options:
        key, separator, value = option.partition("=")
        if not separator or not key or not value or key in pairs:
            raise UsageError(f"{name} wants NAME=URL, each name once", where=option)
        pairs[key] = value
    return pairs


def _make_site(path: Path, stores: dict[str, str], endpoints: dict[str, str], coordinator: str) -> None:
    """Keys first, in a folder that appears whole; then the configuration, checked before it gets its name."""
    import shutil
    import tempfile

    from seawall.cli.config import load_config
    from seawall.vault.keyring import Keyring
    from seawall.vault.recipients import RecoveryKey
    from seawall.vault.signing import ROLES, ROOT, SigningKey
    from seawall.vault.trust import first_list, sign_list

    folder = path.parent
    if (folder / _KEYS).exists():
        raise ConfigurationError(
            "there is a keys folder and no configuration", where=str(folder / _KEYS), do="move it away if it is of an init that was stopped"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".seawall-init-", dir=folder))
    except OSError as error:
        raise UsageError("nothing can be written there", where=str(folder), why=error.strerror or "") from error
    try:
        keys = staging / _KEYS
        keys.mkdir(mode=0o700)
        root = SigningKey.generate(ROOT)
        root.save(keys / "root.key")
        role_keys = [SigningKey.generate(role) for role in ROLES]
        for key in role_keys:
            key.save(keys / f"{key.role}.key")
        Keyring.generate().create(keys / "keyring.json")
        recovery = RecoveryKey.generate()
        _write_private(keys / "recovery.key", recovery.text() + "\n")
        (keys / "recovery.pub").write_text(recovery.public.text() + "\n")
        (keys / "trust-1.json").write_bytes(sign_list(first_list(role_keys, SystemClock()), root))
        (staging / path.name).write_text(_toml(root.public.text(), stores, endpoints, coordinator))
        load_config(staging / path.name)
        os.rename(keys, folder / _KEYS)
        os.rename(staging / path.name, path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def toml_string(text: str) -> str:
    """A TOML basic string (TOML 1.0 section "String")."""
    import json

    return json.dumps(text, ensure_ascii=True).replace("\\u007f", "\\u007F")


def _toml(trust_root: str, stores: dict[str, str], endpoints: dict[str, str], coordinator: str) -> str:
    lines = [f"trust_root = {toml_string(trust_root)}", ""]
    for number, (name, url) in enumerate(stores.items()):
        medium = "s3" if url.startswith("s3:") else "disk"
        lines += [f"[stores.{name}]", f"url = {toml_string(url)}"]
        if name in endpoints:
            lines.append(f"endpoint = {toml_string(endpoints[name])}")
        lines += [f'zone = "{name}"; medium = "{medium}"; fault_domain = "{name}-{number}"'.replace("; ", "\n"), ""]
    lines += ["[coordination]", f"store = {toml_string(coordinator)}", ""]
    lines += ["[keys.keyring]", f'path = "{_KEYS}/keyring.json"', "", "[keys.recovery]", f'public = "{_KEYS}/recovery.pub"', ""]
    lines += ["[keys.signing]"]
    lines += [f'{role} = "{_KEYS}/{role}.key"' for role in ("writer", "verifier", "operator", "coordinator")]
    lines += ["# In production no host holds a writer's and a verifier's key: keep here only those that this host needs.", ""]
    return "\n".join(lines)


def _prepare_stores(site: "Site") -> dict[str, str]:
    """Give each place an id and the trust list, if it has none."""
    from seawall.log.identity import identify
    from seawall.vault.trust import read_list, store_key

    local = site.folder / _KEYS / "trust-1.json"
    prepared = {}
    for name in site.config.stores:
        store = site.store(name)
        prepared[name] = identify(store, create=True)
        if not local.exists():
            continue
        raw = local.read_bytes()
        try:
            store.put(store_key(1), raw)
        except ObjectExistsError:
            found = store.get(store_key(1))
            try:
                read_list(found, site.trust_root, where=f"{store.url}/{store_key(1)}")
            except CorruptError as error:
                raise ConfigurationError("the store holds a damaged trust list", where=store.url, why=str(error)) from error
    return prepared
