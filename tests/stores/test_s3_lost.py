"""Connections that break and credentials that run out, in front of a real SeaweedFS."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seawall.errors import StoreAmbiguousError, StoreRefusedError, StoreUnavailableError
from seawall.kernels.crc64 import combine, crc64
from seawall.stores import s3_wire
from seawall.stores.retry import RetryStore
from seawall.stores.s3 import S3Store
from seawall.testing.counting import RequestCounter
from seawall.testing.seaweedfs import SeaweedFS
from tests.expiring_gateway import ExpiringGateway
from tests.tcp_proxy import Cut, TcpProxy

PART = 5 << 20
BIG = bytes(range(256)) * (PART // 256)


@pytest.fixture
def proxy(seaweed: SeaweedFS) -> Iterator[TcpProxy]:
    with TcpProxy(seaweed.endpoint) as proxy:
        yield proxy


@pytest.fixture
def requests() -> RequestCounter:
    return RequestCounter()


@pytest.fixture
def store(make_s3: Callable[..., S3Store], proxy: TcpProxy, requests: RequestCounter) -> S3Store:
    """A store behind the proxy, probed already, so that counts and cuts hit what the test is about."""
    store = make_s3(endpoint=proxy.endpoint, on_request=requests)
    assert store.capabilities.full_object_crc
    requests.requests.clear()
    return store


def _patient(store: S3Store) -> RetryStore:
    return RetryStore(store, first_wait=0.01, longest_wait=0.05)


def test_a_read_that_breaks_is_repeated(store: S3Store, proxy: TcpProxy, requests: RequestCounter) -> None:
    store.put("big", BIG, crc64(BIG))
    proxy.arm(Cut(down_after=PART // 2))
    buffer = bytearray(PART)
    with pytest.raises(StoreUnavailableError, match="while an object was read"):
        store.read_into("big", 0, memoryview(buffer))
    proxy.arm(Cut(down_after=PART // 2))
    requests.requests.clear()
    assert _patient(store).read_into("big", 0, memoryview(buffer)) == PART and buffer == BIG
    assert requests.requests["get_object"] == 2 and proxy.struck == 2


def test_a_put_that_breaks_before_its_end_is_repeated(store: S3Store, proxy: TcpProxy, requests: RequestCounter) -> None:
    # The kernel's buffers on the way hold a few MiB, so the body must be larger for the break to be seen before the last byte.
    body = BIG * 8
    proxy.arm(Cut(up_after=100_000))
    with pytest.raises(StoreUnavailableError, match="before everything was sent"):
        store.put("big", body)
    proxy.arm(Cut(up_after=100_000))
    requests.requests.clear()
    _patient(store).put("big", body, crc64(body))
    assert requests.requests["put_object"] == 2 and store.head("big").crc64 == crc64(body)


@pytest.mark.parametrize("size", [0, 10, 200_000])
def test_a_put_whose_answer_is_lost_is_ambiguous_and_sent_once(
    store: S3Store, proxy: TcpProxy, requests: RequestCounter, size: int
) -> None:
    proxy.arm(Cut(down_after=0))
    with pytest.raises(StoreAmbiguousError):
        _patient(store).put("object", BIG[:size])
    assert requests.requests["put_object"] == 1 and proxy.struck == 1
    assert store.get("object") == BIG[:size]


def test_a_repair_whose_answer_is_lost_is_ambiguous(store: S3Store, proxy: TcpProxy, requests: RequestCounter) -> None:
    damaged = store.put("object", b"damaged").version
    requests.requests.clear()
    # The first connection carries the look at the version: it has to pass.
    store.wire.close()
    real_sign = store.session.sign

    def armed_sign(operation: str, parameters: dict[str, object]) -> tuple[str, int]:
        if operation == "put_object":
            proxy.arm(Cut(down_after=0))
        return real_sign(operation, parameters)

    store.session.sign = armed_sign  # type: ignore[method-assign]  # strikes between two requests of one call
    with pytest.raises(StoreAmbiguousError):
        _patient(store).replace("object", b"healthy", damaged)
    assert requests.requests["put_object"] == 1
    assert store.get("object") == b"healthy"


def test_a_part_whose_answer_is_lost_is_sent_again(store: S3Store, proxy: TcpProxy, requests: RequestCounter) -> None:
    upload = _patient(store).begin("big")
    upload.part(1, 0, BIG, crc64(BIG))
    proxy.arm(Cut(down_after=0))
    upload.part(2, PART, b"end", crc64(b"end"))
    assert requests.requests["upload_part"] == 3
    whole = combine(crc64(BIG), crc64(b"end"), 3)
    assert upload.finish(whole, PART + 3).crc64 == whole


def test_a_finish_whose_answer_is_lost_is_ambiguous_and_sent_once(store: S3Store, proxy: TcpProxy, requests: RequestCounter) -> None:
    upload = _patient(store).begin("object")
    upload.part(1, 0, b"x", crc64(b"x"))
    proxy.arm(Cut(down_after=0))
    with pytest.raises(StoreAmbiguousError):
        upload.finish(crc64(b"x"), 1)
    assert requests.requests["CompleteMultipartUpload"] == 1
    assert store.get("object") == b"x"
    upload.abort()
    assert store.get("object") == b"x"


@pytest.mark.parametrize("kept", [100, 250, 400])
def test_an_answer_that_is_cut_among_its_headers_or_lines_is_not_believed(store: S3Store, proxy: TcpProxy, kept: int) -> None:
    for number in range(3):
        store.put(f"{number}", b"x", crc64(b"x"))
    patient = _patient(store)
    for struck, (action, wanted) in enumerate(
        (
            (lambda: [found.key for found in patient.list("")], ["0", "1", "2"]),
            (lambda: list(patient.leftovers()), []),
            (lambda: patient.head("1").crc64, crc64(b"x")),
            (lambda: patient.head("1").size, 1),
            (lambda: patient.get("1", 0, 5), b"x"),
        ),
        1,
    ):
        proxy.arm(Cut(down_after=kept))
        assert action() == wanted
        assert proxy.struck == struck


def test_a_server_that_falls_silent(
    make_s3: Callable[..., S3Store], store: S3Store, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("object", b"x")
    monkeypatch.setattr(s3_wire, "READ_SECONDS", 0.5)
    hasty = make_s3(store.url, endpoint=proxy.endpoint, capabilities=store.capabilities)
    proxy.arm(Cut(silent=True, times=2))
    with pytest.raises(StoreUnavailableError, match="did not answer"):
        hasty.get("object", 0, 1)
    with pytest.raises(StoreAmbiguousError):
        hasty.put("other", b"x")
    assert proxy.struck == 2 and store.get("other") == b"x"


def test_a_connection_that_the_server_dropped_while_idle_costs_nothing(store: S3Store, proxy: TcpProxy) -> None:
    store.put("a", b"x")
    proxy.arm(Cut(times=0))
    store.put("b", b"x")
    proxy.arm(Cut(times=0))
    assert store.get("b") == b"x"


def test_credentials_that_expire_in_the_middle_are_renewed(make_s3: Callable[..., S3Store], seaweed: SeaweedFS) -> None:
    asked: list[str] = []

    def keys() -> object:
        asked.append("")
        return seaweed.keys if len(asked) == 1 else seaweed.writer_keys

    with ExpiringGateway(seaweed.endpoint) as gateway:
        store = make_s3(endpoint=gateway.endpoint, keys=keys)
        assert store.capabilities.conditional_put
        upload = store.begin("big")
        upload.part(1, 0, BIG, crc64(BIG))
        gateway.expired.add(seaweed.keys.access_key_id)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: upload.part(number, (number - 1) * PART, BIG, crc64(BIG)), range(2, 6)))
        whole = 0
        for _ in range(5):
            whole = combine(whole, crc64(BIG), PART)
        assert upload.finish(whole, 5 * PART).crc64 == whole
        # Four parts found out at once; one of them asked for new credentials.
        assert len(asked) == 2 and gateway.refused >= 1


def test_credentials_that_expire_are_renewed_by_every_kind_of_call(make_s3: Callable[..., S3Store], seaweed: SeaweedFS) -> None:
    with ExpiringGateway(seaweed.endpoint) as gateway:
        first = make_s3(endpoint=gateway.endpoint)
        first.put("a", b"x")
        gateway.expired.add(seaweed.keys.access_key_id)
        for action in (
            lambda store: store.head("a"),
            lambda store: store.get("a"),
            lambda store: store.put("b", b"x"),
            lambda store: list(store.list("")),
            lambda store: store.begin("c").abort(),
            lambda store: store.delete("b"),
        ):
            queue = [seaweed.keys, seaweed.writer_keys]
            action(make_s3(first.url, endpoint=gateway.endpoint, keys=lambda queue=queue: queue.pop(0), capabilities=first.capabilities))
            assert not queue


def test_expired_credentials_without_newer_ones(make_s3: Callable[..., S3Store], seaweed: SeaweedFS) -> None:
    with ExpiringGateway(seaweed.endpoint) as gateway:
        gateway.expired.add(seaweed.keys.access_key_id)
        store = make_s3(endpoint=gateway.endpoint)
        for action in (lambda: store.head("a"), lambda: store.put("a", b""), lambda: list(store.list(""))):
            with pytest.raises(StoreRefusedError, match="no newer ones"):
                action()
