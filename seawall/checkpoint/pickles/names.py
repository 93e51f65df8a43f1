"""What the names in a pickle mean: harmless, dangerous, or not known.

The harmless list was read off checkpoints of torch 2.13, transformers 5.24, accelerate 1.15, peft 0.21, deepspeed 0.19, megatron-core 0.16,
lightning 2.6 and torchao 0.18. A name that is not in it is a reason to look, not proof of malice. The dangerous list holds what
runs code, opens
files or sockets, or reaches any of that through an attribute; it covers what picklescan and fickling call unsafe (the nightly
tests compare).
"""

import re
from enum import IntEnum


class Standing(IntEnum):
    """Ordered: the worst name of a pickle speaks for it."""

    HARMLESS = 0
    UNKNOWN = 1
    DANGEROUS = 2


BUILTINS = frozenset({"builtins", "__builtin__", "__builtins__"})

_HARMLESS_BUILTINS = frozenset(
    "object bytearray bytes complex dict list set frozenset tuple slice range xrange int float str bool long unicode "
    "NotImplemented Ellipsis Exception ValueError TypeError KeyError RuntimeError StopIteration OSError IndexError AttributeError".split()
)
_DANGEROUS_BUILTINS = frozenset(
    "eval exec execfile compile open file __import__ getattr setattr delattr hasattr globals locals vars dir input raw_input breakpoint "
    "apply reload reduce map filter __build_class__ memoryview help exit quit".split()
)
_HARMLESS = frozenset(
    """
    collections.OrderedDict collections.defaultdict collections.Counter collections.deque collections.ChainMap datetime.datetime
    datetime.date datetime.time datetime.timedelta datetime.timezone decimal.Decimal fractions.Fraction pathlib.PosixPath
    pathlib.WindowsPath pathlib.PurePosixPath pathlib.PureWindowsPath pathlib.Path pathlib.PurePath pathlib._local.PosixPath
    pathlib._local.WindowsPath pathlib._local.PurePosixPath uuid.UUID uuid.SafeUUID types.SimpleNamespace types.NoneType
    argparse.Namespace random.Random http.HTTPStatus copyreg._reconstructor copy_reg._reconstructor copyreg.__newobj__
    copy_reg.__newobj__ copyreg.__newobj_ex__ _codecs.encode functools.partial logging.getLogger logging.Logger re._compile
    zoneinfo.ZoneInfo zoneinfo.ZoneInfo._unpickle array.array array._array_reconstructor _io.BytesIO io.BytesIO _io.StringIO
    io.StringIO numpy.ndarray numpy.dtype numpy.core.multiarray._reconstruct numpy._core.multiarray._reconstruct
    numpy.core.multiarray.scalar numpy._core.multiarray.scalar numpy.core.numeric._frombuffer numpy._core.numeric._frombuffer
    numpy.random._pickle.__randomstate_ctor numpy.random._pickle.__bit_generator_ctor numpy.random._pickle.__generator_ctor
    numpy.random._mt19937.MT19937 numpy.random._pcg64.PCG64 numpy.random._pcg64.PCG64DXSM numpy.random._philox.Philox
    numpy.random._sfc64.SFC64 numpy.random.mtrand.RandomState numpy.random._generator.Generator torch.Size torch.Tensor torch.device
    torch.Generator torch.strided torch.sparse_coo torch.sparse_csr torch.sparse_csc torch.jagged torch.per_tensor_affine
    torch.per_channel_affine torch.per_tensor_symmetric torch.per_channel_symmetric torch.contiguous_format torch.channels_last
    torch.channels_last_3d torch.preserve_format torch.memory_format torch.dtype torch.layout torch.serialization._get_layout
    torch.storage._load_from_bytes torch._C._nn.gelu torch.nn.functional.relu torch.nn.functional.gelu torch.nn.functional.silu
    torch._C._nn.silu torch.relu torch.tanh torch.sigmoid torch.nn.parameter.Parameter torch.nn.parameter.Buffer
    torch.nn.parameter.UninitializedParameter torch.ScriptObject torch.finfo torch.iinfo torch._C._nn.softplus
    torch.jit._pickle.build_intlist torch.jit._pickle.build_tensorlist torch.jit._pickle.build_doublelist
    torch.jit._pickle.build_boollist torch.jit._pickle.build_tensor_from_id torch.jit._pickle.restore_type_tag
    torch.optim.lr_scheduler._enable_get_lr_call torch.nn.parallel.distributed.DistributedDataParallel
    torch.amp.grad_scaler.GradScaler torch.cuda.amp.grad_scaler.GradScaler torch.amp.grad_scaler._refresh_per_optimizer_state
    torch.cuda.amp.grad_scaler._refresh_per_optimizer_state torch.amp.grad_scaler.OptState torch.cuda.amp.grad_scaler.OptState
    torch._prims_common.DeviceLikeType torch.utils._pytree.tree_map deepspeed.utils.tensor_fragment.fragment_address
    torch.nested._internal.nested_tensor.NestedTensor torch.nested._internal.nested_tensor._rebuild_njt
    torch._dynamo.decorators._DimRange
    """.split()
)
_CLASS = r"(?:\w+\.)*_*[A-Z]\w*(?:\.[A-Z]\w*)*"
"""A dotted path that ends in a class by its spelling. Building a class of a known library runs only what that library put there."""
_LIBRARIES = (
    "transformers accelerate deepspeed megatron peft lightning lightning_fabric pytorch_lightning torchao diffusers timm nemo omegaconf "
    "bitsandbytes trl torchmetrics apex transformer_engine fairscale verl torchtitan torchtune composer tokenizers sentence_transformers "
    "torchvision torchaudio flash_attn mamba_ssm xformers safetensors huggingface_hub fairseq fairseq2 yacs.config addict torch_ema"
).split()
_HARMLESS_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        r"torch(?:\.cuda|\.storage|\.hpu|\.npu|\.xpu)?\.\w*Storage",
        r"torch\.(?:u?int\d+|u?int[1-7]|float\d*|bfloat16|half|double|long|short|bool|cfloat|cdouble|complex\d+|float\d+_\w+|q(?:u?int)\w+|bits\w+)",
        r"torch\._utils\._(?:rebuild|unflatten)_\w+",
        r"torch\._tensor\._rebuild_\w+",
        r"torch\.(?:nn\.modules|nn\.utils|nn\.quantized|ao|quantization|optim|amp)\." + _CLASS,
        r"torch\.distributed\.(?:checkpoint|tensor|_tensor|_shard|device_mesh|fsdp|_composable|optim)\." + _CLASS,
        r"torch\.distributed\.checkpoint\.metadata\.\w+",
        r"torch\.distributed\.tensor\._api\.DTensor",
        r"torch\._subclasses\." + _CLASS,
        r"torch\.utils\.data\.\w+\." + _CLASS,
        r"numpy\.(?:u?int(?:8|16|32|64)|float(?:16|32|64|128)|bool_?|complex(?:64|128)|str_|bytes_|object_|void|intc|uintc|longlong)",
        r"numpy\.dtypes\.\w+DType",
        r"ml_dtypes\.\w+",
        r"__main__\." + _CLASS,
        r"__torch__(?:\.\w+)+",
        *(re.escape(library) + r"\." + _CLASS for library in _LIBRARIES),
    )
)
_DANGEROUS_MODULES = frozenset(
    """
    _frozen_importlib _frozen_importlib_external _imp _signal compileall py_compile syslog select selectors glob filecmp os posix nt
    subprocess _posixsubprocess sys shutil runpy importlib imp pickle _pickle cPickle _compat_pickle dill cloudpickle joblib marshal
    jsonpickle shelve webbrowser socket _socket ssl ctypes _ctypes cffi _cffi_backend code codeop pty pdb bdb profile cProfile trace
    timeit doctest unittest pytest multiprocessing asyncio concurrent zipimport pkgutil pip ensurepip venv urllib urllib2 urllib3
    httplib ftplib smtplib telnetlib imaplib poplib nntplib xmlrpc requests httpx aiohttp paramiko fabric commands popen2 distutils
    setuptools pydoc lib2to3 idlelib tempfile fileinput linecache inspect gc faulthandler tracemalloc sched signal threading _thread
    thread socketserver wsgiref cgi cgitb http.server http.client zipfile tarfile bz2.BZ2File gzip lzma.LZMAFile dbm sqlite3
    _sqlite3 mmap fcntl resource termios tty turtle tkinter _tkinter antigravity _aix_support _osx_support _pyrepl nturl2path
    readline rlcompleter site sysconfig test platform getpass crypt spwd pwd grp atexit aifc logging.config logging.handlers
    builtins.__dict__ torch.hub torch.package torch.utils.cpp_extension torch.utils.collect_env torch.utils.bottleneck
    torch.utils.model_dump torch.utils._config_module torch.testing torch._inductor torch._dynamo torch.distributed.run
    torch.distributed.launch torch.distributed.launcher torch.distributed.elastic torch.distributed.rpc torch.multiprocessing
    torch.fx.experimental torch.cuda._sanitizer torch.jit.unsupported_tensor_ops torch.utils.data.datapipes.utils torch.utils.hipify
    torch.ops torch.classes torch.utils.benchmark torch.utils.tensorboard numpy.testing numpy.f2py numpy.distutils numpy.ctypeslib
    numpy.lib.npyio numpy.lib._npyio_impl numpy.lib.format pandas.io pandas.core.computation IPython ipykernel pexpect sh plumbum
    yaml ruamel jinja2 mako cython pyximport numba llvmlite tensorflow keras boto3 botocore s3fs fsspec gcsfs google ansible docker
    kubernetes
    """.split()
)
_DANGEROUS_NAMES = re.compile(
    r"""(?:
      operator\.(?:attrgetter|methodcaller|call|setitem|delitem|itemgetter)|_operator\.(?:attrgetter|methodcaller|call|setitem|delitem|itemgetter)
    | functools\.(?:reduce|cached_property|wraps|update_wrapper)|_functools\.reduce
    | types\.(?:FunctionType|LambdaType|CodeType|MethodType|ModuleType|BuiltinFunctionType|CoroutineType|GeneratorType|new_class)
    | (?:io|_io|codecs|_pyio)\.(?:open|open_code|FileIO|OpenWrapper|BufferedReader
        |BufferedWriter|TextIOWrapper|StreamReaderWriter|EncodedFile)
    | pathlib\.\w+\..+
    | itertools\.(?:starmap|accumulate|imap|ifilter)
    | torch\.fx\.(?:graph_module|_lazy_graph_module)\._?(?:reduce_\w+|\w+_from_src|exec_\w+)
    | torch\.(?:load|save|serialization\.(?:load|save|_load|_legacy_load|_open_file\w*
        |add_safe_globals|os|pickle)|jit\.(?:load|script|_script\.script)
        |from_file|fromfile|classes|ops|_ops\.\w+|_C\._?import_ir_module\w*|library\..+|import_ir_module|compile
        |storage\..*\.from_file|\w*Storage\.from_file
        |export\..+|onnx\..+|distributed\.checkpoint\.(?:load|save)\w*|_utils_internal\..+|utils\.data\..*worker.*|nn\.Module\.load.*|_classes\..+)
    | numpy\.(?:load|save|savez\w*|fromfile|memmap
        |loadtxt|genfromtxt|savetxt|fromregex|vectorize|apply_along_axis|core\.memmap\..+|_core\.memmap\..+
        |lib\..*(?:load|save|open|DataSource).*|ndarray\.tofile|piecewise|apply_over_axes)
    | pandas\.(?:eval|read_\w+|DataFrame\.\w+)
    | transformers\.(?:\w+\.)*(?:from_pretrained|get_class_\w+|get_cached_module_file|pipeline)
    | uuid\._\w+ | random\._os | logging\.(?:FileHandler|config|os|sys) | collections\._sys | copyreg\.pickle | copy\.copyreg
    )""",
    re.X,
)
_ESCAPES = frozenset("os sys _os _sys posix nt subprocess builtins __builtins__ shutil importlib ctypes pickle".split())
"""Parts of a module's path that can only be another module, imported there: ``collections._sys``."""
_DANGEROUS_PARTS = frozenset(
    """
    os sys posix nt subprocess builtins shutil importlib pickle cPickle runpy ctypes socket _os _sys eval exec execfile system popen
    __import__ import_module __globals__ __builtins__ __code__ __subclasses__ __dict__ __getattribute__ __class__ __bases__ __mro__
    __base__ __reduce__ __reduce_ex__ func_globals f_globals f_builtins gi_frame tb_frame __loader__ __spec__ __init__ __call__
    __setattr__ run_code check_output Popen check_call spawn execve execv
    """.split()
)
"""Parts of a dotted name that lead from a harmless module to a dangerous one: ``torch.serialization`` + ``os.system``."""


def judge_name(module: str, name: str) -> Standing:
    """How to take one global. Pure; looks at spelling only."""
    full = f"{module}.{name}"
    if module in BUILTINS:
        if name in _HARMLESS_BUILTINS:
            return Standing.HARMLESS
        return Standing.DANGEROUS if name.split(".")[0] in _DANGEROUS_BUILTINS or "." in name or name.startswith("__") else Standing.UNKNOWN
    if full in _HARMLESS:
        return Standing.HARMLESS
    parts = module.split(".")
    # Of the name too: from protocol 4 on, ``torch`` and ``hub.load`` is the same as ``torch.hub`` and ``load``.
    steps = full.split(".")
    if any(".".join(steps[:depth]) in _DANGEROUS_MODULES for depth in range(1, len(steps) + 1)):
        return Standing.DANGEROUS
    if _DANGEROUS_NAMES.fullmatch(full) or not _DANGEROUS_PARTS.isdisjoint(name.split(".")):
        return Standing.DANGEROUS
    if not _ESCAPES.isdisjoint(parts):
        return Standing.DANGEROUS
    if any(shape.fullmatch(full) for shape in _HARMLESS_SHAPES):
        return Standing.HARMLESS
    return Standing.UNKNOWN
