"""``seawall metrics``: what Prometheus reads is what log and proofs say."""

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seawall.vault.header import HEADER_BYTES
from tests.protect.command_line import RUN, Desk, new_desk

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


def read(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name, frozenset(sample.labels.items())] = sample.value
    return found


def of(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"seawall_{name}", frozenset({"run": RUN, **labels}.items())]


def test_a_run_without_a_checkpoint(desk: Desk) -> None:
    samples = read(desk("metrics").out)
    assert of(samples, "recovery_point_level") == of(samples, "recovery_point_step") == -1
    assert of(samples, "recovery_point_timestamp_seconds") == 0 and of(samples, "run_readable") == 1
    assert of(samples, "copies", store="a", dimension="file", verdict="failed") == 0
    assert samples["seawall_metrics_timestamp_seconds", frozenset()] > 1.7e9


def test_a_proved_run_and_a_damaged_copy(desk: Desk) -> None:
    desk.save(100)
    desk("sync", RUN)
    before = read(desk("metrics").out)
    assert of(before, "recovery_point_level") == -1 and of(before, "copy_level", store="a") == -1
    desk("verify", RUN)
    proved = read(desk("metrics", RUN).out)
    assert (of(proved, "recovery_point_level"), of(proved, "recovery_point_step")) == (4, 100)
    assert of(proved, "copy_level", store="a") == of(proved, "copy_level", store="c") == 4
    days = (of(proved, "proof_lapses_timestamp_seconds", store="a") - of(proved, "newest_commit_timestamp_seconds")) / 86400
    assert 6.9 < days < 7.1, "the bytes are to be read back within a week"
    assert of(proved, "copies", store="a", dimension="file", verdict="ok") == 1
    assert of(proved, "run_behind") == 0 and of(proved, "log_fresh") == 1 and of(proved, "rpo_seconds") == 3600
    desk.damage("a", "file-1.sea", HEADER_BYTES + 3)
    desk("verify", RUN, code=4)
    damaged = read(desk("metrics").out)
    assert of(damaged, "copies", store="a", dimension="file", verdict="failed") == 1
    assert of(damaged, "calls", response="heal") == 1 and of(damaged, "calls", response="incident") == 0
    assert of(damaged, "copy_level", store="a") == -1 and of(damaged, "recovery_point_level") == 4


def test_holds_and_quarantines(desk: Desk) -> None:
    desk.save(100)
    desk("sync", RUN)
    desk("log quarantine", RUN, 100, "--reason", "a test")
    desk("log hold", RUN, "--reason", "a test")
    samples = read(desk("metrics").out)
    assert of(samples, "quarantined_checkpoints") == of(samples, "run_holds") == 1


def test_a_file_is_written_whole(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "collector" / "seawall.prom"
    path.parent.mkdir()
    assert desk("metrics", "--output", path).out == ""
    assert of(read(path.read_text()), "run_readable") == 1
    assert path.stat().st_mode & 0o777 == 0o644 and [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert "cannot be written" in desk("metrics", "--output", tmp_path / "nowhere" / "x.prom", code=2).err


def test_a_log_that_does_not_answer_is_marked(desk: Desk) -> None:
    desk.store("c").rename(desk.folder / "away")
    done = desk("metrics", code=7)
    samples = read(done.out)
    assert of(samples, "run_readable") == 0 and "nothing is known of gpt" in done.err
    assert ("seawall_recovery_point_level", frozenset({("run", RUN)})) not in samples, "what is unknown is no number"


def test_as_json(desk: Desk) -> None:
    document = desk("metrics", "--json").json
    assert {"name": "seawall_run_readable", "labels": {"run": RUN}, "value": 1.0} in document["metrics"] and document["problems"] == {}


def test_an_unknown_run(desk: Desk) -> None:
    assert desk("metrics", "other", code=2).out == ""


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here (`make deps` installs prometheus)")
def test_promtool_finds_nothing_to_complain_about(desk: Desk) -> None:
    desk.save(100)
    desk("sync", RUN)
    desk("verify", RUN)
    done = subprocess.run(["promtool", "check", "metrics"], input=desk("metrics").out, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
