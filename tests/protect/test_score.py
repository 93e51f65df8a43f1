"""3-2-1-1-0: each digit by itself, what makes it true, and when it stops being true."""

from dataclasses import replace
from datetime import timedelta

import pytest

from seawall.protect.retention_facts import Copy, Kind, Point, Site
from seawall.protect.score import Score, score
from seawall.verify.levels import Level
from tests.protect.retention_tables import NOW

SITES = (
    Site("a", "a", "s3", "west", zone="a"),
    Site("b", "b", "s3", "east", zone="b"),
    Site("c", "c", "disk", "dc-3", zone="c"),
    Site("t", "t", "tape", "vault", zone="c"),
)
DAY = timedelta(days=1)


def copy(store: str, days: float = 5, level: Level | None = Level.L4, **more: object) -> Copy:
    return replace(Copy(store, level, NOW + days * DAY), **more)  # type: ignore[arg-type]  # fields by name


def scored(*copies: Copy, sites: tuple[Site, ...] = SITES, zone: str = "a") -> Score:
    return score(Point("s", 100, Kind.CHECKPOINT, 1, copies, NOW), sites, NOW, zone)


ALL = (copy("a", 2), copy("b", 3, locked_until=NOW + 1 * DAY), copy("c", 5))


def test_all_of_it_holds_until_the_first_lapses() -> None:
    found = scored(*ALL)
    assert found.ok and found.text == "3-2-1-1-0".replace("1-1", "2-1")
    assert [digit.lapses_at for digit in found.digits] == [NOW + day * DAY for day in (2, 3, 5, 1, 5)]
    assert found.lapses_at == NOW + 1 * DAY
    assert found.digits[0].evidence == ("c: L4, disk dc-3", "b: L4, s3 east", "a: L4, s3 west")


@pytest.mark.parametrize(
    ("copies", "digit", "have"),
    [
        (ALL[:2], 0, 2),
        ((copy("a"), copy("b"), copy("c", level=Level.L1)), 0, 2),
        ((copy("a"), copy("b"), copy("c", days=-1)), 0, 2),
        ((copy("a"), copy("b"), copy("c", answers=False)), 0, 2),
        ((copy("a"), copy("b"), copy("c", failure="L2 failed")), 0, 2),
        ((copy("a"), copy("b"), copy("elsewhere")), 0, 2),
        (ALL[:2], 1, 1),
        ((copy("a"),), 2, 0),
        ((copy("a"), copy("c"), copy("b")), 3, 0),
        ((copy("a", locked_until=NOW - DAY), copy("c")), 3, 0),
        ((copy("a", level=Level.L3), copy("c", level=Level.L3)), 4, 1),
        ((copy("a"), copy("c", failure="L4 failed")), 4, 1),
        ((), 0, 0),
    ],
)
def test_what_is_missing_is_counted(copies: tuple[Copy, ...], digit: int, have: int) -> None:
    found = scored(*copies)
    assert not found.ok and found.lapses_at is None
    assert (found.digits[digit].have, found.digits[digit].ok, found.digits[digit].lapses_at) == (have, False, None)
    assert found.digits[digit].evidence


def test_two_buckets_under_one_account_are_one_copy() -> None:
    together = (replace(SITES[1], fault_domain="west"), *[site for site in SITES if site.id != "b"])
    assert scored(*ALL, sites=together).digits[0].have == 2
    # Of the two the one that lapses later counts.
    assert scored(*ALL, sites=together).digits[0].evidence[1].startswith("b: ")


def test_a_tape_is_off_line_and_a_zone_that_nobody_named_is_not_off_site() -> None:
    found = scored(copy("a"), copy("t", 9))
    assert found.digits[3].ok and found.digits[3].lapses_at == NOW + 9 * DAY
    assert not scored(*ALL, zone="").digits[2].ok
    assert scored(*ALL, zone="b").digits[2].have == 2
