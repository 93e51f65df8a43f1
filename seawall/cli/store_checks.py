"""`seawall doctor`: each store, and whether a run's stores are independent of each other."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from seawall.cli.checks import Check, bad, doubtful, failure, good
from seawall.errors import CorruptError, SeawallError, StoreError, TrustError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.stores.base import Capabilities, Store

MAX_DRIFT = timedelta(minutes=3)
"""Signed S3 requests are refused from 15 minutes on (AWS error RequestTimeTooSkewed); this leaves time to mend the clock before that."""
LEFTOVER_AGE = timedelta(days=1)
"""No upload of one object takes that long; a sync that was killed left it behind."""
_NAMED = 5


def store_checks(site: "Site") -> Iterator[Check]:
    """Every configured store. One that does not answer gets one line."""
    from seawall.cli.store_ids import KnownStore, keep_stores, known_stores

    known = known_stores(site)
    seen: dict[str, KnownStore] = {}
    for name, settings in site.config.stores.items():
        try:
            place = site.place(name)
        except (StoreError, CorruptError) as error:
            yield failure("store", name, error)
            continue
        twin = next((other for other, store in seen.items() if store.id == place.id), None)
        seen[name] = KnownStore(settings.url, place.id)
        before = known.get(name)
        if before is not None and before.url == settings.url and before.id != place.id:
            text = f"{settings.url} is {place.id}; this host knew {before.id} there"
            do = "another disk or bucket is mounted there, or it was made anew: find out which before anything is written"
            yield bad("store", name, text, do, TrustError)
        else:
            yield good("store", name, f"{settings.url} is {place.id}")
        if twin is not None:
            text = f"it is the same place as store {twin}: what lies there is one copy, whatever is configured"
            yield bad("own place", name, text, "look for a link or a mount that leads to the other; give each store its own", UsageError)
        try:
            yield _capabilities(site, name, place.store.capabilities)
            yield _clock(site, name, place.store)
            yield _leftovers(site, name, place.store)
        except SeawallError as error:
            yield failure("store", name, error)
    keep_stores(site, seen)


def _capabilities(site: "Site", name: str, found: "Capabilities") -> Check:
    named = ("conditional_put", "object_lock", "full_object_crc", "server_time", "versions", "needs_warmup")
    can = ", ".join(word for word in named if getattr(found, word)) or "nothing beyond storing"
    reasons = f"; {'; '.join(found.reasons)}" if found.reasons else ""
    first_for = [run for run, settings in site.config.runs.items() if settings.copies[0] == name]
    if found.conditional_put:
        return good("capabilities", name, f"{can}{reasons}")
    if name == site.config.coordination.store:
        do = "name another store in [coordination]: without create-if-absent two writers overwrite each other's log entries"
        return bad("capabilities", name, f"it holds the log and cannot create an object only once{reasons}", do, StoreError)
    if first_for:
        text = f"it is the first store of {', '.join(first_for)} and cannot create an object only once{reasons}"
        return bad("capabilities", name, text, "put another store first in `copies`; this one may come second", StoreError)
    return doubtful("capabilities", name, f"{can}; for second copies only{reasons}", "nothing, while it is not first and holds no log")


def _clock(site: "Site", name: str, store: "Store") -> Check:
    if not store.capabilities.server_time:
        return good("clock", name, "the store has no clock of its own to compare with")
    before = site.clock.now()
    theirs = store.server_time()
    after = site.clock.now()
    if theirs is None:
        return good("clock", name, "the store did not say what time it is")
    drift = theirs - (before + (after - before) / 2)
    seconds = drift.total_seconds()
    text = f"the store's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} this host's"
    if abs(drift) > MAX_DRIFT:
        return bad("clock", name, text, "set this host's clock (NTP); ages of proofs and signed requests depend on it", StoreError)
    return good("clock", name, text)


def _leftovers(site: "Site", name: str, store: "Store") -> Check:
    now = store.server_time() or site.clock.now()
    old = [leftover.key for leftover in store.leftovers() if now - leftover.began > LEFTOVER_AGE]
    if not old:
        return good("leftovers", name, "no upload of a killed command is older than a day")
    more = f" and {len(old) - _NAMED} more" if len(old) > _NAMED else ""
    text = f"{len(old)} unfinished uploads are older than a day: {', '.join(old[:_NAMED])}{more}"
    return doubtful("leftovers", name, text, f"`seawall store sweep {name}` removes them")


def independence_checks(site: "Site", run: str) -> Iterator[Check]:
    """Whether one event can take all copies of a run."""
    copies = {name: site.config.stores[name] for name in site.run(run).copies}
    if len(copies) < 2:
        text = f"its copies go to one store, {next(iter(copies))}"
        yield doubtful("independence", run, text, "add a second store to `copies`, elsewhere")
        return
    domains = {settings.fault_domain for settings in copies.values()}
    media = {settings.medium for settings in copies.values()}
    unnamed = [name for name, settings in copies.items() if not settings.fault_domain]
    if unnamed:
        text = f"nobody said what can be lost together: no fault_domain for {', '.join(unnamed)}"
        yield doubtful("independence", run, text, "set fault_domain of these stores: account, region, building, tape set")
    elif len(domains) < 2:
        yield doubtful(
            "independence", run, f"one event can take all copies: all are in {domains.pop()}", "add a store in another fault domain"
        )
    else:
        yield good("independence", run, f"{len(copies)} stores in {len(domains)} fault domains")
    if len(media) < 2:
        text = f"all copies are on {media.pop()}: one fault of that medium or its software can damage all"
        yield doubtful("media", run, text, "add a store of another medium")
