"""A store that fails on purpose: ``FaultyStore(store).fail("put", error, times=2).after("finish", timed_out)``."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

from seawall.stores.base import Store
from seawall.stores.wrapper import Result, Wrapper

Fault = BaseException | Callable[[str], None]
"""An error to raise, or something to do with the key, which may raise."""


@dataclass
class _Rule:
    when: Literal["instead", "before", "after"]
    method: str
    fault: Fault
    times: int | None
    key: str | None


class FaultyStore(Wrapper):
    """Rules are for one method, one key or all, and a number of calls; those that apply are used up in the order in which they were given.

    Method names are those of :class:`Wrapper.around`. Safe to use from several threads.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def fail(self, method: str, error: BaseException, *, times: int | None = 1, key: str | None = None) -> Self:
        """Raise instead of doing it; ``times=None`` for ever."""
        return self._with("instead", method, error, times, key)

    def before(self, method: str, callback: Callable[[str], None], *, times: int | None = 1, key: str | None = None) -> Self:
        """Call back with the key, then do it."""
        return self._with("before", method, callback, times, key)

    def after(self, method: str, fault: Fault, *, times: int | None = 1, key: str | None = None) -> Self:
        """Do it, then call back or raise: an answer that was lost on its way."""
        return self._with("after", method, fault, times, key)

    @property
    def unused(self) -> int:
        """Rules that still wait for a call. A test that expects its fault to strike checks this."""
        return sum(rule.times is not None for rule in self._rules)

    def around(self, method: str, key: str, action: Callable[[], Result]) -> Result:
        instead = self._take("instead", method, key)
        if instead is not None:
            _strike(instead, key)
        before = self._take("before", method, key)
        if before is not None:
            _strike(before, key)
        result = action()
        after = self._take("after", method, key)
        if after is not None:
            _strike(after, key)
        return result

    def _with(self, when: Literal["instead", "before", "after"], method: str, fault: Fault, times: int | None, key: str | None) -> Self:
        with self._lock:
            self._rules.append(_Rule(when, method, fault, times, key))
        return self

    def _take(self, when: str, method: str, key: str) -> Fault | None:
        with self._lock:
            for rule in self._rules:
                if rule.when == when and rule.method == method and rule.key in (None, key):
                    if rule.times is not None:
                        rule.times -= 1
                        if not rule.times:
                            self._rules.remove(rule)
                    return rule.fault
        return None


def _strike(fault: Fault, key: str) -> None:
    if isinstance(fault, BaseException):
        # The same error may strike often: without this, each time would show the places of all times before.
        raise fault.with_traceback(None)
    fault(key)
