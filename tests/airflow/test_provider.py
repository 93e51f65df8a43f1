"""What Airflow knows of seawall once it is installed: the connection form, the hook behind its Test button, credentials, options."""

import importlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from seawall.errors import StoreRefusedError, UsageError
from seawall.operators.provider import get_provider_info
from seawall.operators.site import airflow_site, connection_keys
from seawall.operators.store_hook import SeawallStoreHook
from tests.airflow.tasks import new_hand


def set_connection(monkeypatch: pytest.MonkeyPatch, name: str, **fields: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))


def test_the_description_follows_airflows_schema() -> None:
    import airflow

    schema = json.loads(Path(airflow.__path__[0], "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_airflow_found_the_provider_and_the_link() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    assert "seawall" in manager.providers, "entry points are read from the installed distribution: install it again after a change"
    assert "seawall.operators.links.CheckpointLink" in manager.extra_links_class_names


def test_everything_that_it_names_can_be_imported() -> None:
    info = get_provider_info()
    for group in (*info["operators"], *info["hooks"]):
        for module in group["python-modules"]:
            importlib.import_module(module)
    names = [info["connection-types"][0]["hook-class-name"], *info["extra-links"]]
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute)


def test_the_options_are_those_that_are_read() -> None:
    from airflow.sdk.configuration import conf

    options = get_provider_info()["config"]["seawall"]["options"]
    assert set(options) == {"config", "restore_folder"} | {
        f"{role}_{kind}" for role in ("writer", "verifier", "operator", "restorer") for kind in ("pool", "queue")
    }
    for option in options:
        assert conf.get("seawall", option) == ""


def test_the_test_button(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = new_hand(tmp_path)
    set_connection(monkeypatch, "seawall_default", conn_type="seawall_store", host="a", extra={"config": str(hand.desk.config)})
    good, text = SeawallStoreHook().test_connection()
    assert good and text.startswith(f"file://{tmp_path}/a is store ")
    set_connection(monkeypatch, "seawall_other", conn_type="seawall_store", host="nowhere", extra={"config": str(hand.desk.config)})
    good, text = SeawallStoreHook("seawall_other").test_connection()
    assert not good and "no such store" in text
    set_connection(monkeypatch, "seawall_empty", conn_type="seawall_store")
    with pytest.raises(UsageError, match="names no store"):
        SeawallStoreHook("seawall_empty").get_conn()


def test_credentials_come_from_the_amazon_connection_and_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    set_connection(monkeypatch, "seawall_a", conn_type="aws", login="first", password="of the connection")  # pragma: allowlist secret
    keys = connection_keys("seawall_a")
    found = keys()
    assert (found.access_key_id, found.secret_access_key) == ("first", "of the connection")
    assert "of the connection" not in repr(found)
    set_connection(monkeypatch, "seawall_a", conn_type="aws", login="rotated", password="later")  # pragma: allowlist secret
    assert keys().access_key_id == "rotated"


def test_a_store_asks_the_connection_that_its_settings_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand = new_hand(tmp_path)
    text = hand.desk.config.read_text()
    s3 = 'url = "s3://bucket/x"\nendpoint = "http://127.0.0.1:9"\naws_conn_id = "seawall_s3"'
    hand.desk.config.write_text(text.replace(f'url = "file://{hand.desk.store("a")}"', s3))
    asked = []
    monkeypatch.setattr("seawall.operators.site.connection_keys", lambda conn_id: asked.append(conn_id))
    site = airflow_site(str(hand.desk.config))
    site.store("a")
    site.store("c")
    assert asked == ["seawall_s3"]


def test_a_connection_that_is_not_there_is_not_replaced_by_the_hosts_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the host")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the host")
    with pytest.raises(StoreRefusedError, match="no such connection"):
        connection_keys("seawall_nowhere")()


def test_a_connection_without_credentials_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    set_connection(monkeypatch, "seawall_bare", conn_type="aws")
    with pytest.raises(StoreRefusedError, match="leads to no credentials"):
        connection_keys("seawall_bare")()
