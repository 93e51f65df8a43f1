"""``seawall keys trust``: which keys exist and what each may say. Changes need the root key, which daily work does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, ReasonOption
from seawall.cli.output import emit, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import BusyError, KeyMissingError, NoSuchCopyError, NoSuchObjectError, SeawallError, StoreError, TrustError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.vault.signing import PublicKey, SigningKey
    from seawall.vault.trust import TrustList

app = typer.Typer(no_args_is_help=True, help="The root-signed list of keys and roles.")

RootKeyOption = Annotated[Path, typer.Option("--root-key", help="The root key's file, brought here for this one command.")]


@app.command()
def show(config: ConfigOption = None, json: JsonOption = False) -> int:
    """Print the newest trust list, and which version each store and each run's log has."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.vault.trust import read_list

    site = Site(find_config(config))
    found = _gather(site)
    trust = read_list(found.lists[-1], site.trust_root)
    site.close()
    if json:
        keys = trust_document(trust)
        runs = {run: _version(view) for run, view in found.views.items()}
        emit({"version": trust.version, "keys": keys, "stores": found.stores, "runs": runs, "unreachable": _texts(found.problems)})
        return 0
    for line in trust_lines(trust):
        say(line)
    for name, version in found.stores.items():
        say(f"store {name}: list {version}")
    for run, view in found.views.items():
        say(f"run {run}: list {_version(view)} is in force")
    for where, error in found.problems.items():
        warn(f"{where}: {error}")
    return 0


