"""The end of a sync on a host that did not seal: from what the first place holds alone, again, and after the plan's host is gone."""

import os
from pathlib import Path

import pytest

from seawall.errors import EpochClosedError, NoSuchObjectError
from seawall.log.verbs import new_epoch
from seawall.protect.assignment import Assignment, load_assignment
from seawall.protect.checkpoint_source import read_source
from seawall.protect.commit import admitted_writers
from seawall.protect.complete import Synced, complete
from seawall.protect.fill import has_copy
from seawall.protect.planning import plan_sync
from seawall.protect.restore import restore
from seawall.protect.seal_batch import seal_batch
from seawall.vault.codecs import Codec
from tests.protect.little_site import RUN, LittleSite, file_site, tree, write_checkpoint

MIB = 1 << 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "ck", files={f"shard-{number}": os.urandom(700_000) for number in range(4)})


def plan(site: LittleSite, source: Path) -> Assignment:
    keys = site.sync_keys()
    planned = plan_sync(
        read_source(str(source)),
        RUN,
        site.view(),
        place=site.place("a"),
        recipients=keys.recipients,
        unwrappers=keys.unwrappers,
        signing_key=keys.writer,
        codec=Codec.NONE,
        batch_bytes=MIB,
    )
    assert isinstance(planned, Assignment)
    return planned


def seal(site: LittleSite, sealing: bytes, number: int, source: Path, places: tuple[str, ...] = ("a",)) -> None:
    """What another worker does that was told the sealing's id alone."""
    resolve = admitted_writers(site.view().state)
    assignment = load_assignment(site.stores["a"], RUN, sealing, site.keyring.keys, resolve)
    where = [site.place(name) for name in places]
    seal_batch(assignment, number, source=str(source), places=where, signing_key=site.keys["writer"], resolve=resolve)


def finish(site: LittleSite, sealing: bytes, places: tuple[str, ...] = ("a", "c")) -> Synced:
    return complete(
        RUN,
        sealing,
        site.view(),
        places=[site.place(name) for name in places],
        coordination=site.stores["c"],
        keys=site.sync_keys(),
        clock=site.clock,
        notes={"verdict": "ok"},
    )


def test_it_needs_no_source_and_fills_what_sealing_did_not_reach(tmp_path: Path, source: Path) -> None:
    site = file_site(tmp_path)
    planned = plan(site, source)
    for number in reversed(range(planned.plan.batches)):
        seal(site, planned.plan.sealing, number, source)
    content = tree(source)
    source.rename(tmp_path / "pruned")
    done = finish(site, planned.plan.sealing)
    assert (done.status, done.copies, done.missing, done.files) == ("committed", ["a", "c"], {}, 5)
    restore(*site.opened("c", done.sealing), tmp_path / "back")
    assert tree(tmp_path / "back") == content


def test_again_it_does_only_what_is_left(tmp_path: Path, source: Path) -> None:
    site = file_site(tmp_path)
    planned = plan(site, source)
    for number in range(planned.plan.batches):
        seal(site, planned.plan.sealing, number, source)
    first = finish(site, planned.plan.sealing, ("a",))
    assert not has_copy(site.place("c"), RUN, planned.plan.sealing)
    second = finish(site, planned.plan.sealing)
    assert (first.status, second.status, second.copies) == ("committed", "unchanged", ["a", "c"])
    assert (second.view.seq, second.files, second.plaintext_bytes) == (first.view.seq, first.files, first.plaintext_bytes)
    assert finish(site, planned.plan.sealing).copies == ["a", "c"]


def test_a_batch_that_is_missing_is_named_and_nothing_is_committed(tmp_path: Path, source: Path) -> None:
    site = file_site(tmp_path)
    planned = plan(site, source)
    seal(site, planned.plan.sealing, 0, source)
    with pytest.raises(NoSuchObjectError, match=r"batch-1\.sea"):
        finish(site, planned.plan.sealing)
    assert site.view().state.commits == {}


def test_an_epoch_that_closed_meanwhile_refuses_it(tmp_path: Path, source: Path) -> None:
    site = file_site(tmp_path)
    planned = plan(site, source)
    for number in range(planned.plan.batches):
        seal(site, planned.plan.sealing, number, source)
    # The same writer is admitted again: the epoch alone is the reason.
    new_epoch(site.stores["c"], site.view(), [site.keys["writer"].key_id], "moved", site.keys["coordinator"], "0" * 32, site.clock)
    with pytest.raises(EpochClosedError):
        finish(site, planned.plan.sealing)
