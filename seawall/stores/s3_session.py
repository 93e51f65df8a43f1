"""Credentials, signing and control calls of one S3 store, by botocore.

botocore, not boto3: nothing here uses boto3's resources and transfers, and leaving them out saves about 0.08 of the 0.62 CPU
seconds that a first client costs. Both find credentials in the same places, because boto3 asks botocore. It is imported with the
first request, and not at all where the endpoint is named and credentials are at hand (decision 0009).
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from seawall.clock import Clock
from seawall.errors import ConfigurationError, StoreError, StoreRefusedError
from seawall.stores.s3_path import PathRequest, path_request
from seawall.stores.s3_signing import AwsKeys, signed_url

CONNECT_SECONDS = 10
READ_SECONDS = 60
"""Longest silence within one answer. SeaweedFS and AWS answer a finished 5 GiB upload well within it."""
URL_SECONDS = 900
"""Life of a signed URL. Every try signs again right before it is sent, and S3 looks at the time when a request begins, so this only has
to allow for clocks that differ by S3's usual fifteen minutes. A URL that gets into a log is worth nothing soon."""

_ANY_REGION = "us-east-1"
"""Servers other than AWS accept any region; a signature needs one."""
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
"""Files of AWS settings: the variable that names one, and where it lies otherwise (docs.aws.amazon.com/sdkref, "Location of the files")."""
_LEFT_TO_BOTOCORE = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CREDENTIAL_EXPIRATION")


