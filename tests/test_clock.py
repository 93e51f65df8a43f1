"""Moments as text: one form out, and in only what went out."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.clock import parse_utc, utc_text

WRITTEN = "2026-03-01T09:08:07.000006Z"


@given(st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001  # hypothesis adds the zone
def test_what_was_written_is_read_again(moment: datetime) -> None:
    assert parse_utc(utc_text(moment)) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        WRITTEN[:-1],
        WRITTEN.replace("Z", "+00:00"),
        WRITTEN.replace("T", " "),
        WRITTEN.replace("2026-03-01", "2026-13-01"),
        WRITTEN.replace("2026-03-01", "2026-02-29"),
        WRITTEN.replace("2026-03-01", "2026-W091-"),
        WRITTEN.replace("2026-03-01", "20260301  "),
        WRITTEN.replace("09:08", "24:08"),
        WRITTEN.replace("000006", "00000x"),
        WRITTEN.replace("000006", "0000.6"),
    ],
)
def test_another_form_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_utc(text)
