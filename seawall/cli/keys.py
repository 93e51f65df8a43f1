"""``seawall keys``: what this host holds, new keys, and rotation of the keyring."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli import trust
from seawall.cli.options import ConfigOption, DryRunOption, JsonOption, RecoveryKeyOption, RunArgument
from seawall.cli.output import ItemProgress, emit, say, warn
from seawall.cli.worst import worst_code
from seawall.errors import ConfigurationError, NoSuchCopyError, SeawallError, StoreError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.read import LogView
    from seawall.protect.place import Place
    from seawall.protect.rewrap import Rewrapped

app = typer.Typer(no_args_is_help=True, help="Keys and trust.")
app.add_typer(trust.app, name="trust")


@app.command()
def show(
    run: Annotated[str | None, typer.Argument(help="Also who can open this run's newest checkpoint.", show_default=False)] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Print the ids of this host's keys, the trust list, and with RUN the recipients of its newest sealing."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log.trust_lists import stored_lists
    from seawall.vault.trust import read_list

    site = Site(find_config(config))
    host = _host_keys(site)
    if run is None:
        lists = stored_lists(site.coordination.store, site.trust_root)
        listed = read_list(lists[-1], site.trust_root) if lists else None
        newest = None
    else:
        site.run(run)
        view, _ = site.view(run)
        listed = view.state.trust
        newest = _newest_recipients(site, view)
    site.close()
    if json:
        document = {"host": host, "trust_root": site.config.trust_root, "trust_version": listed.version if listed else None}
        emit({**document, "keys": trust.trust_document(listed) if listed else [], "run": run, "newest_sealing": newest})
        return 0
    for item in host:
        state = f"PROBLEM: {item['problem']}" if item["problem"] else item["id"]
        say(f"this host: {item['kind']:<12} {state}{'  (used for new sealings)' if item['current'] else ''}")
    say(f"trust root: {site.config.trust_root}")
    for line in trust.trust_lines(listed) if listed else ["no store has a trust list"]:
        say(line)
    if newest is not None:
        say(f"step {newest['step']}, sealing {newest['sealing'][:12]}:")
        for name, facts in newest["stores"].items():
            recipients = ", ".join(f"{wrap['kind']} {wrap['id']}" for wrap in facts["recipients"])
            version = facts["version"]
            say(f"  {name}: {facts['problem'] or f'keys version {version} for {recipients}'}")
    return 0


def _host_keys(site: "Site") -> list[dict[str, Any]]:
    """Every key that the configuration names. One that cannot be loaded is part of the answer."""
    from seawall.vault.keyring import Keyring
    from seawall.vault.recipients import RecoveryPublicKey, read_key_file
    from seawall.vault.signing import ROLES

    found: list[dict[str, Any]] = []

    def item(kind: str, path: Path, key_id: str | None, problem: str | None = None, current: bool = False) -> None:
        found.append({"kind": kind, "path": str(path), "id": key_id, "current": current, "problem": problem})

    settings = site.config.keys
    if settings.keyring is not None:
        path = site.resolve(settings.keyring.path)
        try:
            keyring = Keyring.load(path)
            for key in keyring.keys:
                item("keyring", path, key.id, current=key is keyring.current)
        except SeawallError as error:
            item("keyring", path, None, str(error))
    if settings.recovery is not None:
        path = site.resolve(settings.recovery.public)
        try:
            item("recovery", path, RecoveryPublicKey.from_text(read_key_file(path)).id, current=True)
        except (SeawallError, OSError) as error:
            item("recovery", path, None, str(error))
    for role in ROLES:
        given: str | None = getattr(settings.signing, role)
        if given is None:
            continue
        try:
            item(role, site.resolve(given), site.signing_key(role).key_id)
        except SeawallError as error:
            item(role, site.resolve(given), None, str(error))
    return found


def _newest_recipients(site: "Site", view: "LogView") -> dict[str, Any] | None:
    from seawall.protect.rewrap import read_newest_wraps
    from seawall.vault.sealing import read_sealing

    commit = max(view.state.commits.values(), key=lambda commit: commit.seq, default=None)
    if commit is None:
        return None
    stores: dict[str, dict[str, Any]] = {}
    for name in site.run(view.run).copies:
        try:
            store = site.place(name).store
            opened = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, view.state.writer_of(commit))
            newest = read_newest_wraps(opened, view.state.resolver("operator")).newest
        except SeawallError as error:
            stores[name] = {"version": None, "recipients": [], "problem": str(error)}
            continue
        recipients = [{"kind": wrap.kind, "id": wrap.recipient} for wrap in newest.wraps]
        stores[name] = {"version": newest.version, "recipients": recipients, "problem": None}
    return {"step": commit.step, "sealing": commit.sealing, "stores": stores}


@app.command()
def new(
    role: Annotated[str, typer.Argument(help="writer, verifier, operator or coordinator.")],
    path: Annotated[Path, typer.Argument(help="Key file to write, mode 0600.")],
    json: JsonOption = False,
) -> int:
    """Make a signing key for a further host, and print its public half for `seawall keys trust add`."""
    from seawall.vault.signing import ROLES, SigningKey

    if role not in ROLES:
        raise UsageError("there is no such role", where=role, do=f"use one of {', '.join(ROLES)}")
    key = SigningKey.generate(role)
    key.save(path)
    if json:
        emit({"role": role, "id": key.key_id, "public": key.public.text(), "path": str(path)})
    else:
        say(f"{role} {key.key_id} in {path}")
        say(key.public.text())
    return 0


@app.command()
def rotate(dry_run: DryRunOption = False, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Add a new key to the keyring; what is sealed from now on is for it. Older keys stay: the copies that they open need them."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.log.local import locked
    from seawall.vault.keyring import Keyring

    site = Site(find_config(config))
    if site.config.keys.keyring is None:
        raise ConfigurationError("the configuration names no keyring", where=str(site.path), do="add [keys.keyring]")
    path = site.resolve(site.config.keys.keyring.path)
    if dry_run:
        keyring = Keyring.load(path)
        status, current = "dry-run", keyring.current.id
    else:
        # Two rotations at once would each write the file with its own new key, and one of the keys would be lost.
        try:
            with locked(path):
                keyring = Keyring.load(path).rotated()
                keyring.replace(path)
        except OSError as error:
            raise ConfigurationError("the keyring cannot be written", where=str(path), why=error.strerror or "") from error
        status, current = "rotated", keyring.current.id
    if json:
        emit({"status": status, "keyring": str(path), "keys": len(keyring.keys), "current": current})
    elif dry_run:
        say(f"would add a key to {path}, which has {len(keyring.keys)}")
    else:
        say(f"{path}: {len(keyring.keys)} keys, new sealings are for {current}")
        say("Copy the file to the other hosts that seal or open before they sync again, and back it up.")
        say("`seawall keys rewrap RUN` gives the new key to the copies that exist. A stolen key still opens those: seal again instead.")
    return 0


@app.command()
def rewrap(
    run: RunArgument,
    dry_run: DryRunOption = False,
    recovery_key: RecoveryKeyOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Give this host's recipients to every sealing of a run that lacks one of them, in all its stores. Safe to run again."""
    from seawall.cli.config import find_config
    from seawall.cli.site import Site
    from seawall.protect.rewrap import rewrap as add_wraps

    site = Site(find_config(config), recovery_key=recovery_key)
    site.run(run)
    view, _ = site.view(run)
    state = view.state
    operator = None if dry_run else site.signing_key("operator")
    recipients, unwrappers = site.recipients(), site.unwrappers()
    places, unreachable = _places(site, run)
    done: list[Rewrapped] = []
    problems: dict[str, SeawallError] = {}
    # Orphans too: they are kept, so somebody may have to read them once.
    commits = sorted([*state.commits.values(), *state.orphans.values()], key=lambda commit: commit.seq, reverse=True)
    with ItemProgress(not json, "rewrapping", len(commits)) as progress:
        for commit in commits:
            try:
                done.append(add_wraps(state, commit, places, recipients, unwrappers, operator))
            except SeawallError as error:
                # One sealing that does not open must not keep the others from being rewrapped.
                problems[commit.sealing] = error
            progress.advance()
    site.close()
    problems.update({f"{item.commit.sealing} in {name}": error for item in done for name, error in item.failed.items()})
    problems.update(unreachable)
    code = worst_code(problems.values())
    added = sum(len(item.added) for item in done)
    if json:
        rows = [
            {"step": item.commit.step, "sealing": item.commit.sealing, "added": item.added, "current": item.current, "absent": item.absent}
            for item in done
        ]
        texts = {where: str(problem) for where, problem in problems.items()}
        status = "dry-run" if dry_run else "rewrapped"
        emit({"status": status, "run": run, "added": added, "sealings": rows, "problems": texts, "exit_code": code})
        return code
    say(f"{'would add' if dry_run else 'added'} {added} key versions for {len(commits)} sealings")
    for where, problem in problems.items():
        warn(f"{where}: {problem}")
    return code


def _places(site: "Site", run: str) -> "tuple[list[Place], dict[str, SeawallError]]":
    places: list[Place] = []
    unreachable: dict[str, SeawallError] = {}
    for name in site.run(run).copies:
        try:
            places.append(site.place(name))
        except StoreError as error:
            unreachable[f"store {name}"] = error
    if not places:
        raise next(iter(unreachable.values()), NoSuchCopyError("the run has no store", where=run))
    return places, unreachable
