"""``seawall doctor``: is everything here that the day of a disaster will ask for?"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from seawall.cli.options import ConfigOption, JsonOption
from seawall.cli.output import emit, say
from seawall.cli.worst import worst_code
from seawall.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from seawall.cli.checks import Check


def doctor(config: ConfigOption = None, json: JsonOption = False) -> int:
    """Check configuration, keys, stores and runs, a line each. Changes nothing. Exit 0 unless a check failed."""
    checks = []
    for check in _checks(config):
        checks.append(check)
        if not json:
            _show(check)
    failed = [check for check in checks if check.outcome == "failed"]
    warnings = sum(check.outcome == "warn" for check in checks)
    code = worst_code(check.exit_code or 1 for check in failed)
    if json:
        emit({"checks": [check.as_json() for check in checks], "failed": len(failed), "warnings": warnings, "exit_code": code})
    else:
        say(f"{len(checks)} checks: {len(failed)} failed, {warnings} warnings")
    return code


def _checks(config: "Path | None") -> "Iterator[Check]":
    from seawall.cli.checks import bad, doubtful, failure
    from seawall.cli.config import find_config
    from seawall.cli.host_checks import host_checks
    from seawall.cli.run_checks import run_checks
    from seawall.cli.site import Site
    from seawall.cli.store_checks import independence_checks, store_checks

    try:
        site = Site(find_config(config))
        _ = site.config, site.trust_root
    except ConfigurationError as error:
        yield failure("configuration", "", error)
        return
    yield from host_checks(site)
    silent = set()
    for check in store_checks(site):
        if check.name == "store" and check.outcome == "failed":
            silent.add(check.subject)
        yield check
    for run in site.config.runs:
        yield from independence_checks(site, run)
        if site.config.coordination.store in silent:
            # Asking it again for every run would wait for the same time-out once more.
            text = f"its log is in {site.config.coordination.store}, see there"
            yield bad("log", run, text, "", StoreError)
            continue
        yield from run_checks(site, run)
    if not site.config.runs:
        yield doubtful("runs", "", "the configuration has no run", "`seawall run open NAME --path FOLDER`")
    site.close()


def _show(check: "Check") -> None:
    subject = f" {check.subject}" if check.subject else ""
    say(f"{check.outcome:<6} {check.name}{subject}: {check.text}")
    if check.outcome != "ok" and check.do:
        say(f"       next: {check.do}")
