"""Control calls of an S3 store (lists, uploads, deletes) through botocore, with typed errors."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from seawall.stores.s3_errors import Answer, Kind, answer_error, is_expired, lost
from seawall.stores.s3_session import S3Session, setup_error
from seawall.stores.s3_wire import unreachable, untrusted


def call(session: S3Session, operation: str, kind: Kind, where: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """One control call; credentials that have run out are renewed once."""
    from botocore import exceptions

    for last in (False, True):
        client, generation = session.client()
        method: Callable[..., dict[str, Any]] = getattr(client, operation)
        try:
            return method(**parameters)
        except exceptions.ClientError as error:
            answer = _answer_of(error)
            if last or not is_expired(answer) or not session.renew(generation):
                raise answer_error(answer, kind, where, datetime.now(UTC)) from error
        except (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyConnectionError) as error:
            raise unreachable(error, client.meta.endpoint_url) from error
        except exceptions.SSLError as error:
            raise untrusted(error, client.meta.endpoint_url) from error
        except (exceptions.HTTPClientError, exceptions.ResponseStreamingError) as error:
            raise lost(kind, where, f"{type(error).__name__}: {error}") from error
        except exceptions.BotoCoreError as error:
            raise setup_error(error, where) from error
    raise AssertionError("unreachable: the second round returns or raises")


def _answer_of(error: Any) -> Answer:
    response = error.response
    details, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
    headers = {name.lower(): value for name, value in meta.get("HTTPHeaders", {}).items()}
    status = int(meta.get("HTTPStatusCode", 0))
    if details.get("Code") == "InternalError" and status == 200:
        # S3 sends 200 before it completes an upload and may put an error into the body.
        status = 500
    return Answer(status, str(details.get("Code", "")), str(details.get("Message", "")), headers)
