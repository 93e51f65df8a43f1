"""The inert machine builds what pickle builds, for every protocol, and imports nothing for it."""

import contextlib
import pickle
import random
import struct
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.checkpoint.inspection import Verdict
from seawall.checkpoint.pickles.judge import judge_broken, judge_pickle, unfolded
from seawall.checkpoint.pickles.machine import read_pickle
from seawall.checkpoint.pickles.names import Standing, judge_name
from seawall.checkpoint.pickles.nodes import Built, Group, Mapping, Name
from seawall.errors import CorruptError, HostileError, SeawallError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner) | st.tuples() | st.tuples(inner, inner, inner, inner)
    ),
    max_leaves=30,
)


def plain(node: Any) -> Any:
    """A node as the Python value it stands for."""
    if isinstance(node, Mapping):
        return {plain(key): plain(value) for key, value in node.pairs}
    if isinstance(node, Group):
        return {plain(member) for member in node.members}
    if isinstance(node, list):
        return [plain(part) for part in node]
    if isinstance(node, tuple):
        return tuple(plain(part) for part in node)
    if isinstance(node, Built) and node.name in ("__builtin__.bytes", "builtins.bytes") and node.args == ():
        return b""
    return node


@settings(max_examples=150, deadline=None)
@given(PLAIN, st.integers(0, 5))
def test_plain_values_come_out_as_they_went_in(value: Any, protocol: int) -> None:
    raw = pickle.dumps(value, protocol=protocol)
    found = read_pickle(raw)
    assert found.end == len(raw)
    assert plain(found.top) == value
    assert not [finding for finding in judge_pickle(found) if finding.verdict is Verdict.HOSTILE]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_noise_ends_in_a_typed_error_or_a_value(noise: bytes) -> None:
    with contextlib.suppress(SeawallError):
        judge_pickle(read_pickle(noise))