@app.command()
def add(
    role: Annotated[str, typer.Argument(help="writer, verifier, operator or coordinator.")],
    public: Annotated[str, typer.Argument(help="The key's public half, ed25519:…, or a file that holds it.")],
    root_key: RootKeyOption,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Add a key to the trust list, in all stores and in the logs of all runs. Run again after a failure, it finishes what is left."""
    from seawall.vault.signing import ROLES

    named = next((known for known in ROLES if known == role), None)
    if named is None:
        raise UsageError("there is no such role", where=role, do=f"use one of {', '.join(ROLES)}")
    key = _public_key(public)

    def make(site: "Site", trust: "TrustList") -> "TrustList | None":
        listed = trust.keys.get(key.key_id)
        if listed is not None and listed.role == named and key.key_id not in trust.revoked:
            return None
        return trust.with_key(key, named, site.clock)

    return _change(make, root_key, config, dry_run, json, f"{role} {key.key_id} is listed")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Key id.")],
    reason: ReasonOption,
    root_key: RootKeyOption,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Revoke a key: nothing that it signs from now on counts. What the log placed before stays valid."""

    def make(_: "Site", trust: "TrustList") -> "TrustList | None":
        return None if key in trust.revoked else trust.with_revocation(key, reason)

    return _change(make, root_key, config, dry_run, json, f"{key} is revoked")


@dataclass
class _Found:
    """What stores and logs have now."""

    lists: list[bytes]
    stores: dict[str, int] = field(default_factory=dict)
    """Store → version of its newest list."""
    views: "dict[str, LogView]" = field(default_factory=dict)
    problems: dict[str, SeawallError] = field(default_factory=dict)
    """Store or run → why it was passed over."""


def _gather(site: "Site") -> _Found:
    """The lists of all stores, which must agree as far as they go, and the logs of all runs."""
    from seawall.log.trust_lists import stored_lists
    from seawall.vault.trust import read_list

    found = _Found([])
    for name in site.config.stores:
        try:
            lists = stored_lists(site.store(name), site.trust_root)
        except StoreError as error:
            if name == site.config.coordination.store:
                raise
            found.problems[f"store {name}"] = error
            continue
        found.stores[name] = len(lists)
        longer, shorter = (lists, found.lists) if len(lists) > len(found.lists) else (found.lists, lists)
        if longer[: len(shorter)] != shorter:
            raise TrustError("two stores hold different trust lists", where=f"store {name}", do="find out who used the root key")
        found.lists = longer
    for run in site.config.runs:
        try:
            view, _ = site.view(run)
        except NoSuchCopyError:
            continue
        except StoreError as error:
            found.problems[f"run {run}"] = error
            continue
        found.views[run] = view
        version = _version(view)
        if version == len(found.lists) + 1:
            found.lists.append(view.state.trust_bytes)
        elif version > len(found.lists) or found.lists[version - 1] != view.state.trust_bytes:
            raise TrustError("a run's log quotes a trust list that no store has", where=run, why=f"version {version}")
    if not found.lists:
        raise NoSuchObjectError("no store has a trust list", where=str(site.path), do="`seawall init` puts it there")
    read_list(found.lists[-1], site.trust_root)
    return found


def _change(
    make: "Callable[[Site, TrustList], TrustList | None]", root_key: Path, config: Path | None, dry_run: bool, json: bool, what: str
) -> int:
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log.trust_lists import put_lists
    from seawall.vault.trust import read_list, sign_list

    site = Site(find_config(config))
    root = _root(site, root_key)
    found = _gather(site)
    wanted = make(site, read_list(found.lists[-1], site.trust_root))
    if dry_run:
        site.close()
        version = wanted.version if wanted else len(found.lists)
        emit({"status": "dry-run", "version": version}) if json else say(f"would make it so in list {version}: {what}")
        return 0
    if wanted is not None:
        raw = sign_list(wanted, root)
        found.lists.append(raw)
        try:
            # The coordination store decides: of two lists with one number the first counts, and is in no other store yet.
            put_lists(site.coordination.store, found.lists)
        except TrustError as error:
            raise BusyError("somebody else changed the trust list", where=error.where, do="run it again") from error
    for name in site.config.stores:
        try:
            put_lists(site.store(name), found.lists)
            found.stores[name] = len(found.lists)
        except StoreError as error:
            found.problems[f"store {name}"] = error
    runs = {run: _apply(site, view, found) for run, view in found.views.items()}
    site.close()
    newest = read_list(found.lists[-1], site.trust_root)
    code = worst_code(found.problems.values())
    if json:
        status = "changed" if wanted is not None else "unchanged"
        document = {"status": status, "version": newest.version, "stores": found.stores, "runs": runs}
        emit({**document, "problems": _texts(found.problems), "exit_code": code})
        return code
    say(f"{what}: trust list {newest.version}{'' if wanted is not None else ' said so already'}")
    for run, version in runs.items():
        say(f"  run {run}: list {version} is in force")
    for where, problem in found.problems.items():
        warn(f"{where}: {problem}. Run the same command again when that is mended")
    return code


def _apply(site: "Site", view: "LogView", found: _Found) -> int:
    """Let every list that the run's log lacks count there, in order; the version in force afterwards."""
    from seawall.cli.spread import spread
    from seawall.log.verbs import change_trust
    from seawall.vault.trust import read_list

    try:
        for raw in found.lists[_version(view) :]:
            key = _quoter(site, read_list(raw, site.trust_root))
            view = change_trust(site.coordination.store, view, raw, key, site.clock)
        spread(site, view)
    except (StoreError, KeyMissingError) as error:
        found.problems[f"run {view.run}"] = error
    record, trust = view.state.epoch_record(), view.state.trust
    for key_id in record.writers if record and trust else ():
        if trust is not None and key_id in trust.revoked:
            warn(f"run {view.run}: writer {key_id} is revoked and still admitted. `seawall log epoch {view.run}` admits another")
    return _version(view)


def _quoter(site: "Site", trust: "TrustList") -> "SigningKey":
    """A key of this host that the list itself lets speak for it."""
    from seawall.vault.signing import Role

    roles: tuple[Role, ...] = ("operator", "coordinator")
    for role in roles:
        if site.has_signing_key(role):
            key = site.signing_key(role)
            if not trust.why_not(key.key_id, roles):
                return key
    raise KeyMissingError(
        "no key of this host may put the trust list into a log",
        where=str(site.path),
        why=f"list {trust.version} lists none of this host's operator and coordinator keys, or revokes them",
        do="run it again where such a key is",
    )


def _version(view: "LogView") -> int:
    return view.state.trust.version if view.state.trust is not None else 0


def _root(site: "Site", path: Path) -> "SigningKey":
    from seawall.vault.signing import ROOT, SigningKey

    key = SigningKey.load(path, ROOT)
    if key.public.raw != site.trust_root.raw:
        raise KeyMissingError(
            "this is another site's root key",
            where=str(path),
            why=f"it is {key.public.text()}",
            do="trust_root in seawall.toml names the right one",
        )
    return key


def _public_key(text: str) -> "PublicKey":
    from seawall.vault.signing import PublicKey

    if text.startswith("ed25519:"):
        return PublicKey.from_text(text)
    try:
        return PublicKey.from_text(Path(text).read_text(encoding="ascii").strip())
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("this is no public key and no file that holds one", where=text, why=str(error)) from error


def _texts(problems: dict[str, SeawallError]) -> dict[str, str]:
    return {where: str(error) for where, error in problems.items()}


def trust_document(trust: "TrustList") -> list[dict[str, Any]]:
    """The list's keys for ``--json``."""
    return [
        {"id": key_id, "role": key.role, "public": key.public.text(), "added": key.added, "revoked": trust.revoked.get(key_id)}
        for key_id, key in _by_role(trust)
    ]


def trust_lines(trust: "TrustList") -> list[str]:
    """The list for a person."""
    lines = [f"trust list {trust.version}:"]
    for key_id, key in _by_role(trust):
        revoked = trust.revoked.get(key_id)
        lines.append(f"  {key.role:<11} {key_id}  added {key.added[:10]}" + (f"  REVOKED: {revoked}" if revoked is not None else ""))
    return lines


def _by_role(trust: "TrustList") -> Sequence[tuple[str, Any]]:
    return sorted(trust.keys.items(), key=lambda item: (item[1].role, item[1].added, item[0]))
