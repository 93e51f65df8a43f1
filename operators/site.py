"""What an Airflow worker can use: seawall.toml as the configuration names it, credentials from Airflow's connections.

Imported by tasks when they act, and by the API server: it brings the library, which a DAG processor has no use for.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from seawall.cli.config import find_config
from seawall.cli.site import Site
from seawall.operators.settings import setting
from seawall.stores.configuration import StoreSettings

if TYPE_CHECKING:
    from seawall.alerts.dingtalk import DingTalk
    from seawall.stores.s3_signing import AwsKeys


def connection_keys(conn_id: str) -> "Callable[[], AwsKeys]":
    """Credentials of an Amazon connection, asked for again whenever a store's have run out."""

    def keys() -> "AwsKeys":
        from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
        from airflow.sdk import BaseHook
        from airflow.sdk.exceptions import AirflowNotFoundException

        from seawall.errors import StoreRefusedError
        from seawall.stores.s3_signing import AwsKeys

        try:
            # Asked for here, because the hook goes on with whatever credentials the host has when there is no such connection.
            BaseHook.get_connection(conn_id)
        except AirflowNotFoundException as error:
            raise StoreRefusedError("Airflow has no such connection", where=conn_id, do="add it, or change aws_conn_id") from error
        # A new session each time: the hook reads the connection again, so a rotated key or an expired role counts.
        found = AwsBaseHook(aws_conn_id=conn_id, client_type="s3").get_session().get_credentials()
        if found is None:
            raise StoreRefusedError(
                "the Airflow connection leads to no credentials", where=conn_id, do="give it a key, a role or a profile"
            )
        frozen = found.get_frozen_credentials()
        return AwsKeys(str(frozen.access_key), str(frozen.secret_key), frozen.token)

    return keys


class AirflowSite(Site):
    """A site whose stores may take their credentials from Airflow (``aws_conn_id`` in seawall.toml)."""

    def _keys(self, settings: StoreSettings) -> "Callable[[], AwsKeys] | None":
        return connection_keys(settings.aws_conn_id) if settings.aws_conn_id else None

    def _bandwidth(self) -> int | None:
        # Other tasks move bytes at the same time, on other hosts: together they keep to the limit if each keeps to its share.
        return self.config.transfer.share_bits_per_second

    def dingtalk(self) -> "DingTalk | None":
        """The robot of the configured connection: its password is the access token, its host the server, its extra has the secret."""
        conn_id = self.config.alerts.dingtalk_conn_id
        return super().dingtalk() if conn_id is None else connection_robot(conn_id)


def connection_robot(conn_id: str) -> "DingTalk":
    """A robot as Airflow's connections of type ``dingding`` describe one, and the signing ``secret`` in the extra."""
    from urllib.parse import urlencode

    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    from seawall.alerts.configuration import checked_robot
    from seawall.errors import KeyMissingError

    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise KeyMissingError("Airflow has no such connection", where=conn_id, do="add it, or change dingtalk_conn_id") from error
    base = (connection.host or "https://oapi.dingtalk.com").rstrip("/")
    webhook = f"{base}/robot/send?{urlencode({'access_token': connection.password or ''})}"
    return checked_robot(webhook if connection.password else "", str(connection.extra_dejson.get("secret") or ""), f"connection {conn_id}")


def airflow_site(path: str = "") -> AirflowSite:
    """The site of ``path``, else of ``[seawall] config``, else of ``$SEAWALL_CONFIG``.

    Raises :class:`~seawall.errors.ConfigurationError` when there is no such file.
    """
    named = path or setting("config")
    return AirflowSite(find_config(Path(named) if named else None))