def test_nothing_is_imported() -> None:
    assert "antigravity" not in sys.modules
    found = read_pickle(b"cantigravity\nfly\n(tR.")
    assert isinstance(found.top, Built) and isinstance(found.top.maker, Name)
    assert "antigravity" not in sys.modules
    assert judge_pickle(found)[0].verdict is Verdict.HOSTILE


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", CorruptError),
        (b"\x80\x04", CorruptError),
        (b"\x80\x09N.", CorruptError),
        (b"N", CorruptError),
        (b"0.", CorruptError),
        (b"(N.", CorruptError),
        (b"h\x00.", CorruptError),
        (b"\xff.", CorruptError),
        (b"\x97.", CorruptError),
        (b"Sabc\n.", CorruptError),
        (b"X\x05\x00\x00\x00\xff\xff\xff\xff\xff.", CorruptError),
        (b"L" + b"9" * 5000 + b"L\n.", HostileError),
        (b"Nr\xff\xff\xff\x7f.", HostileError),
        (b"\x8d" + struct.pack("<Q", 1 << 50), HostileError),
        (b"\x95" + struct.pack("<Q", 1 << 50), HostileError),
        (b"]" * 3_000_000, HostileError),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else None,
)
def test_what_no_unpickler_should_accept(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_pickle(raw)


def test_shared_parts_are_counted_without_being_walked() -> None:
    node: Any = [1]
    for _ in range(200):
        node = [node, node]
    assert unfolded(node) > 1 << 200
    node.append(node)
    assert unfolded(node) > 1 << 200


@pytest.mark.parametrize(
    "full",
    """
    os.system posix.system nt.system subprocess.Popen subprocess.check_output builtins.eval builtins.exec builtins.getattr
    builtins.__import__ builtins.open __builtin__.eval __builtin__.apply sys.modules shutil.rmtree runpy._run_code
    importlib.import_module pickle.loads _pickle.loads cPickle.load dill.loads cloudpickle.loads joblib.load marshal.loads
    webbrowser.open socket.socket ctypes.CDLL operator.attrgetter operator.methodcaller code.InteractiveInterpreter pty.spawn
    pdb.run timeit.timeit torch.load torch.hub.load torch.jit.load torch.serialization.load
    torch.utils.cpp_extension.load_inline torch.package.PackageImporter numpy.load numpy.testing._private.utils.runstring
    numpy.f2py.crackfortran.getlincoef types.CodeType types.FunctionType io.open codecs.open pathlib.Path.unlink
    urllib.request.urlopen requests.get asyncio.subprocess.create_subprocess_shell multiprocessing.util.spawnv_passfds
    logging.config._resolve pydoc.pipepager torch.serialization.os.system collections._sys.modules random._os.system
    idlelib.pyshell.ModifiedInterpreter.runcode torch._inductor.codecache.compile_file torch._dynamo.guards.GuardBuilder.get
    torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate
    """.split(),
)
def test_dangerous(full: str) -> None:
    module, _, name = full.rpartition(".")
    assert judge_name(module, name) is Standing.DANGEROUS
    # Protocol 4 may split a dotted name anywhere.
    head, _, tail = full.partition(".")
    assert judge_name(head, tail) is not Standing.HARMLESS


@pytest.mark.parametrize(
    "full",
    """
    __builtin__.bytearray __builtin__.complex __builtin__.dict __builtin__.long __builtin__.set __builtin__.slice
    __builtin__.xrange __main__.GPTConfig __torch__.torch.nn.modules.activation.ReLU
    __torch__.torch.nn.modules.container.Sequential __torch__.torch.nn.modules.linear.Linear _codecs.encode
    accelerate.state.PartialState accelerate.utils.dataclasses.DeepSpeedPlugin accelerate.utils.dataclasses.DistributedType
    argparse.Namespace collections.Counter collections.OrderedDict collections.defaultdict datetime.datetime decimal.Decimal
    deepspeed.runtime.fp16.loss_scaler.LossScaler deepspeed.runtime.zero.config.ZeroStageEnum
    deepspeed.utils.tensor_fragment.fragment_address functools.partial http.HTTPStatus numpy._core.multiarray._reconstruct
    numpy._core.multiarray.scalar numpy.dtype numpy.ndarray omegaconf.dictconfig.DictConfig pathlib.PosixPath
    peft.tuners.lora.config.LoraConfig torch.BFloat16Storage torch.BoolStorage torch.ByteStorage torch.CharStorage
    torch.ComplexFloatStorage torch.FloatStorage torch.IntStorage torch.LongStorage torch.QInt8Storage torch.Size torch.Tensor
    torch._C._nn.gelu torch._tensor._rebuild_from_type_v2 torch._utils._rebuild_meta_tensor_no_storage
    torch._utils._rebuild_nested_tensor torch._utils._rebuild_parameter torch._utils._rebuild_parameter_with_state
    torch._utils._rebuild_qtensor torch._utils._rebuild_sparse_tensor torch._utils._rebuild_tensor_v2
    torch._utils._rebuild_tensor_v3 torch._utils._rebuild_wrapper_subclass torch.bfloat16 torch.bool torch.complex32
    torch.complex64 torch.device torch.distributed.checkpoint.filesystem._StorageInfo
    torch.distributed.checkpoint.metadata.BytesStorageMetadata torch.distributed.checkpoint.metadata.ChunkStorageMetadata
    torch.distributed.checkpoint.metadata.Metadata torch.distributed.checkpoint.metadata.MetadataIndex
    torch.distributed.checkpoint.metadata.StorageMeta torch.distributed.checkpoint.metadata.TensorProperties
    torch.distributed.checkpoint.metadata.TensorStorageMetadata torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING
    torch.distributed.checkpoint.planner.SavePlan torch.distributed.checkpoint.planner.TensorWriteData
    torch.distributed.checkpoint.planner.WriteItem torch.distributed.checkpoint.planner.WriteItemType
    torch.distributed.device_mesh.DeviceMesh torch.distributed.tensor.DTensor torch.float32 torch.float4_e2m1fn_x2
    torch.float8_e4m3fn torch.float8_e4m3fnuz torch.float8_e5m2 torch.float8_e5m2fnuz torch.float8_e8m0fnu torch.int32
    torch.nn.modules.activation.GELU torch.nn.modules.container.Sequential torch.nn.modules.linear.Linear
    torch.nn.modules.normalization.LayerNorm torch.nn.modules.sparse.Embedding torch.nn.parameter.Parameter
    torch.optim.adamw.AdamW torch.per_tensor_affine torch.serialization._get_layout torch.storage.UntypedStorage
    torch.storage._load_from_bytes torch.uint16 torch.uint32 torch.uint64 torchao.optim.subclass_8bit.OptimState8bit
    torchao.quantization.Int8Tensor transformers.integrations.deepspeed.HfDeepSpeedConfig
    transformers.integrations.deepspeed.HfTrainerDeepSpeedConfig transformers.trainer_pt_utils.AcceleratorConfig
    transformers.trainer_utils.HubStrategy transformers.trainer_utils.IntervalStrategy transformers.trainer_utils.SaveStrategy
    transformers.trainer_utils.SchedulerType transformers.training_args.OptimizerNames
    transformers.training_args.TrainingArguments types.SimpleNamespace uuid.UUID
    """.split(),
)
def test_harmless(full: str) -> None:
    module, _, name = full.rpartition(".")
    assert judge_name(module, name) is Standing.HARMLESS


@pytest.mark.parametrize("full", ["acme.trainer.State", "torch.nn.init.normal_", "numpy.add", "collections.abc.Iterable", "builtins.print"])
def test_unknown(full: str) -> None:
    module, _, name = full.rpartition(".")
    assert judge_name(module, name) is Standing.UNKNOWN


def test_members_of_known_enumerations_by_getattr_are_let_through() -> None:
    """Python 3.11.0 to 3.11.3 pickled enumeration members so."""
    raw = b"cbuiltins\ngetattr\nctransformers.trainer_utils\nSchedulerType\nX\x06\x00\x00\x00LINEAR\x86R."
    assert [finding.verdict for finding in judge_pickle(read_pickle(raw))] == [Verdict.WARN]
    called = raw[:-1] + b")R."
    assert Verdict.HOSTILE in [finding.verdict for finding in judge_pickle(read_pickle(called))]


LOADING = b"\x80\x02ctorch.storage\n_load_from_bytes\n"
EVIL = b"cposix\nsystem\nX\x04\x00\x00\x00true\x85R"


def _raw(value: bytes) -> bytes:
    return b"B" + struct.pack("<I", len(value)) + value


@pytest.mark.parametrize(
    "inner",
    [
        _raw(b"\x80\x01" + EVIL + b"."),
        _raw(b"N0" + EVIL + b"."),
        _raw(b"\x80\x02" + EVIL + b"\xff"),
        b"c_codecs\nencode\nX\x04\x00\x00\x00N0N.X\x05\x00\x00\x00utf-8\x86R",
        b"cbuiltins\nbytes\n(K\x80K\x02l\x85R",
        b"X\x04\x00\x00\x00text",
    ],
)
def test_what_is_loaded_from_bytes_is_looked_into_or_refused(inner: bytes) -> None:
    assert Verdict.HOSTILE in [finding.verdict for finding in judge_pickle(read_pickle(LOADING + inner + b"\x85R."))]


@pytest.mark.parametrize(
    "raw",
    [
        b"\x80\x02cfunctools\npartial\nctorch.storage\n_load_from_bytes\nN\x86R.",
        b"\x80\x02]ctorch.storage\n_load_from_bytes\na.",
        b"\x80\x02cfunctools\npartial\n)\x81(ctorch.storage\n_load_from_bytes\n)}Ntb0N.",
    ],
)
def test_who_loads_from_bytes_is_not_handed_on(raw: bytes) -> None:
    assert Verdict.HOSTILE in [finding.verdict for finding in judge_pickle(read_pickle(raw))]


def test_what_is_loaded_from_bytes_may_be_a_tensor_of_the_old_form() -> None:
    raw = _raw(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + b"\x80\x02M\xe9\x03." + b"\x80\x02}." + b"\x80\x02]." + b"\x80\x02].")
    assert judge_pickle(read_pickle(LOADING + raw + b"\x85R.")) == []


def test_what_stands_before_a_break_is_judged() -> None:
    with pytest.raises(CorruptError) as caught:
        read_pickle(b"\x80\x02" + EVIL + b"\xff")
    assert [finding.verdict for finding in judge_broken(caught.value)] == [Verdict.HOSTILE]
    with pytest.raises(CorruptError) as caught:
        read_pickle(b"\x80\x02ccollections\nOrderedDict\n)R\xff")
    assert judge_broken(caught.value) == []


def test_noise_in_byte_strings_is_no_alarm() -> None:
    """Random states are kept as bytes, thousands of them in a large run: some begin as a pickle would, and claim lengths of gigabytes."""
    claim = b"X\xff\xff\xff\xff" + bytes(range(40))
    values = [opener + claim for opener in (b"(", b"}", b"]", b"c", b"N", b"\x80\x02")] + [b"(K\x05Na" + b"." + bytes(20)]
    values += [random.Random(seed).randbytes(2500) for seed in range(3000)]
    assert judge_pickle(read_pickle(pickle.dumps(values, 4))) == []