class S3Session:
    """A botocore client that is made when first needed, and made again when its credentials have run out.

    ``keys`` is asked for credentials at each of these moments; without it, they come from the usual AWS settings (environment,
    profile, SSO, web identity, instance role), which are then read again from their source. ``on_request`` hears the name of
    every HTTP request that is sent. ``clock`` tells how far this host's clock is off when a server complains.
    """

    def __init__(
        self,
        *,
        endpoint: str | None,
        region: str | None,
        profile: str | None,
        keys: Callable[[], AwsKeys] | None,
        transfers: int,
        on_request: Callable[[str], None] | None,
        clock: Clock,
    ) -> None:
        self.clock = clock
        self._endpoint = endpoint
        self._region = region
        self._profile = profile
        self._keys = keys
        self._transfers = transfers
        self._on_request = on_request
        self._lock = threading.RLock()
        self._client: Any = None
        self._credentials: Any = None
        self._signing_region = ""
        self._loaded: Any = None
        self._read_last = threading.local()
        self._generation = 0
        self.certificates: str | None = None
        """Bundle to check servers with, as the AWS settings name it; None for botocore's own."""

    def client(self) -> tuple[Any, int]:
        """The client, and the generation of its credentials."""
        with self._lock:
            if self._client is None:
                self._client = self._made()
            return self._client, self._generation

    def renew(self, generation: int) -> bool:
        """Get fresh credentials, unless another thread did since ``generation``. False when they are the same as before."""
        with self._lock:
            if generation != self._generation:
                return True
            before = self._frozen()
            self._remake()
            self._generation += 1
            return before is None or before != self._frozen()

    def move_to_region(self, region: str) -> None:
        """Sign for the region in which the bucket turned out to be."""
        with self._lock:
            if region != self._region:
                self._region = region
                self._remake()

    def sign(self, operation: str, parameters: dict[str, Any]) -> tuple[str, int]:
        """A URL for one request, and the generation of the credentials in it."""
        if self.in_path and (request := path_request(operation, parameters)) is not None:
            return self._signed_read(request, parameters) if operation == "get_object" else self._signed_path(request, parameters)
        from botocore.exceptions import BotoCoreError

        try:
            client, generation = self.client()
            return client.generate_presigned_url(operation, Params=parameters, ExpiresIn=URL_SECONDS), generation
        except BotoCoreError as error:
            raise setup_error(error, str(parameters.get("Bucket", ""))) from error

    def endpoint(self) -> str:
        """URL that requests go to: as named, or as botocore resolves it."""
        return str(self._endpoint if self.in_path else self.client()[0].meta.endpoint_url)

    @property
    def in_path(self) -> bool:
        """Whether URLs follow from the parameters alone: at an endpoint that was named, where the bucket is in the path."""
        if self._endpoint is None:
            return False
        parts = urlsplit(self._endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname)

    def _signed_read(self, request: PathRequest, parameters: dict[str, Any]) -> tuple[str, int]:
        """The URL of the object that was read last, again while it is young: ranges are no part of what is signed."""
        of = tuple(sorted(parameters.items()))
        now = self.clock.monotonic()
        known = getattr(self._read_last, "signed", None)
        if known is not None and known[0] == of and known[1][1] == self._generation and now - known[2] < URL_SECONDS / 3:
            again: tuple[str, int] = known[1]
            return again
        signed = self._signed_path(request, parameters)
        self._read_last.signed = (of, signed, now)
        return signed

    def _signed_path(self, request: PathRequest, parameters: dict[str, Any]) -> tuple[str, int]:
        """A URL signed without a client. Headers in the request are signed, and have to be sent."""
        with self._lock:
            if self._credentials is None:
                self._settings()
            keys, region, generation = self._frozen(), self._signing_region, self._generation
        names = [_encoded(parameters["Bucket"], "~")]
        if "Key" in parameters:
            names.append(_encoded(parameters["Key"], "/~"))
        url = "/".join((str(self._endpoint).rstrip("/"), *names))
        if request.query:
            url += "?" + "&".join(f"{name}={_encoded(value, '-_.~')}" for name, value in request.query.items())
        return signed_url(request.method, url, request.headers, keys, region, URL_SECONDS), generation

    def heard(self, operation: str) -> None:
        """Tell the listener about one request."""
        if self._on_request is not None:
            self._on_request(operation)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _remake(self) -> None:
        """Read the settings anew; a client only where there was one, or nothing goes without."""
        self._loaded = self._credentials = None
        if self.in_path and self._client is None:
            self._settings()
        else:
            self._client = self._made()

    def _frozen(self) -> Any:
        if self._credentials is None or isinstance(self._credentials, AwsKeys):
            return self._credentials
        from botocore.exceptions import BotoCoreError

        try:
            frozen = self._credentials.get_frozen_credentials()
        except BotoCoreError as error:
            raise setup_error(error, self._endpoint or "") from error
        return AwsKeys(frozen.access_key, frozen.secret_key, frozen.token)

    def _settings(self) -> None:
        """The usual AWS settings, read anew; without botocore where there is nothing that only botocore can read."""
        self._loaded = None
        keys = self._plain_keys()
        if keys is None:
            self._ask_botocore()
            return
        self._credentials = keys
        self.certificates = os.environ.get("AWS_CA_BUNDLE") or None
        self._signing_region = self._region or os.environ.get("AWS_DEFAULT_REGION") or _ANY_REGION

    def _plain_keys(self) -> AwsKeys | None:
        """Credentials that were given or stand in the environment, where no profile or file of AWS settings has a say.

        botocore asks the environment first, too, and then takes the variables below; one that says when it expires is left to it.
        """
        if not self.in_path or self._profile is not None or any(os.environ.get(name) for name in _LEFT_TO_BOTOCORE):
            return None
        if any(Path(os.path.expandvars(os.environ.get(name) or usual)).expanduser().exists() for name, usual in _FILES.items()):
            return None
        if self._keys is not None:
            return self._keys()
        access, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
        token = os.environ.get("AWS_SESSION_TOKEN") or os.environ.get("AWS_SECURITY_TOKEN")
        return AwsKeys(access, secret, token or None) if access and secret else None

    def _ask_botocore(self) -> Any:
        """A botocore session, with its credentials and certificates noted."""
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session

        try:
            session = Session(profile=self._profile)
            if self._keys is not None:
                # What signs already is not asked for again when a client is needed, too.
                keys = self._credentials if isinstance(self._credentials, AwsKeys) else self._keys()
                session.set_credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
            self._credentials = session.get_credentials()
            self.certificates = session.get_config_variable("ca_bundle") or None
            self._signing_region = self._region or session.get_config_variable("region") or _ANY_REGION
        except BotoCoreError as error:
            raise setup_error(error, self._endpoint or "") from error
        if self._credentials is None:
            raise StoreRefusedError(
                "there are no AWS credentials",
                why="neither environment, profile nor role has any",
                do="set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        self._loaded = session
        return session

    def _made(self) -> Any:
        from botocore.exceptions import BotoCoreError

        session = self._loaded if self._loaded is not None else self._ask_botocore()
        try:
            client = self._client_of(session, path_style=self._endpoint is not None)
            if self._endpoint is None and not (urlsplit(client.meta.endpoint_url).hostname or "").endswith(
                (".amazonaws.com", ".amazonaws.com.cn")
            ):
                # An endpoint from AWS_ENDPOINT_URL or the profile: such servers rarely have a DNS name for each bucket.
                client = self._client_of(session, path_style=True)
            client.meta.events.register("before-send.s3", self._heard_by_event)
            return client
        except BotoCoreError as error:
            raise setup_error(error, self._endpoint or "") from error
        except ValueError as error:
            raise ConfigurationError("this endpoint is no URL", where=str(self._endpoint), why=str(error)) from error

    def _client_of(self, session: Any, *, path_style: bool) -> Any:
        from botocore.config import Config

        return session.create_client(
            "s3",
            endpoint_url=self._endpoint,
            region_name=self._signing_region,
            config=Config(
                # Without it, presigned URLs get signature version 2, which SeaweedFS answers with 403.
                signature_version="s3v4",
                s3={"addressing_style": "path" if path_style else "auto"},
                # github.com/boto/boto3/issues/4435: with the default, some servers store the checksum trailer inside the object.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                # The retry wrapper of this package decides, because it knows which requests may be repeated.
                retries={"total_max_attempts": 1},
                max_pool_connections=max(1, self._transfers),
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                user_agent_extra="seawall",
            ),
        )

    def _heard_by_event(self, event_name: str = "", **_: Any) -> None:
        self.heard(event_name.rsplit(".", 1)[-1])


def _encoded(text: object, safe: str) -> str:
    return quote(str(text), safe=safe)


def setup_error(error: Exception, where: str) -> StoreError | ConfigurationError:
    """Why no request could even be signed."""
    from botocore import exceptions

    why = str(error)
    if isinstance(error, (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)):
        return StoreRefusedError("there are no AWS credentials", where=where, why=why, do="set AWS_PROFILE or an access key and its secret")
    if isinstance(error, exceptions.ProfileNotFound):
        return ConfigurationError("there is no such AWS profile", where=os.environ.get("AWS_CONFIG_FILE", "~/.aws/config"), why=why)
    if isinstance(error, exceptions.ParamValidationError):
        return ConfigurationError("S3 cannot have a bucket or key of this name", where=where, why=why)
    return StoreRefusedError(
        "the AWS settings do not lead to credentials", where=where, why=why, do="try aws sts get-caller-identity with them"
    )
