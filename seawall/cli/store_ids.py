"""The ids that this host's stores had when they were last seen: a place whose id changed is another place.

Kept in the state folder as one small file. It is a memory, never authority: when it is lost, the next look fills it again.
"""

import contextlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from seawall.cli.site import Site


@dataclass(frozen=True)
class KnownStore:
    """A store as it was seen."""

    url: str
    id: str


def known_stores(site: "Site") -> dict[str, KnownStore]:
    """Configured name → what was seen there; empty if nothing was kept or it cannot be read."""
    try:
        kept = json.loads(_path(site).read_bytes())
        return {str(name): KnownStore(str(facts["url"]), str(facts["id"])) for name, facts in kept.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def keep_stores(site: "Site", seen: dict[str, KnownStore]) -> None:
    """Remember stores that were not known. A known one stays as it is, so that a changed id is reported until somebody decides."""
    known = known_stores(site)
    merged = {**seen, **{name: store for name, store in known.items() if name not in seen or seen[name].url == store.url}}
    if merged == known:
        return
    path = _path(site)
    # A state folder that cannot be written is no reason to fail: then there is nothing to compare with the next time.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({name: asdict(store) for name, store in merged.items()}, indent=1))
        fresh.replace(path)


def _path(site: "Site") -> "Path":
    return site.state / "stores" / "ids.json"
