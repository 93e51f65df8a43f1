"""``seawall store``: prove a place before it is trusted, and clear away what killed commands left in it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seawall.cli.options import ConfigOption, DryRunOption, JsonOption
from seawall.cli.output import emit, say, warn
from seawall.errors import StoreError, StoreRefusedError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from seawall.cli.site import Site
    from seawall.stores.base import Store
    from seawall.testing.check_report import Check

app = typer.Typer(no_args_is_help=True, help="Places for copies.")


@app.command()
def validate(
    place: Annotated[str, typer.Argument(help="Name of a configured store, or a URL, for which no seawall.toml is needed.")],
    endpoint: Annotated[str | None, typer.Option("--endpoint", help="S3 server of a URL, where it is not AWS.", show_default=False)] = None,
    objects: Annotated[int, typer.Option("--objects", help="Empty objects for the check of long lists; 0 leaves it out.", min=0)] = 1100,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Run the conformance kit against a real place, in a new folder that is removed again. Exit 7 when the place fails it."""
    from seawall.stores.locate import open_store
    from seawall.testing.validate import validate as prove

    settings: dict[str, Any] = {"url": place, "endpoint": endpoint}
    if "://" not in place:
        settings = _settings(place, endpoint, config)

    def hear(check: "Check") -> None:
        if not json:
            say(f"{check.outcome:<14} {check.name}: {check.detail}")

    # Opened without what is known about it: the claims are what is on trial.
    found = prove(lambda: open_store(**settings), objects=objects, on_check=hear)
    code = 0 if found.ok else StoreError.exit_code
    if json:
        emit({**found.as_json(), "exit_code": code})
        return code
    facts = found.capabilities
    for name in ("conditional_put", "object_lock", "full_object_crc", "server_time", "versions", "needs_warmup"):
        say(f"{'yes' if getattr(facts, name) else 'no':<14} {name}")
    for reason in facts.reasons:
        say(f"  {reason}")
    if not found.ok:
        say(f"{found.url} does not keep the contract of a store: {', '.join(check.name for check in found.report.failed)}")
    elif found.may_be_first:
        say(f"{found.url} may hold first copies and the log")
    else:
        say(f"{found.url} may hold second copies only: it cannot create an object only once")
    return code


def _settings(name: str, endpoint: str | None, config: Path | None) -> dict[str, Any]:
    from seawall.cli.config import find_config, load_config

    if endpoint is not None:
        raise UsageError("--endpoint belongs to a URL", where=name, why="a configured store has its endpoint in seawall.toml")
    stores = load_config(find_config(config)).stores
    if name not in stores:
        raise UsageError("the configuration has no such store", where=name, why=f"stores here: {', '.join(sorted(stores))}")
    found = stores[name]
    return {"url": found.url, "endpoint": found.endpoint, "region": found.region, "profile": found.profile}


@app.command()
def sweep(
    name: Annotated[str, typer.Argument(help="Name of a configured store.")],
    older_than_hours: Annotated[
        float, typer.Option("--older-than-hours", help="Only uploads that began longer ago, by the store's clock.", min=0)
    ] = 24.0,
    dry_run: DryRunOption = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> int:
    """Remove the unfinished uploads of killed commands. Stored objects are never touched."""
    from datetime import timedelta

    from seawall.cli.config import find_config
    from seawall.cli.site import Site

    site = Site(find_config(config))
    store = site.store(name)
    now, whose = _store_time(site, name)
    limit = now - timedelta(hours=older_than_hours)
    leftovers = list(store.leftovers())
    old = [leftover for leftover in leftovers if leftover.began <= limit]
    problems: dict[str, StoreError] = {}
    for leftover in old if not dry_run else ():
        try:
            store.abort_leftover(leftover)
        except StoreError as error:
            problems[leftover.key] = error
    site.close()
    code = StoreError.exit_code if problems else 0
    if json:
        rows = [{"key": item.key, "upload": item.upload, "began": item.began.isoformat().replace("+00:00", "Z")} for item in old]
        texts = {key: str(error) for key, error in problems.items()}
        document = {"status": "dry-run" if dry_run else "swept", "store": name, "uploads": rows, "kept": len(leftovers) - len(old)}
        emit({**document, "clock": whose, "problems": texts, "exit_code": code})
        return code
    for item in old:
        word = "would remove" if dry_run else "kept" if item.key in problems else "removed"
        say(f"{word} {item.key}, begun {item.began:%Y-%m-%d %H:%M}Z")
    for key, problem in problems.items():
        warn(f"{key}: {problem}")
    say(f"{len(old) - len(problems)} unfinished uploads {'would go' if dry_run else 'removed'}, {len(leftovers) - len(old)} younger kept")
    return code


def _store_time(site: "Site", name: str) -> "tuple[datetime, str]":
    """The clock that decides what is old: the store's, else the coordination store's. This host's never deletes anything (law 8)."""
    candidates: list[tuple[str, Store]] = [(name, site.store(name))]
    if site.config.coordination.store != name:
        candidates.append((site.config.coordination.store, site.coordination.store))
    for whose, store in candidates:
        moment = store.server_time()
        if moment is not None:
            return moment, whose
    raise StoreRefusedError(
        "nobody can say how old the uploads are",
        where=name,
        why="neither this store nor the coordination store has a clock",
        do="remove them with the store's own tools",
    )
