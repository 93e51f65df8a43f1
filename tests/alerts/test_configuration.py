"""Where receivers and their secrets are configured, and what is refused."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from seawall.alerts.configuration import AUTHORIZATION, SECRET, WEBHOOK, AlertSettings, alertmanagers, dingtalk_of_host
from seawall.errors import ConfigurationError, KeyMissingError

HOOK = "https://oapi.dingtalk.com/robot/send?access_token=abc"


def robot_file(folder: Path, text: str, mode: int = 0o600) -> AlertSettings:
    path = folder / "robot.toml"
    path.write_text(text)
    path.chmod(mode)
    return AlertSettings(dingtalk_file="robot.toml")


PERSON = "user:word"


@pytest.mark.parametrize("url", [f"http://{PERSON}@127.0.0.1:9093", "127.0.0.1:9093", "file:///x", "http://h/?token=1"])
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        AlertSettings(alertmanager=(url,))


def test_every_instance_gets_the_header() -> None:
    settings = AlertSettings(alertmanager=("http://a:9093", "http://b:9093"))
    made = alertmanagers(settings, {AUTHORIZATION: "Bearer x"})
    assert [(one.url, one.authorization) for one in made] == [("http://a:9093", "Bearer x"), ("http://b:9093", "Bearer x")]
    assert "Bearer" not in repr(made)


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    settings = robot_file(tmp_path, f'webhook = "{HOOK}"\nsecret = "of the file"\n')
    of_file = dingtalk_of_host(settings, tmp_path, {})
    assert of_file is not None and (of_file.webhook, of_file.secret) == (HOOK, "of the file")
    of_environment = dingtalk_of_host(settings, tmp_path, {WEBHOOK: HOOK + "d", SECRET: "other"})
    assert of_environment is not None and (of_environment.webhook, of_environment.secret) == (HOOK + "d", "other")
    assert dingtalk_of_host(AlertSettings(), tmp_path, {}) is None


@pytest.mark.parametrize(
    "text", ["", "webhook = 1", 'webhook = "https://x/"', f'webhook = "{HOOK}"\nother = "1"', "no toml", 'webhook = "http://["']
)
def test_a_file_that_says_something_else(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        dingtalk_of_host(robot_file(tmp_path, text), tmp_path, {})
    assert "abc" not in str(caught.value)


def test_a_file_that_others_may_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="others may read"):
        dingtalk_of_host(robot_file(tmp_path, f'webhook = "{HOOK}"', 0o640), tmp_path, {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyMissingError):
        dingtalk_of_host(AlertSettings(dingtalk_file="nowhere"), tmp_path, {})
