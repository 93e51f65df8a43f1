"""``seawall heal``: which records of which file came from where, and what a person is told when no copy has them."""

import os
from pathlib import Path
from typing import Any

import pytest

from seawall.vault.header import HEADER_BYTES
from tests.protect.command_line import RUN, Desk, new_desk

MIB = 1 << 20
# Files by name: _COMMITTED, large, small.
LARGE, SMALL = "file-1.sea", "file-2.sea"
SECOND_RECORD = HEADER_BYTES + 8 * MIB + 100


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = new_desk(tmp_path)
    desk.save(100, files={"large": os.urandom(17 * MIB), "small": os.urandom(3000)})
    desk("sync", RUN)
    return desk


def one(desk: Desk, *arguments: object, code: int = 0, store: str = "a") -> dict[str, Any]:
    """The result about one store."""
    copies = desk("heal", RUN, *arguments, "--json", code=code).json["copies"]
    (result,) = [copy for copy in copies if copy["store"] == store]
    assert isinstance(result, dict)
    return result


def test_a_damaged_record_is_found_healed_and_proved_again(desk: Desk) -> None:
    desk.damage("a", LARGE, SECOND_RECORD)
    failed = desk("verify", RUN, "--store", "a", "--json", code=4).json["copies"][0]
    assert failed["damages"][0]["records"] == [1]
    result = one(desk)
    assert result["result"] == "healed" and result["receipt"] == 2
    assert result["objects"] == [{"object": LARGE, "file": "large", "missing": False, "records": [1], "sources": ["c"]}]
    assert list(result["fetched_bytes"]) == ["c"] and 8 * MIB < int(result["fetched_bytes"]["c"]) < 9 * MIB
    assert desk("verify", RUN, "--store", "a", "--json").json["copies"][0]["level"] == "L4"
    assert {copy["result"] for copy in desk("heal", RUN, "--json").json["copies"]} == {"whole"}


def test_what_a_person_reads(desk: Desk) -> None:
    desk.damage("a", LARGE, SECOND_RECORD)
    out = desk("heal", RUN, "--step", 100).out
    assert "step 100 in a: healed, 8 MiB read from other copies" in out
    assert "large record 1 from c" in out and "step 100 in c: whole" in out
    assert f"`seawall verify {RUN} --step 100 --store a` proves it again" in out


def test_a_dry_run_changes_nothing(desk: Desk) -> None:
    desk.damage("a", LARGE, SECOND_RECORD)
    before = desk.stored()
    assert one(desk, "--dry-run")["result"] == "would heal"
    assert desk.stored() == before


def test_older_checkpoints_with_a_failed_proof_are_looked_at(desk: Desk) -> None:
    desk.damage("a", SMALL, HEADER_BYTES + 5)
    desk("verify", RUN, code=4)
    desk.save(200)
    desk("sync", RUN)
    copies = desk("heal", RUN, "--json").json["copies"]
    assert [(copy["step"], copy["store"], copy["result"]) for copy in copies] == [
        (100, "a", "healed"),
        (100, "c", "whole"),
        (200, "a", "whole"),
        (200, "c", "whole"),
    ]
    desk("verify", RUN, "--all")
    assert {copy["step"] for copy in desk("heal", RUN, "--json").json["copies"]} == {200}, "nothing calls for the older one any more"


def test_a_first_store_that_lost_its_objects(desk: Desk) -> None:
    """A sync cannot bring them back, and says who can."""
    for path in desk.objects("a", "*"):
        path.unlink()
    refused = desk("sync", RUN, "--json", code=6).json
    assert f"`seawall heal {RUN} --step 100`" in refused["do"]
    result = one(desk)
    assert result["result"] == "healed" and all(item["missing"] for item in result["objects"])
    assert desk("sync", RUN, "--json").json["status"] == "unchanged"
    assert desk("verify", RUN, "--json").json["failed"] == 0


def test_what_no_copy_has_is_an_incident(desk: Desk) -> None:
    for name in ("a", "c"):
        desk.damage(name, LARGE, SECOND_RECORD)
    before = desk.stored()
    result = one(desk, code=4)
    assert result["result"] == "not healed" and f"{LARGE} record 1" in result["why"] and "nothing was overwritten" in result["why"]
    after = desk.stored()
    assert {name: raw for name, raw in after.items() if "/records/" not in name} == before
    incidents = [name for name in after if "/records/incident/" in name]
    assert any(result["incident"] in name for name in incidents)
    one(desk, code=4)
    assert [name for name in desk.stored() if "/records/incident/" in name] == incidents, "the same finding is the same incident"


def test_a_store_that_is_away_is_not_called_lost(tmp_path: Path) -> None:
    desk = new_desk(tmp_path, ("a", "b", "c"))
    desk.save(100, files={"small": os.urandom(3000)})
    desk("sync", RUN)
    for name in ("a", "c"):
        desk.damage(name, "file-1.sea", HEADER_BYTES + 5)
    (tmp_path / "b").rename(tmp_path / "b-away")
    result = one(desk, "--store", "a", code=7)
    assert result["result"] == "unknown" and "cannot be healed from the stores that answer" in result["why"]
    assert not [name for name in desk.stored() if "/records/" in name], "unknown is not lost"
    (tmp_path / "b-away").rename(tmp_path / "b")
    assert one(desk, "--store", "a")["objects"][0]["sources"] == ["b"]


def test_without_a_writers_key(desk: Desk) -> None:
    desk.damage("a", SMALL, HEADER_BYTES + 5)
    lines = desk.config.read_text().splitlines(keepends=True)
    desk.config.write_text("".join(line for line in lines if not line.startswith("writer")))
    assert desk("heal", RUN, "--json", code=8).json["error"] == "KeyMissingError"
    assert one(desk, "--dry-run")["result"] == "would heal"


def test_unknown_step(desk: Desk) -> None:
    assert desk("heal", RUN, "--step", 7, "--json", code=6).json["error"] == "NoSuchCopyError"
