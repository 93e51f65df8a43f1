"""Element types by the names that torch uses, with their widths in bits."""

BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
    "float4_e2m1fn_x2": 8, "float6_e2m3": 6, "float6_e3m2": 6, "float4": 4,
    "complex32": 32, "complex64": 64, "complex128": 128,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8,
    "bool": 8, "qint8": 8, "quint8": 8, "qint32": 32, "quint4x2": 8, "quint2x4": 8,
    "bits8": 8, "bits16": 16, "bits1x8": 8, "bits2x4": 8, "bits4x2": 8,
}  # fmt: skip
"""``float4_e2m1fn_x2`` is torch's pair of four-bit numbers in one byte; ``float4`` is safetensors' F4, counted singly."""

ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}

STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64",
    "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "uint8", "TypedStorage": "uint8",
}  # fmt: skip
"""Class names of typed storages in pickles (torch/storage.py) and what they hold."""

SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32", "U32": "uint32",
    "I64": "int64", "U64": "uint64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
    "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F4": "float4", "F6_E2M3": "float6_e2m3", "F6_E3M2": "float6_e3m2",
}  # fmt: skip
"""Spelling in safetensors headers (safetensors 0.8, Dtype)."""


def canonical(name: str) -> str:
    """The one spelling of a torch dtype's name."""
    return ALIASES.get(name, name)


def can_be_non_finite(dtype: str) -> bool:
    """Whether values of this type can be NaN or infinite."""
    return dtype.startswith(("float", "bfloat", "complex")) and dtype not in ("float4_e2m1fn_x2", "float4", "float6_e2m3", "float6_e3m2")
