"""How many copies are proved, against a real site: synced, verified, damaged, quarantined, held, fenced."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from seawall.clock import SystemClock
from seawall.errors import EpochClosedError, IncompleteError, SeawallError
from seawall.stores.locate import open_store
from seawall.testing.fake_clock import FakeClock
from seawall.training.checkpointer import Checkpointer
from seawall.training.epoch import EpochWatch, epoch_of
from seawall.training.proved import ProvedCopies, proved_copies_of
from seawall.training.steps import SavedStep, saved_step, step_folder
from seawall.vault.signing import PublicKey
from seawall.verify.levels import Level
from tests.cli.conftest import DemoSite
from tests.cli.conftest import cli as cli
from tests.cli.conftest import site as site
from tests.training.states import state_of


def trust_root(site: DemoSite) -> PublicKey:
    return PublicKey.from_text(tomllib.loads(site.config.read_text())["trust_root"])


def counter(site: DemoSite, **options: object) -> ProvedCopies:
    """A new one each time: one and the same remembers its last look for half a minute."""
    return proved_copies_of(open_store((site.folder / "c").as_uri()), "gpt", trust_root(site), **options)  # type: ignore[arg-type] -- by name


def save(site: DemoSite, step: int, epoch: int = 1) -> SavedStep:
    with Checkpointer(site.source, epoch=epoch) as checkpointer:
        checkpointer.save(step, state_of(step))
    return saved_step(site.source, step)


def damage(site: DemoSite, store: str) -> None:
    victim = max((site.folder / store).rglob("file-*.sea"), key=lambda path: path.stat().st_size)
    raw = bytearray(victim.read_bytes())
    raw[len(raw) // 2] ^= 1
    victim.write_bytes(raw)


def test_a_checkpoint_of_the_checkpointer_is_synced_and_proved_to_l4(site: DemoSite) -> None:
    saved = save(site, 10)
    assert counter(site)(saved) == 0, "not even synced"
    synced = site.good("sync", "gpt")
    assert (synced["status"], synced["step"]) == ("committed", 10)
    assert counter(site)(saved) == 0, "copied is not proved"
    proved = site.good("verify", "gpt")
    assert {copy["store"]: copy["level"] for copy in proved["copies"]} == {"a": "L4", "c": "L4"}
    assert counter(site)(saved) == 2
    assert counter(site, level=Level.L4)(saved) == 2
    assert counter(site, level=Level.L5)(saved) == 0
    assert site.good("sync", "gpt")["status"] == "unchanged"


def test_what_makes_a_copy_count_no_more(site: DemoSite) -> None:
    saved = save(site, 10)
    site.good("sync", "gpt")
    site.good("verify", "gpt")
    ids = {name: json.loads((site.folder / name / "seawall.json").read_text())["store"] for name in ("a", "c")}
    assert counter(site, fault_domains={ids["a"]: "dc-1", ids["c"]: "dc-1"})(saved) == 1, "one fire takes both"
    assert counter(site, fault_domains={ids["a"]: ""})(saved) == 1, "one is beside training"
    late = FakeClock(SystemClock().now())
    late.advance(8 * 86400)
    assert counter(site, clock=late)(saved) == 0, "proofs lapse"
    damage(site, "a")
    assert site("verify", "gpt").code == 4
    assert counter(site)(saved) == 1, "a failure stands"
    held = site.good("log", "hold", "gpt", "--reason", "looking into it")
    assert counter(site)(saved) == 0, "while the run is held nothing is deleted"
    site.good("log", "lift", "gpt", held["operation"], "--reason", "looked into")
    assert counter(site)(saved) == 1
    site.good("log", "quarantine", "gpt", "10", "--reason", "a bad GPU")
    assert counter(site)(saved) == 0, "quarantined"


def test_another_checkpoint_of_the_same_step_is_not_this_one(site: DemoSite) -> None:
    first = save(site, 10)
    site.good("sync", "gpt")
    site.good("verify", "gpt")
    shutil.copytree(first.path, site.folder / "moved" / first.path.name)
    again = save(site, 10)
    assert counter(site)(again) == 0, "step and epoch are the same, the checkpoint is another"
    assert counter(site)(SavedStep(10, 1, site.folder / "moved" / first.path.name)) == 2, "a checkpoint that moved is still itself"
    with pytest.raises(IncompleteError):
        counter(site)(SavedStep(10, 1, site.folder / "nowhere"))


def test_a_store_that_is_not_there_is_an_error_and_no_number(site: DemoSite) -> None:
    saved = save(site, 10)
    site.good("sync", "gpt")
    shutil.move(site.folder / "c", site.folder / "unmounted")
    with pytest.raises(SeawallError):
        counter(site)(saved)


def test_the_checkpointer_prunes_by_the_log(site: DemoSite) -> None:
    with Checkpointer(site.source, epoch=1, keep=1, proved_copies=counter(site)) as checkpointer:
        checkpointer.save(10, state_of(10))
        site.good("sync", "gpt")
        checkpointer.save(20, state_of(20))
        assert checkpointer.prune() == []
    site.good("verify", "gpt", "--step", "10")
    with Checkpointer(site.source, epoch=1, keep=1, proved_copies=counter(site)) as checkpointer:
        assert checkpointer.prune() == [10]
    assert sorted(path.name for path in site.source.iterdir()) == [".training.lock", "step_00000020"]


def test_a_new_epoch_in_the_log_stops_the_old_trainer_and_sync_refuses_what_it_saved(site: DemoSite) -> None:
    store = open_store((site.folder / "c").as_uri())
    late = save(site, 10)
    site.good("log", "epoch", "gpt", "--reason", "the zone is gone", "--yes")
    watch = EpochWatch(epoch_of(store, "gpt", trust_root(site)))
    assert watch.wait_first(30)
    assert watch.known == 2
    with Checkpointer(site.source, epoch=1, epoch_watch=watch) as checkpointer, pytest.raises(EpochClosedError):
        checkpointer.save(20, state_of(20))
    with Checkpointer(site.source, epoch=2, epoch_watch=watch) as checkpointer:
        checkpointer.save(30, state_of(30))
    watch.close()
    refused = site("sync", "gpt", "--path", late.path)
    assert refused.code == EpochClosedError.exit_code
    assert "closed epoch" in refused.err
    assert site.good("sync", "gpt")["step"] == 30
    assert not step_folder(site.source, 20).exists()


def test_where_the_log_is_away_the_trainer_goes_on(site: DemoSite, tmp_path: Path) -> None:
    store = open_store((site.folder / "c").as_uri())
    shutil.move(site.folder / "c", site.folder / "unmounted")
    watch = EpochWatch(epoch_of(store, "gpt", trust_root(site)), every=0.01)
    with Checkpointer(site.source, epoch=1, epoch_watch=watch) as checkpointer:
        checkpointer.save(10, state_of(10))
        assert watch.known == 0
        shutil.move(site.folder / "unmounted", site.folder / "c")
        assert watch.wait_first(30)
    watch.close()
    assert watch.known == 1
