"""Nothing outside of the tree is read, nothing special is opened, and what vanishes or is refused becomes a typed answer."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from seawall.checkpoint import inspect as room
from seawall.checkpoint.inspect import inspect
from seawall.checkpoint.inspection import Inspection, Verdict
from seawall.checkpoint.tree import Folder, locate, open_regular
from seawall.errors import HostileError, IncompleteError, NoSuchCopyError, SeawallError, UsageError
from tests.cases.make_cases import put_ranks, put_st, weights
from tests.checkpoint.conftest import CHECKOUT


def ranks(folder: Path) -> Path:
    put_ranks(folder, 1, 2, 100)
    return folder


def test_a_missing_path_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(NoSuchCopyError):
        inspect(tmp_path / "nothing")


def test_an_unknown_layout_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        inspect(tmp_path, layout="zarr")


@pytest.mark.parametrize("layout", ["rank-shards", "auto"])
def test_a_layout_may_be_asked_for(tmp_path: Path, layout: str) -> None:
    found = inspect(ranks(tmp_path / "a"), layout=layout)
    assert (found.layout, found.verdict, found.step, found.world_size) == ("rank-shards", Verdict.OK, 100, 2)


def test_a_run_folder_with_hidden_files_only_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / ".spool").mkdir()
    (tmp_path / ".spool" / "event.json").write_text("{}")
    assert inspect(tmp_path).verdict is Verdict.INCOMPLETE
    (tmp_path / "notes.txt").write_text("a file that everybody sees")
    assert inspect(tmp_path).verdict is Verdict.UNKNOWN


def test_a_raw_dump_beside_a_mark_is_opaque_and_without_one_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "step_5"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(bytes(range(1, 251)) * 20)
    assert inspect(folder).verdict is Verdict.CORRUPT
    (folder / "_COMMITTED").touch()
    found = inspect(folder)
    assert (found.verdict, found.layout, found.step) == (Verdict.OK, "opaque", 5)
    (folder / "pytorch_model.bin").write_bytes(b"<html>502 Bad Gateway</html>" * 300)
    assert inspect(folder).verdict is Verdict.CORRUPT


def test_opaque_asks_for_the_mark_and_nothing_else(tmp_path: Path) -> None:
    folder = ranks(tmp_path / "a")
    (folder / "rank_00001.pt").write_bytes(b"anything")
    assert inspect(folder, layout="opaque").verdict is Verdict.INCOMPLETE
    (folder / "DONE").write_bytes(b'{"epoch": 4, "step": 7}')
    found = inspect(folder, layout="opaque", commit_mark="DONE")
    assert (found.verdict, found.commit_mark, found.epoch, found.step) == (Verdict.OK, "DONE", 4, 7)


@pytest.mark.parametrize("mark", [b"{", b'{"epoch": 1, "epoch": 2}', b"{" * 2_000_000])
def test_a_mark_that_cannot_be_read_is_corrupt(tmp_path: Path, mark: bytes) -> None:
    folder = ranks(tmp_path / "a")
    (folder / "_COMMITTED").write_bytes(mark)
    assert inspect(folder).verdict is Verdict.CORRUPT


def test_a_socket_and_a_fifo_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ranks(tmp_path / "a")
    os.mkfifo(folder / "rank_00002.pt")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("rank_00003.pt")
        found = inspect(folder)
    assert found.verdict is Verdict.HOSTILE
    assert {reason.file for reason in found.reasons if reason.verdict is Verdict.HOSTILE} == {"rank_00002.pt", "rank_00003.pt"}


def test_a_link_to_a_device_is_hostile(tmp_path: Path) -> None:
    folder = ranks(tmp_path / "a")
    (folder / "rank_00001.pt").unlink()
    (folder / "rank_00001.pt").symlink_to("/dev/zero")
    assert inspect(folder).verdict is Verdict.HOSTILE


def test_a_name_that_became_a_link_after_it_was_listed_is_not_followed(tmp_path: Path) -> None:
    folder = ranks(tmp_path / "a")
    (tmp_path / "secret").write_bytes(b"x" * 100)
    listed = Folder(str(folder), str(folder))
    (folder / "rank_00000.pt").unlink()
    (folder / "rank_00000.pt").symlink_to(tmp_path / "secret")
    with pytest.raises(SeawallError), listed.open("rank_00000.pt"):
        pytest.fail("it was opened")


def test_a_name_that_became_a_fifo_after_it_was_listed_does_not_hang(tmp_path: Path) -> None:
    folder = ranks(tmp_path / "a")
    (folder / "rank_00000.pt").unlink()
    os.mkfifo(folder / "rank_00000.pt")
    with pytest.raises(HostileError):
        open_regular(str(folder / "rank_00000.pt"), "rank_00000.pt")


def test_files_that_vanish_between_listing_and_reading_make_it_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ranks(tmp_path / "a")
    judge = room.inspect_folder

    def vanish(listed: Folder, *rest: object) -> Inspection:
        (folder / "rank_00001.pt").unlink()
        return judge(listed, *rest)  # type: ignore[arg-type]  # passed through as they came

    monkeypatch.setattr(room, "inspect_folder", vanish)
    assert inspect(folder).verdict is Verdict.INCOMPLETE


def test_a_folder_that_vanishes_while_it_is_listed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ranks(tmp_path / "a")
    (folder / "sub").mkdir()
    listdir = os.listdir

    def rotate(path: str) -> list[str]:
        if path.endswith("/sub"):
            (folder / "sub").rmdir()
        return listdir(path)

    monkeypatch.setattr(os, "listdir", rotate)
    assert inspect(folder).verdict is Verdict.INCOMPLETE


def test_growth_during_a_save_is_incomplete_and_then_ok(tmp_path: Path) -> None:
    folder = tmp_path / "step_100"
    put_ranks(folder, 1, 4, 100, skip=[2, 3])
    assert inspect(folder).verdict is Verdict.INCOMPLETE
    put_ranks(folder, 1, 4, 100)
    assert inspect(folder).verdict is Verdict.OK


def test_links_inside_are_read_and_where_they_lead_is_bounded(tmp_path: Path) -> None:
    folder = ranks(tmp_path / "run" / "step_1")
    (folder / "rank_00001.pt").rename(tmp_path / "run" / "shared.pt")
    (folder / "rank_00001.pt").symlink_to("../shared.pt")
    assert inspect(folder).verdict is Verdict.HOSTILE, "by itself the folder is the boundary"
    (tmp_path / "run" / "latest").symlink_to("step_1")
    assert inspect(tmp_path / "run" / "latest").verdict is Verdict.OK, "under its link the run is"
    assert inspect(tmp_path / "run").verdict is Verdict.OK


def test_a_snapshot_of_the_hub_cache_may_use_its_blobs(tmp_path: Path) -> None:
    repository = tmp_path / "models--a--b"
    put_st(repository / "blobs" / "0a1b", dict(weights(1)))
    (repository / "snapshots" / "c0ffee").mkdir(parents=True)
    (repository / "snapshots" / "c0ffee" / "model.safetensors").symlink_to("../../blobs/0a1b")
    assert inspect(repository / "snapshots" / "c0ffee").verdict is Verdict.OK


def test_a_trailing_slash_and_a_relative_path_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ranks(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert inspect("a/").as_json() == inspect(folder).as_json() == inspect(str(tmp_path / "b" / ".." / "a")).as_json()


def test_a_folder_above_may_be_a_link(tmp_path: Path) -> None:
    ranks(tmp_path / "real" / "a")
    (tmp_path / "mount").symlink_to("real")
    assert inspect(tmp_path / "mount" / "a").verdict is Verdict.OK
    assert locate(tmp_path / "mount" / "a").boundary == str((tmp_path / "real" / "a").resolve())


def test_depth_is_bounded(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "/".join(["d"] * 70)
    deep.mkdir(parents=True)
    with pytest.raises(HostileError):
        inspect(tmp_path / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take another user's place to be refused something")
@pytest.mark.parametrize("hidden", ["rank_00001.pt", "sub"])
def test_permission_denied_is_a_typed_error(hidden: str) -> None:
    script = (
        "import os, sys; from seawall.checkpoint.inspect import inspect; from seawall.errors import SeawallError\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try: print(inspect(sys.argv[1]).verdict)\n"
        "except SeawallError as error: print('typed', error.what)\n"
    )
    # Not below tmp_path: pytest lets nobody else into the folders above it.
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o755)
        folder = ranks(Path(open_to_all) / "a")
        folder.chmod(0o755)
        (folder / "sub").mkdir()
        (folder / hidden).chmod(0)
        done = subprocess.run([sys.executable, "-c", script, str(folder)], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.stdout.startswith("typed permission denied"), done.stdout + done.stderr


def test_errors_of_a_vanishing_root_are_typed(tmp_path: Path) -> None:
    listed = Folder(str(ranks(tmp_path / "a")), str(tmp_path / "a"))
    (tmp_path / "a" / "rank_00000.pt").unlink()
    with pytest.raises(IncompleteError), listed.open("rank_00000.pt"):
        pytest.fail("it was opened")
