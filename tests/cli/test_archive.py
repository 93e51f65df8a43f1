"""``seawall archive``: what is proved goes into a store that a sync leaves alone, once, sealed as it is."""

import os
import shutil
from pathlib import Path

import pytest

from seawall.stores.file import FileStore
from tests.cli.conftest import Cli, DemoSite


@pytest.fixture
def archived(tmp_path: Path, cli: Cli) -> DemoSite:
    """A run with a third store that is its archive."""
    demo = DemoSite(tmp_path, cli)
    demo.source.mkdir()
    urls = [f"--store={name}={(tmp_path / name).as_uri()}" for name in ("a", "c", "cold")]
    assert cli("init", *urls, "--folder", tmp_path).code == 0
    assert demo("run", "open", "gpt", "--path", demo.source).code == 0
    demo.edit('copies = ["a", "c", "cold"]', 'copies = ["a", "c", "cold"]\narchive = "cold"')
    return demo


def sealed_files(site: DemoSite, store: str, sealing: str) -> dict[str, bytes]:
    folder = site.sealing_folder(store, sealing)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith("receipt-")}


def test_a_sync_leaves_it_alone_and_what_is_not_proved_is_not_archived(archived: DemoSite) -> None:
    sealing = archived.commit(10)
    assert not (archived.folder / "cold" / "runs" / "gpt" / "sealings" / sealing).exists()
    said = archived("archive", "gpt", "--json")
    assert said.code == 6 and "nothing to archive" in said.document["what"]


def test_the_newest_proved_one_goes_there_once(archived: DemoSite) -> None:
    older = archived.commit(10)
    archived.good("verify", "gpt", "--level", "L3")
    archived.commit(20)
    first = archived.good("archive", "gpt", "--rate", "1Gbit/s")
    assert (first["status"], first["step"], first["sealing"], first["source"]) == ("archived", 10, older, "a")
    assert first["mode"] == "full" and first["predicted_seconds"] >= 0 and first["objects"] > 0
    assert first["label"].endswith("-step00000010")
    assert sealed_files(archived, "a", older) == sealed_files(archived, "cold", older)
    again = archived.good("archive", "gpt")
    assert (again["status"], again["objects"], again["label"]) == ("unchanged", 0, first["label"])
    # It counts like any other copy once it is proved, and one can restore from it alone.
    archived.good("verify", "gpt", "--step", "10", "--store", "cold", "--level", "L2")
    copies = {each["step"]: each["copies"] for each in archived.good("copies", "gpt")["checkpoints"]}
    assert copies[10]["cold"]["level"] == "L3"
    target = archived.folder / "back"
    archived.good("restore", "gpt", target, "--step", "10", "--store", "cold")
    source = archived.source / "step_10"
    assert {p.name: p.read_bytes() for p in target.iterdir()} == {p.name: p.read_bytes() for p in source.iterdir()}


def test_what_was_never_archived_is_not_missing(archived: DemoSite) -> None:
    sealing = archived.commit(10)
    archived.good("verify", "gpt", "--level", "L4")
    archived.good("archive", "gpt")
    archived.commit(20)
    archived.good("verify", "gpt", "--all", "--level", "L4")
    rows = archived.good("matrix", "gpt", "--all")["copies"]
    assert sorted((row["step"], row["store"]) for row in rows) == [(10, "a"), (10, "c"), (10, "cold"), (20, "a"), (20, "c")]
    assert {row["cells"]["file"]["verdict"] for row in rows} == {"ok"}
    archived.good("heal", "gpt")
    assert [path.name for path in (archived.folder / "cold" / "runs" / "gpt" / "sealings").iterdir()] == [sealing]
    assert archived.good("respond", "gpt", "--dry-run")["answers"] == []


