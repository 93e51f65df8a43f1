"""`seawall doctor`: each run, that is its log, this host's part in it, its source, its newest checkpoint."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from seawall.cli.checks import Check, bad, doubtful, failure, good
from seawall.errors import CorruptError, KeyMissingError, NoSuchCopyError, SeawallError, StoreError, UsageError

if TYPE_CHECKING:
    from seawall.cli.site import Site
    from seawall.log.floor import FreshnessReport
    from seawall.log.read import LogView

_NAMED = 5


def run_checks(site: "Site", run: str) -> Iterator[Check]:
    """One run. Without its log nothing else of it can be told."""
    yield _source(site, run)
    try:
        view, report = site.view(run)
    except NoSuchCopyError as error:
        yield bad("log", run, f"the run was never opened [{error.where}]", f"`seawall run open {run}`", NoSuchCopyError)
        return
    except SeawallError as error:
        yield failure("log", run, error)
        return
    yield from _log(view, report)
    yield from _roles(site, view)
    yield _newest(site, view)
    yield from _marks(view)
    yield _canary(site, view)


def _source(site: "Site", run: str) -> Check:
    settings = site.run(run)
    if not site.has_signing_key("writer"):
        return good("source", run, "not needed here: this host does not write")
    zone = settings.training_zone
    if not zone:
        text = f"{len(settings.paths)} paths and no primary_zone"
        return doubtful("source", run, text, f"set primary_zone in [runs.{run}], or name the folder with `seawall sync --path`")
    path = site.resolve(settings.paths[zone])
    if not path.is_dir():
        do = "mount it, or correct `paths`; training may not have written there yet"
        return bad("source", run, f"{path} of zone {zone} is no folder", do, UsageError)
    return good("source", run, f"{path} of zone {zone}")


def _log(view: "LogView", report: "FreshnessReport") -> Iterator[Check]:
    run = view.run
    text = f"{view.seq} entries, epoch {view.epoch}, compared with {', '.join(report.compared) or 'nothing'}"
    if report.why:
        yield doubtful("log", run, f"{text}: freshness {report.freshness.value}, {report.why}", "add a mirror: a second store in `copies`")
    else:
        yield good("log", run, text)
    if report.unreachable:
        yield doubtful("mirrors", run, f"not reached: {', '.join(report.unreachable)}", "see the lines of these stores")
    if report.behind:
        yield doubtful("mirrors", run, f"behind: {', '.join(report.behind)}", f"`seawall log mirror {run}`")


def _roles(site: "Site", view: "LogView") -> Iterator[Check]:
    """Every signing key of this host against the trust list in force, and the writer's against the epoch too."""
    from seawall.vault.signing import ROLES

    trust, record = view.state.trust, view.state.epoch_record()
    for role in ROLES:
        if not site.has_signing_key(role):
            continue
        try:
            key_id = site.signing_key(role).key_id
        except KeyMissingError:
            continue  # the line of the key itself says so
        why = trust.why_not(key_id, (role,)) if trust is not None else "no trust list is in force"
        if why:
            do = "`seawall keys trust add` lists it, with the root key"
            yield bad("role", view.run, f"this host's {role} does not count: {why}", do, KeyMissingError)
        elif role == "writer" and (record is None or key_id not in record.writers):
            do = "stop here if this zone was fenced off; otherwise `seawall log epoch` admits it"
            yield bad("role", view.run, f"writer {key_id} is not admitted to epoch {view.epoch}", do, KeyMissingError)
        else:
            yield good("role", view.run, f"{role} {key_id}" + (f" is admitted to epoch {view.epoch}" if role == "writer" else " is listed"))


def _newest(site: "Site", view: "LogView") -> Check:
    from seawall.clock import parse_utc

    commit = max(view.state.commits.values(), key=lambda commit: commit.seq, default=None)
    limit = site.run(view.run).rpo_minutes
    if commit is None:
        return doubtful("newest", view.run, "no checkpoint was ever committed", f"`seawall sync {view.run}`")
    minutes = (site.clock.now() - parse_utc(commit.stored_at or commit.at)).total_seconds() / 60
    text = f"step {commit.step} was committed {minutes:.0f} minutes ago, rpo_minutes is {limit}"
    if minutes > limit:
        return doubtful("newest", view.run, text, f"`seawall sync {view.run}`, unless training stopped")
    return good("newest", view.run, text)


def _marks(view: "LogView") -> Iterator[Check]:
    state = view.state
    for op in state.held:
        text = f"on hold since {state.marks[op].at[:19]}Z: {state.marks[op].reason}"
        yield doubtful("hold", view.run, text, f"nothing is deleted or promoted until `seawall log lift {view.run} {op}`")
    if not state.held:
        yield good("hold", view.run, "none")
    marked = sorted(state.quarantined, key=lambda sealing: _step(view, sealing), reverse=True)
    if not marked:
        yield good("quarantine", view.run, "none")
        return
    named = [f"step {_step(view, sealing)} ({state.quarantine_reasons(sealing)[0]})" for sealing in marked[:_NAMED]]
    more = f" and {len(marked) - _NAMED} more" if len(marked) > _NAMED else ""
    do = "these are no recovery points; `seawall log lift` ends a quarantine"
    yield doubtful("quarantine", view.run, f"{', '.join(named)}{more}", do)


def _step(view: "LogView", sealing: str) -> int:
    record = view.state.commits.get(sealing) or view.state.orphans.get(sealing)
    return record.step if record is not None else -1


def _canary(site: "Site", view: "LogView") -> Check:
    """Unwrap the newest checkpoint's data key from the first store that has it. A keyring of another site opens nothing."""
    from seawall.vault.sealing import read_sealing, unlock

    commit = max(view.state.commits.values(), key=lambda commit: commit.seq, default=None)
    if commit is None:
        return good("decryption", view.run, "nothing to try yet")
    if site.config.keys.keyring is None:
        return good("decryption", view.run, "not tried: this host holds no keyring, by its configuration")
    passed: list[str] = []
    problem: SeawallError | None = None
    for name in site.run(view.run).copies:
        try:
            store = site.place(name).store
            sealing = read_sealing(store, view.run, bytes.fromhex(commit.sealing), commit.manifest, view.state.writer_of(commit))
            unlock(sealing, site.unwrappers(), view.state.resolver("operator"))
        except KeyMissingError as error:
            return failure("decryption", view.run, error)
        except (StoreError, CorruptError, NoSuchCopyError) as error:
            passed.append(name)
            problem = problem or error
            continue
        text = f"the data key of step {commit.step} opens from {name}"
        if passed:
            do = f"`seawall verify {view.run} --step {commit.step}` names what is wrong there"
            return doubtful("decryption", view.run, f"{text}, not from {', '.join(passed)}: {problem}", do)
        return good("decryption", view.run, text)
    assert problem is not None, "a run has at least one store"
    return failure("decryption", view.run, problem)
