"""The alert rules: Prometheus takes them, each fires when it should and is quiet when it should, and each is about metrics that exist."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from seawall.cli.metrics import Gauges

FOLDER = Path(__file__).parents[2] / "docs" / "alerts"
RULES, CASES = FOLDER / "seawall.rules.yml", FOLDER / "seawall.rules.test.yml"
ALERTS = re.findall(r"^\s+- alert: (\w+)$", RULES.read_text(), flags=re.MULTILINE)
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here (`make deps` installs prometheus)")


@needs_promtool
@pytest.mark.parametrize("arguments", [("check", "rules", RULES), ("test", "rules", CASES)], ids=["check", "test"])
def test_promtool_accepts_them(arguments: tuple[object, ...]) -> None:
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


@needs_promtool
def test_promtool_does_find_a_rule_that_is_wrong(tmp_path: Path) -> None:
    """The control."""
    (tmp_path / RULES.name).write_text(RULES.read_text().replace("seawall_recovery_point_level < 0", "seawall_recovery_point_level < -5"))
    (tmp_path / CASES.name).write_text(CASES.read_text())
    done = subprocess.run(["promtool", "test", "rules", str(tmp_path / CASES.name)], capture_output=True, text=True, timeout=100)
    assert done.returncode != 0 and "SeawallNoRecoveryPoint" in done.stdout + done.stderr


def test_every_alert_has_a_case_where_it_fires_and_one_where_it_does_not() -> None:
    text = CASES.read_text()
    fires = set(re.findall(r"^\s+alertname: (\w+)\n\s+exp_alerts:\n\s+- exp_labels", text, flags=re.MULTILINE))
    quiet = set(re.findall(r"alertname: (\w+), exp_alerts: \[\]", text))
    assert len(ALERTS) == len(set(ALERTS)) >= 15
    assert fires == quiet == set(ALERTS)


def test_they_are_about_metrics_that_are_exported() -> None:
    registry = CollectorRegistry()
    Gauges(registry)
    exported = {family.name for family in registry.collect()}
    named = set(re.findall(r"\bseawall_[a-z_]+", RULES.read_text()))
    assert named and named <= exported, named - exported


def test_no_alert_has_the_name_of_another_severity_in_the_library() -> None:
    """Both lead to one Alertmanager: under one name they are one alert, which has one severity."""
    from seawall.protect.notices import NAMES, NO_GOOD_COPY, RUN_BEHIND

    text = RULES.read_text()
    own = {**dict(NAMES.values()), NO_GOOD_COPY: "critical", RUN_BEHIND: "critical"}
    for name, severity in own.items():
        found = re.search(rf"- alert: {name}\n.*?severity: (\w+)", text, flags=re.DOTALL)
        assert found is None or found[1] == severity, name