def test_a_damaged_source_is_passed_over(archived: DemoSite) -> None:
    sealing = archived.commit(10)
    archived.good("verify", "gpt", "--level", "L3")
    damaged = max(archived.sealing_folder("a", sealing).glob("file-*.sea"), key=lambda path: path.stat().st_size)
    damaged.chmod(0o644)
    raw = bytearray(damaged.read_bytes())
    raw[300] ^= 1
    damaged.write_bytes(bytes(raw))
    said = archived("archive", "gpt", "--json")
    assert said.code == 0 and said.document["source"] == "c" and "the copy in a cannot be used" in said.err
    assert sealed_files(archived, "c", sealing) == sealed_files(archived, "cold", sealing)


def test_nothing_is_written_by_a_dry_run(archived: DemoSite) -> None:
    archived.commit(10)
    archived.good("verify", "gpt", "--level", "L3")
    before = sorted(os.walk(archived.folder / "cold"))
    assert archived.good("archive", "gpt", "--dry-run")["status"] == "dry-run"
    assert sorted(os.walk(archived.folder / "cold")) == before


def test_a_run_without_an_archive(site: DemoSite) -> None:
    site.commit(10)
    assert site("archive", "gpt", "--json").code == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ('archive = "a"', "not the first"),
        ('archive = "elsewhere"', "one of copies"),
        ("rto_minutes = 30", "hands out a copy in less than 300 minutes"),
    ],
)
def test_what_a_configuration_cannot_mean(site: DemoSite, change: str, why: str) -> None:
    text = site.config.read_text().replace('copies = ["a", "c"]', f'copies = ["a", "c"]\n{change}')
    text = text.replace('medium = "disk"', 'medium = "disk"\nretrieval_minutes = 300')
    site.config.write_text(text)
    said = site("copies", "gpt", "--json")
    assert said.code == 2 and why in said.document["why"]


def test_one_fast_store_is_enough_for_an_rto(site: DemoSite) -> None:
    text = site.config.read_text().replace('copies = ["a", "c"]', 'copies = ["a", "c"]\nrto_minutes = 30')
    site.config.write_text(text.replace('medium = "disk"', 'medium = "disk"\nretrieval_minutes = 300', 1))
    assert site("copies", "gpt", "--json").code == 0


def test_a_restore_recalls_what_is_cold_and_takes_what_is_warm_first(archived: DemoSite, monkeypatch: pytest.MonkeyPatch) -> None:
    sealing = archived.commit(10)
    archived.good("verify", "gpt", "--level", "L3")
    archived.good("archive", "gpt")
    archived.good("verify", "gpt", "--store", "cold", "--level", "L2")
    archived.edit("[stores.cold]", "[stores.cold]\nretrieval_minutes = 300")
    asked: list[tuple[int, float]] = []
    # What a folder has is always readable; that it was asked for is all that can be seen here (S3: tests/stores/test_s3_recall.py).
    monkeypatch.setattr(FileStore, "wait_warm", lambda self, keys, seconds: asked.append((len(keys), seconds)))
    first = archived.good("restore", "gpt", archived.folder / "one")
    assert first["store"] == "a" and asked == []
    second = archived("restore", "gpt", archived.folder / "two", "--store", "cold", "--json")
    assert second.code == 0 and "recalled from cold first" in second.err
    assert asked == [(len(list(archived.sealing_folder("cold", sealing).iterdir())), 36000.0)]


def test_an_archived_copy_that_is_gone_is_not_green(archived: DemoSite) -> None:
    sealing = archived.commit(10)
    archived.good("verify", "gpt", "--level", "L4")
    archived.good("archive", "gpt")
    archived.good("verify", "gpt", "--store", "cold", "--level", "L4")
    assert archived("matrix", "gpt", "--json").code == 0
    shutil.rmtree(archived.sealing_folder("cold", sealing))
    said = archived("matrix", "gpt", "--json")
    (row,) = [row for row in said.document["copies"] if row["store"] == "cold"]
    assert said.code == 3 and row["cells"]["timeliness"]["verdict"] == "unknown"
