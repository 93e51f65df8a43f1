"""Everything that NVML says of the GPUs here, with the return code where it says nothing: one ``key=value`` a line.

``!3`` is return code 3, not supported. Which calls a chip answers is in no document; a profile that was taken from a real host lets
tests of the health monitor meet exactly that chip. Keys are ``gpu.<number>.<what>``; what is the same for all GPUs has no number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LINKS = range(18)
"""NVLink links of Hopper; NVLink 5 has as many."""

FIELDS = (
    29, 30, 31, 38, 45, 52, 59, 74, 82, 94, 95, 142, 143, 144, 145, 161, 162, 163, 173, 174, 175, 176, 193, 194, 195, 196,
    206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 219, 220, 221, 222, 230, 269, 270, 271,
)  # fmt: skip
"""NVML_FI_DEV_* (nvml.h): retired pages, NVLink errors, throttle times, memory temperature, PCIe, remapped rows, temperature limits,
recovery action."""


@dataclass(frozen=True, slots=True)
class Query:
    """One call for a GPU, and the part of its answer that each key stands for: an attribute, a place, or all of it."""

    call: str
    keys: dict[str, str | int | None]
    arguments: tuple[Any, ...] = ()


def _one(key: str, call: str, *arguments: Any) -> Query:
    return Query(f"nvmlDeviceGet{call}", {key: None}, arguments)


def _parts(call: str, keys: str) -> Query:
    """Of a call that answers with a list."""
    return Query(f"nvmlDeviceGet{call}", {key: place for place, key in enumerate(keys.split())})


def queries(nvml: Any) -> list[Query]:
    """What is asked of every GPU."""
    both = [(error, counter) for error in (0, 1) for counter in (0, 1)]
    return [
        _one("name", "Name"),
        _one("uuid", "UUID"),
        Query("nvmlDeviceGetPciInfo", {"pci": "busId"}),
        _parts("CudaComputeCapability", "cc.major cc.minor"),
        _one("temp.0", "TemperatureV", 0),
        _one("temp.margin", "MarginTemperature"),
        *(_one(f"temp.threshold.{kind}", "TemperatureThreshold", kind) for kind in range(4)),
        _one("power.usage", "PowerUsage"),
        _one("power.enforced", "EnforcedPowerLimit"),
        _one("power.limit", "PowerManagementLimit"),
        _parts("PowerManagementLimitConstraints", "power.min power.max"),
        _one("throttle", "CurrentClocksEventReasons"),
        *(_one(f"clock.{clock}", "ClockInfo", clock) for clock in range(3)),
        *(_one(f"clock.max.{clock}", "MaxClockInfo", clock) for clock in range(3)),
        _one("pstate", "PerformanceState"),
        _one("persistence", "PersistenceMode"),
        Query("nvmlDeviceGetUtilizationRates", {"util.gpu": "gpu", "util.mem": "memory"}),
        Query("nvmlDeviceGetMemoryInfo", {f"mem.{part}": part for part in ("total", "reserved", "used")}, (nvml.nvmlMemory_v2,)),
        _parts("EccMode", "ecc.current ecc.pending"),
        *(_one(f"ecc.{error}.{counter}.total", "TotalEccErrors", error, counter) for error, counter in both),
        *(
            _one(f"ecc.{error}.{counter}.loc.{place}", "MemoryErrorCounter", error, counter, place)
            for error, counter in both
            for place in range(8)
        ),
        _parts("RemappedRows", "rows.corr rows.unc rows.pending rows.failure"),
        Query("nvmlDeviceGetRowRemapperHistogram", {f"rows.hist.{part}": part for part in ("max", "high", "partial", "low", "none")}),
        *(_one(f"retired.{cause}", "RetiredPages", cause) for cause in (0, 1)),
        _one("retired.pending", "RetiredPagesPendingStatus"),
        _parts("MigMode", "mig.current mig.pending"),
        _one("events.supported", "SupportedEventTypes"),
        _one("pcie.replay", "PcieReplayCounter"),
        _one("pcie.gen", "CurrPcieLinkGeneration"),
        _one("pcie.width", "CurrPcieLinkWidth"),
        _one("pcie.maxgen", "MaxPcieLinkGeneration"),
        _one("pcie.maxwidth", "MaxPcieLinkWidth"),
        *(_one(f"nvlink.state.{link}", "NvLinkState", link) for link in LINKS),
        *(_one(f"nvlink.version.{link}", "NvLinkVersion", link) for link in LINKS),
        *(_one(f"nvlink.err.{link}.{counter}", "NvLinkErrorCounter", link, counter) for link in LINKS for counter in range(4)),
    ]


def profile_lines(nvml: Any) -> Iterator[str]:
    """The profile, by the module ``pynvml`` or one like it, which was initialised."""
    yield f"driver={_text(nvml.nvmlSystemGetDriverVersion())}"
    yield f"nvml={_text(nvml.nvmlSystemGetNVMLVersion())}"
    yield f"cuda={nvml.nvmlSystemGetCudaDriverVersion_v2()}"
    gpus = nvml.nvmlDeviceGetCount()
    yield f"count={gpus}"
    for number in range(gpus):
        try:
            gpu = nvml.nvmlDeviceGetHandleByIndex(number)
        except nvml.NVMLError as error:
            yield f"gpu.{number}.handle=!{error.value}"
            continue
        for query in queries(nvml):
            for key, said in _answers(nvml, gpu, query):
                yield f"gpu.{number}.{key}={said}"
        yield from (f"gpu.{number}.{line}" for line in _field_lines(nvml, gpu))


def _field_lines(nvml: Any, gpu: Any) -> Iterator[str]:
    try:
        values = nvml.nvmlDeviceGetFieldValues(gpu, list(FIELDS))
    except nvml.NVMLError as error:
        yield from (f"field.{field}=!{error.value}" for field in FIELDS)
        return
    for value in values:
        # The call succeeds as a whole; each value has a return code of its own.
        yield f"field.{value.fieldId}={f'!{value.nvmlReturn}' if value.nvmlReturn else value.value.ullVal}"


def _answers(nvml: Any, gpu: Any, query: Query) -> Iterator[tuple[str, str]]:
    try:
        said = getattr(nvml, query.call)(gpu, *query.arguments)
    except nvml.NVMLError as error:
        yield from ((key, f"!{error.value}") for key in query.keys)
        return
    for key, part in query.keys.items():
        if part is None:
            yield key, _text(len(said) if isinstance(said, list) else said)
        else:
            yield key, _text(getattr(said, part) if isinstance(part, str) else said[part])


def _text(said: Any) -> str:
    return said.decode() if isinstance(said, bytes) else str(said)
