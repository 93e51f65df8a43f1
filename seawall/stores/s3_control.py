"""Control calls of an S3 store (lists, uploads, deletes) through botocore, with typed errors."""

from collections.abc import Callable
from typing import Any

from seawall.stores.s3_errors import Answer, Kind, answer_error, is_expired, lost
from seawall.stores.s3_path import CONTROL, parse_answer, path_request
from seawall.stores.s3_session import setup_error
from seawall.stores.s3_wire import S3Wire, unreachable, untrusted


def call(wire: S3Wire, operation: str, kind: Kind, where: str, parameters: dict[str, Any], has_body: bool = True) -> dict[str, Any]:
    """One control call; credentials that have run out are renewed once.

    ``has_body`` says whether a whole answer has one. http.client takes a connection that closes among the headers for the end of the
    headers, and botocore then reads an empty list out of no body at all.
    """
    session = wire.session
    if session.in_path and operation in CONTROL:
        return _in_path(wire, operation, kind, where, parameters)
    from botocore import exceptions
    from botocore.parsers import ResponseParserError

    for last in (False, True):
        client, generation = session.client()
        method: Callable[..., dict[str, Any]] = getattr(client, operation)
        try:
            answer = method(**parameters)
            if has_body and answer.keys() <= {"ResponseMetadata"}:
                raise lost(kind, where, "the answer was cut short")
            return answer
        except exceptions.ClientError as error:
            refusal = _answer_of(error)
            if last or not is_expired(refusal) or not session.renew(generation):
                raise answer_error(refusal, kind, where, session.clock.now()) from error
        except (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.ProxyConnectionError) as error:
            raise unreachable(error, client.meta.endpoint_url) from error
        except exceptions.SSLError as error:
            raise untrusted(error, client.meta.endpoint_url) from error
        except (exceptions.HTTPClientError, exceptions.ResponseStreamingError, ResponseParserError) as error:
            raise lost(kind, where, f"{type(error).__name__}: {error}") from error
        except exceptions.BotoCoreError as error:
            raise setup_error(error, where) from error
    raise AssertionError("unreachable: the second round returns or raises")


def _in_path(wire: S3Wire, operation: str, kind: Kind, where: str, parameters: dict[str, Any]) -> dict[str, Any]:
    request = path_request(operation, parameters)
    if request is None:
        raise ValueError(f"{operation} has a parameter that is not known: {sorted(parameters)}")
    headers, body = wire.document(operation, parameters, kind, where, request.headers, request.body)
    try:
        return parse_answer(operation, body, headers)
    except ValueError as error:
        raise lost(kind, where, f"the answer was cut short: {error}") from error


def _answer_of(error: Any) -> Answer:
    response = error.response
    details, meta = response.get("Error", {}), response.get("ResponseMetadata", {})
    headers = {name.lower(): value for name, value in meta.get("HTTPHeaders", {}).items()}
    status = int(meta.get("HTTPStatusCode", 0))
    if details.get("Code") == "InternalError" and status == 200:
        # S3 sends 200 before it completes an upload and may put an error into the body.
        status = 500
    return Answer(status, str(details.get("Code", "")), str(details.get("Message", "")), headers)
