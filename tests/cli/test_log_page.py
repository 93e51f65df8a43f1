"""Pages from the middle of a log: what the verified view says, or nothing."""

from pathlib import Path

import pytest

from seawall.cli.log_page import entries_before, newest_entries
from seawall.cli.site import Site
from seawall.errors import FreshnessError, SeawallError
from seawall.log.entries import entry_key
from tests.protect.command_line import RUN, Desk, new_desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = new_desk(tmp_path)
    for step in (1, 2):
        desk.save(step)
        desk("sync", RUN)
        desk("verify", RUN)
    return desk


def test_pages_cover_the_log_once(desk: Desk) -> None:
    site = Site(desk.config)
    view, _ = site.view(RUN)
    seen, before = [], view.seq + 1
    while before > 1:
        page = entries_before(site, view, before, 2)
        seen += page
        before = page[-1].entry.seq
    assert seen[::-1] == newest_entries(site, view, view.seq)
    assert entries_before(site, view, 1, 5) == []
    assert [signed.entry.seq for signed in entries_before(site, view, 10**9, 1)] == [view.seq]


def test_an_entry_that_was_changed_after_it_was_verified_is_not_shown(desk: Desk) -> None:
    site = Site(desk.config)
    view, _ = site.view(RUN)
    path, other = (desk.store("c") / entry_key(RUN, seq) for seq in (3, 4))
    good = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(other.read_bytes())
    with pytest.raises(FreshnessError):
        entries_before(site, view, 4, 1)
    for at in range(len(good) // 8, len(good), len(good) // 8):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(SeawallError):
            entries_before(site, view, 4, 1)
    path.unlink()
    with pytest.raises(FreshnessError):
        entries_before(site, view, 4, 1)
    path.write_bytes(good)
    assert len(entries_before(site, view, 4, 1)) == 1
