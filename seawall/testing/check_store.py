"""The conformance kit for stores: anybody who writes one, or buys one, can prove it. No pytest needed.

    report = check_store(lambda: open_store("s3://bucket/prefix"))
    assert report.ok, report.failed

Every check of a capability that the store does not claim is *not attainable*, with the reason; every claim is put to the test.
"""

import time
from collections.abc import Callable

from seawall.errors import SeawallError
from seawall.stores.base import Store
from seawall.testing import store_object_checks as objects
from seawall.testing import store_upload_checks as uploads
from seawall.testing.check_report import Check, CheckFailedError, NotAttainableError, Report
from seawall.testing.store_bench import StoreBench

_CHECKS: tuple[Callable[[StoreBench], str | None], ...] = (
    objects.put_and_get,
    objects.several_buffers,
    objects.empty_object,
    objects.odd_names,
    objects.bad_keys,
    objects.ranges,
    objects.missing_object,
    objects.second_create,
    uploads.concurrent_create,
    uploads.large_upload,
    uploads.empty_upload,
    uploads.finish_after_create,
    uploads.concurrent_finish,
    uploads.wrong_parts,
    uploads.aborted_upload,
    uploads.leftovers,
    objects.wrong_checksum,
    objects.reported_checksum,
    objects.listing,
    objects.many_objects,
    objects.replacing,
    objects.old_versions,
    objects.deleting,
    objects.lock_refuses,
    objects.clock,
)


def check_store(make_store: Callable[[], Store], *, objects: int = 1100, on_check: Callable[[Check], None] | None = None) -> Report:
    """Run every check on a store that ``make_store`` opens, twice, as two independent connections.

    Everything happens in a new folder, which is removed at the end; the last check is that this worked. ``objects`` is the number of
    empty objects for the long list (S3 pages hold 1000; 0 leaves the check out). ``on_check`` hears each result as it comes.
    """
    report = Report()

    def add(check: Check) -> None:
        report.checks.append(check)
        if on_check is not None:
            on_check(check)

    bench = StoreBench(make_store, objects)
    try:
        # Capabilities first: a store that cannot even be probed fails here, with its own error, instead of in every check.
        _ = bench.one.capabilities, bench.two.capabilities
        for check in _CHECKS:
            add(_run(check, bench))
    finally:
        started = time.monotonic()
        kept = bench.clean()
        locked = report.checks and any(check.name == "lock_refuses" and check.outcome == "passed" for check in report.checks)
        outcome: Check = Check("nothing_left", "passed", seconds=time.monotonic() - started)
        if kept:
            outcome = Check("nothing_left", "not attainable" if locked else "failed", f"cannot be removed: {', '.join(kept[:5])}")
        add(outcome)
        bench.close()
    return report


def _run(check: Callable[[StoreBench], str | None], bench: StoreBench) -> Check:
    started = time.monotonic()
    summary = (check.__doc__ or "").strip()
    try:
        detail = check(bench)
    except NotAttainableError as reason:
        return Check(check.__name__, "not attainable", f"{summary}: {reason}", time.monotonic() - started)
    except (CheckFailedError, SeawallError) as error:
        return Check(check.__name__, "failed", f"{summary}: {error}", time.monotonic() - started)
    return Check(check.__name__, "passed", f"{summary} ({detail})" if detail else summary, time.monotonic() - started)
