"""Reports of the past: what counts for them, and that nothing which comes later does."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seawall.audit.history import entries_at
from seawall.audit.terms import DELAY, LATENESS, SETTLING, Interval, Terms, audited, last_day, parse_moment, parse_terms
from seawall.errors import CorruptError, UsageError
from seawall.log.bodies import Hold
from seawall.log.entries import NO_ENTRY, Entry, SignedEntry, sign_entry
from seawall.vault import canonical, dsse
from seawall.verify.levels import AgePolicy, Level
from tests.audit.past import DAY, FIRST_DAY, Past
from tests.log.actors import KEYS
from tests.protect.command_line import new_desk


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    past = Past(new_desk(tmp_path))
    past.begin()
    yield past


def copies(done: Any) -> list[tuple[str, str]]:
    """Result and level of the copies of a report's checkpoints, the committed store's own order aside."""
    return sorted((copy["result"], copy["level"]) for row in done["report"]["checkpoints"] for copy in row["copies"])


def body_of(raw: bytes) -> dict[str, Any]:
    return dict(canonical.decode(dsse.Envelope.decode(raw).payload)["body"])


def test_a_day_is_reported_once_and_the_same_whenever_it_is_made(past: Past) -> None:
    reports = past.live(3)
    listed = past.desk.stored()
    past.at(40, 0)
    for day, raw in reports.items():
        again = past.report(day)
        assert (again["status"], again["digest"]) == ("found", dsse.digest(raw))
        assert past.report_path(day).read_bytes() == raw
        assert copies(again) == [("ok", "L4"), ("ok", "L4")]
        assert [row["step"] for row in again["report"]["checkpoints"]] == [str(day)]
    # As if the day's own run had never been: filled in now, from a longer log, with the proofs lapsed long ago.
    for day, raw in reports.items():
        past.report_path(day).unlink()
        assert past.report(day)["status"] == "written"
        assert past.report_path(day).read_bytes() == raw
    assert past.desk.stored() == listed, "nothing else was written, and nothing moved"


def test_what_is_proved_up_to_the_cut_counts_and_nothing_after_it(past: Past) -> None:
    past.at(0, 23)
    past.commit(1)
    past.at(1, 5.9)
    past("verify", "--level", "L2")
    past.at(1, 6.1)
    past("verify")
    past.at(1, 7)
    done = past.report(0, "--unsigned")
    assert (done["status"], copies(done)) == ("unsigned", [("unknown", "L2"), ("unknown", "L2")]), "L3 is asked for"
    levels = done["report"]["checkpoints"][0]["copies"][0]["levels"]
    assert {level: found["result"] for level, found in levels.items()} == {
        **dict.fromkeys(("L0", "L2"), "ok"),
        **dict.fromkeys(("L1", "L3", "L4", "L5"), "unknown"),
    }
    assert not past.report_path(0).exists()


def test_a_damage_is_in_the_report_and_its_repair_only_when_it_came_in_time(past: Past) -> None:
    past.at(0, 10)
    past.commit(1)
    (path,) = (past.desk.store("a") / f"runs/{past.run}/sealings").glob("*/file-1.sea")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(bytes(raw))
    past.at(0, 11)
    past("verify", code=4)
    past.at(0, 12)
    past("heal")
    past.at(1, 6.5)
    past("verify")
    past.at(1, 7)
    done = past.report(0)
    assert copies(done) == [("failed", ""), ("ok", "L4")]
    (failed,) = [copy for copy in done["report"]["checkpoints"][0]["copies"] if copy["failure"]]
    assert failed["failure"]["level"] in ("L0", "L1", "L2") and failed["failure"]["damage"]
    assert done["report"]["counts"] == {"checkpoints": "1", "ok": "1", "failed": "1", "unknown": "0", "deleted": "0"}


def test_a_report_has_its_time(past: Past) -> None:
    past.at(0, 10)
    past.commit(1)
    past.at(1, 6.9)
    assert past.report(0, code=3)["error"] == "IncompleteError"
    past.at(1, 7)
    assert past.report(0)["status"] == "written"


def test_a_run_without_a_log_then_has_no_report(past: Past) -> None:
    past.at(9, 0)
    assert past.report(-5, code=6)["error"] == "NoLogYetError"


def test_a_checkpoint_whose_commit_was_late_is_in_the_next_report(past: Past) -> None:
    """Stored on day 0, while the log could not be reached, and committed on day 2."""
    past.live(1)
    past.at(2, 10)
    past.stores_behind = 2 * DAY
    past.commit(77)
    past.stores_behind = timedelta(0)
    past.at(9, 0)
    steps = {}
    for day in range(5):
        rows = past.report(day, "--unsigned")["report"]["checkpoints"]
        steps[day] = [(row["step"], row["late"]) for row in rows]
    assert steps == {0: [("0", False)], 1: [("1", False)], 2: [("77", True)], 3: [], 4: []}, "each is in exactly one"


def test_entries_are_placed_by_the_last_that_is_not_later() -> None:
    """A clock that is fast hides nothing, and one that is slow takes nothing back."""
    moments = [0, 1, 900, 2, 3, 5, 4]

    def entry(number: int, minutes: int) -> SignedEntry:
        at = f"{FIRST_DAY + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.%fZ}"
        body = Hold("a reason")
        return sign_entry(Entry("gpt", number, NO_ENTRY, f"{number:032x}", 1, at, body), KEYS.operator)

    entries = [entry(number, minutes) for number, minutes in enumerate(moments, 1)]
    at = {minutes: entries_at(entries, FIRST_DAY + timedelta(minutes=minutes)) for minutes in (-1, 0, 1, 2, 3, 4, 5, 1000)}
    assert at == {-1: 0, 0: 1, 1: 2, 2: 4, 3: 5, 4: 7, 5: 7, 1000: 7}
    assert [entries_at(entries[:6], FIRST_DAY + timedelta(minutes=minutes)) for minutes in (4, 5)] == [5, 6]


def test_an_entry_that_was_slipped_in_is_named(past: Past) -> None:
    past.live(2)
    past.at(9, 0)
    assert past.report(1)["status"] == "found"
    # A verifier whose clock is a week slow, or who lies.
    past.at(1, 13)
    past("verify")
    past.at(9, 0)
    refused = past.report(1, code=10)
    assert refused["error"] == "AuditDiffersError"
    assert "log.seq" in refused["why"] and "proofs." in refused["why"]
    assert past.report(0)["status"] == "found", "other days are not touched"


def test_proofs_that_are_gone_stop_the_report(past: Past) -> None:
    past.live(1)
    past.report_path(0).unlink()
    (first, *_) = sorted((past.desk.store("c") / f"runs/{past.run}/proofs").glob("*/*.json"))
    kept = first.read_bytes()
    first.unlink()
    past.at(9, 0)
    assert past.report(0, code=10)["error"] == "FreshnessError"
    assert not past.report_path(0).exists()
    first.write_bytes(kept)
    assert past.report(0)["status"] == "written"


def test_another_configuration_changes_no_report(past: Past) -> None:
    reports = past.live(2)
    text = past.desk.config.read_text()
    past.desk.config.write_text(text + "\n[verify.max_age_days]\nL2 = 1\nL3 = 1\n")
    past.at(9, 0)
    assert past.report(0)["status"] == "found"
    past.report_path(1).unlink()
    assert past.report(1)["status"] == "written"
    before, now = body_of(reports[1]), body_of(past.report_path(1).read_bytes())
    assert before["terms"]["max_age_days"]["L2"] == "7" and now["terms"]["max_age_days"]["L2"] == "1", "a report says what it judged by"


def test_a_report_that_somebody_else_signed_counts_for_nothing(past: Past) -> None:
    reports = past.live(1)
    document = json.loads(reports[0])
    document["signatures"][0]["sig"] = document["signatures"][0]["sig"][::-1]
    path = past.report_path(0)
    path.chmod(0o600)
    path.write_bytes(json.dumps(document, separators=(",", ":")).encode())
    past.at(9, 0)
    assert past.report(0, code=None)["error"] in ("TrustError", "CorruptError")


def test_terms_are_read_back_strictly() -> None:
    terms = Terms(required=Level.L2, ages=AgePolicy({Level.L2: 3}, {"tape": {Level.L2: 400}}, {"ab" * 16: "tape"}), stores=("ab" * 16,))
    document = terms.document()
    assert parse_terms(document, "here").document() == document
    for change in ({"required": "L9"}, {"stores": ["x"]}, {"lateness_seconds": "-1"}, {"max_age_days": {"L2": "many"}}, {"more": "x"}):
        with pytest.raises(CorruptError):
            parse_terms({**document, **change}, "here")


def test_moments_and_intervals_as_people_write_them() -> None:
    assert parse_moment("2025-03-01") == FIRST_DAY
    assert parse_moment("2025-03-01T02:00:00+02:00") == FIRST_DAY
    for wrong in ("yesterday", "2025-03-01T02:00:00", "2025-13-01", "9999-12-31T23:00:00-02:00"):
        with pytest.raises(UsageError):
            parse_moment(wrong)
    with pytest.raises(UsageError):
        Interval(FIRST_DAY, FIRST_DAY)
    with pytest.raises(UsageError):
        Interval(FIRST_DAY, parse_moment("9999-12-31T23:59:59Z"))
    assert Interval(FIRST_DAY, FIRST_DAY + DAY).name == "2025-03-01T00-00-00Z"
    assert Interval(FIRST_DAY + timedelta(microseconds=7), FIRST_DAY + DAY).name == "2025-03-01T00-00-00.000007Z_2025-03-02T00-00-00Z"
    assert Interval(FIRST_DAY, FIRST_DAY + 2 * DAY).name == "2025-03-01T00-00-00Z_2025-03-03T00-00-00Z"
    seven = datetime(2025, 3, 1, 7, tzinfo=UTC)
    assert audited(seven, seven + DAY) == Interval(FIRST_DAY, FIRST_DAY + DAY)
    for asked, day in ((seven, 28), (seven - timedelta(minutes=1), 27)):
        assert last_day(asked).start == FIRST_DAY - timedelta(days=29 - day)
    assert DELAY == LATENESS + SETTLING == timedelta(hours=7)
