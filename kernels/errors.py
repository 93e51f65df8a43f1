"""What the kernels refuse, and why. A launch that is wrong on a GPU reads garbage or kills the process, so it is refused before."""

from seawall.errors import SeawallError, UsageError


class KernelArgumentError(UsageError):
    """A buffer, a range, a type or a launch that a kernel was not made for."""


class SplitElementError(KernelArgumentError):
    """A buffer begins or ends inside an element, or a part of a split element never came."""


class NoGpuError(SeawallError):
    """There is no usable GPU, or the packages that drive one are not installed."""


class KernelBuildError(SeawallError):
    """A kernel was compiled into something other than what was measured: it spills registers to memory."""
