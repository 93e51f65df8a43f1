"""The connection type ``seawall_store``: one of the places of seawall.toml, and where its credentials come from."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from seawall.errors import SeawallError, UsageError
from seawall.operators.site import AirflowSite, airflow_site, connection_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.stores.base import Store
    from seawall.stores.configuration import StoreSettings
    from seawall.stores.s3_signing import AwsKeys


class SeawallStoreHook(BaseHook):
    """A store by the name that seawall.toml gives it. The connection may name another Amazon connection than the configured one."""

    conn_name_attr = "seawall_conn_id"
    default_conn_name = "seawall_default"
    conn_type = "seawall_store"
    hook_name = "Seawall store"

    def __init__(self, seawall_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seawall_conn_id = seawall_conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """What of Airflow's connection form is shown, and under which name."""
        return {
            "hidden_fields": ["login", "password", "port", "schema"],
            "relabeling": {"host": "Store in seawall.toml"},
            "placeholders": {"host": "a"},
        }

    def get_conn(self) -> "Store":
        """The store, ready to use. Nothing is sent before the first call; the caller closes it."""
        connection = self.get_connection(self.seawall_conn_id)
        extra = connection.extra_dejson
        if not connection.host:
            raise UsageError("the connection names no store", where=self.seawall_conn_id, do="fill in `Store in seawall.toml`")
        site = _ConnectionSite(airflow_site(str(extra.get("config") or "")), str(extra.get("aws_conn_id") or ""))
        return site.store(connection.host)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the store answers and has an id; what is wrong otherwise. For the form's Test button."""
        from seawall.log.identity import identify

        try:
            store = self.get_conn()
            try:
                return True, f"{store.url} is store {identify(store)}"
            finally:
                store.close()
        except SeawallError as error:
            return False, str(error)


class _ConnectionSite(AirflowSite):
    """A site whose stores take the credentials of one connection, where it is named."""

    def __init__(self, site: AirflowSite, aws_conn_id: str) -> None:
        super().__init__(site.path)
        self._aws_conn_id = aws_conn_id

    def _keys(self, settings: "StoreSettings") -> "Callable[[], AwsKeys] | None":
        return connection_keys(self._aws_conn_id) if self._aws_conn_id else super()._keys(settings)
