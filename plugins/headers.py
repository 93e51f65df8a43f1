"""What every answer of the plugin carries, and which status says what the library's errors say."""

from seawall.errors import BusyError, KeyMissingError, NoSuchCopyError, SeawallError, StoreError, StoreUnavailableError, UsageError
from seawall.plugins.page import content_policy

HEADERS = {
    # Only Airflow's own pages may frame a page, and nothing in it comes from anywhere else.
    "Content-Security-Policy": content_policy(),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    # Of this server's own pages a browser tells the origin when a form is sent; other sites are told nothing.
    "Referrer-Policy": "same-origin",
}
_STATUS: tuple[tuple[type[SeawallError], int], ...] = (
    (NoSuchCopyError, 404),
    (KeyMissingError, 409),
    (BusyError, 409),
    (StoreUnavailableError, 503),
    (StoreError, 502),
    (UsageError, 400),
)


def status_of(error: SeawallError) -> int:
    """The HTTP status that says what the error says."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
