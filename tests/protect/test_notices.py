"""What people are told: the same alerts for the same matrix, over when it is over, and a message only when something happened."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from seawall.alerts.alert import Alert
from seawall.protect.heal import Healed, Repair
from seawall.protect.notices import NAMES, NO_GOOD_COPY, RUN_BEHIND, alerts_of, message_of
from seawall.protect.respond import DONE, HANDED_ON, NOTHING, Answer, Responded
from seawall.testing.memory import MemoryStore
from seawall.verify.levels import Level
from seawall.verify.matrix import Cell, Dimension, Matrix, Response, Row, Verdict
from seawall.verify.matrix_facts import StoreFacts
from seawall.verify.responses import Call
from tests.protect.little_site import LittleSite

NOW = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=2)
OK = Cell(Verdict.OK, "fine", at=EARLIER)
DAMAGED = Cell(Verdict.FAILED, "damaged: file-1.sea", Response.HEAL, at=EARLIER)


def row(store: str, step: int, cells: Mapping[Dimension, Cell] | None = None) -> Row:
    full = dict.fromkeys(Dimension, OK) | dict(cells or {})
    return Row(f"{step:032x}", step, StoreFacts(store * 32, store), Level.L4, (), (), full)


def matrix(*rows: Row, run_cell: Cell = OK) -> Matrix:
    return Matrix("gpt", NOW, rows, run_cell)


def standing(alerts: list[Alert]) -> list[Alert]:
    return [alert for alert in alerts if not alert.over(NOW)]


def test_all_is_well() -> None:
    alerts = alerts_of(matrix(row("a", 100), row("c", 100)), NOW)
    assert len(alerts) == 2 * len(Dimension) + 2 and not standing(alerts)
    assert len({tuple(sorted(alert.all_labels().items())) for alert in alerts}) == len(alerts), "each is known by its labels"


def test_damage_stands_once_for_a_store_whatever_checkpoints_it_is_in() -> None:
    alerts = alerts_of(
        matrix(row("a", 300, {Dimension.FILE: DAMAGED}), row("a", 200), row("a", 100, {Dimension.FILE: DAMAGED}), row("c", 300)),
        NOW,
        "http://l",
    )
    (alert,) = standing(alerts)
    assert (alert.name, alert.severity) == NAMES[Dimension.FILE]
    assert dict(alert.labels) == {"run": "gpt", "store": "a", "dimension": "file"}
    assert alert.description == "steps 300, 100" and alert.summary == "gpt in a: damaged: file-1.sea"
    assert alert.starts_at == EARLIER and alert.link == "http://l"


def test_what_is_over_ends_where_it_stood() -> None:
    stood = standing(alerts_of(matrix(row("a", 100, {Dimension.FILE: DAMAGED})), NOW))[0]
    later = alerts_of(matrix(row("a", 100)), NOW + timedelta(hours=1))
    (ended,) = [alert for alert in later if alert.all_labels() == stood.all_labels()]
    assert ended.ends_at == NOW + timedelta(hours=1)


def test_no_good_copy_and_a_run_that_is_behind() -> None:
    lost = Cell(Verdict.FAILED, "damaged", Response.INCIDENT, at=EARLIER)
    behind = Cell(Verdict.FAILED, "step 400 is not committed", Response.CATCH_UP, at=NOW)
    alerts = standing(alerts_of(matrix(row("a", 100, {Dimension.FILE: lost}), run_cell=behind), NOW))
    assert {alert.name for alert in alerts} == {"SeawallCopyDamaged", NO_GOOD_COPY, RUN_BEHIND}


def test_unknown_and_stale_alarm_nobody_but_missing_proofs_do() -> None:
    quiet = {Dimension.FILE: Cell(Verdict.STALE, "lapsed", Response.PROVE), Dimension.KEY: Cell(Verdict.UNKNOWN, "never", Response.PROVE)}
    assert not standing(alerts_of(matrix(row("a", 100, quiet)), NOW))
    gap = {Dimension.CHAIN: Cell(Verdict.UNKNOWN, "proofs are missing", Response.REVIEW)}
    assert [alert.name for alert in standing(alerts_of(matrix(row("a", 100, gap)), NOW))] == ["SeawallProofsMissing"]


def responded(*answers: Answer) -> Responded:
    return Responded(LittleSite({"c": MemoryStore("c")}).open(), list(answers))


def call(response: Response) -> Call:
    return Call(response, Dimension.FILE, "00" * 16, 100, ("aa" * 16,), (), "file: damaged")


def test_a_heal_is_told_with_its_records() -> None:
    healed = Healed("a", 100, "00" * 16, [Repair("file-1.sea", False, (1, 2), ("c",))])
    message = message_of(responded(Answer(call(Response.HEAL), DONE, "1 objects: file-1.sea", "a", healed=healed)), "http://l")
    assert message is not None and message.title == "gpt: responded to findings" and message.link == "http://l"
    assert message.lines[0] == "**heal** step 100 in a: done. 1 objects: file-1.sea"
    assert "- file-1.sea record 1, 2 from c" in message.lines


def test_an_incident_is_in_the_title() -> None:
    message = message_of(responded(Answer(call(Response.INCIDENT), DONE, "nothing was overwritten")))
    assert message is not None and message.title == "gpt: no safe way was found"


def test_what_happened_before_or_elsewhere_is_no_news() -> None:
    assert message_of(responded(Answer(call(Response.HEAL), NOTHING), Answer(call(Response.PROVE), HANDED_ON))) is None
