"""How what a vendor's library or program raises becomes one of our errors: by a table for each vendor."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_iceberg_crypto.errors import IcebergCryptoError, KmsUnavailableError, LoginFailedError

# What http.client and requests say of a header that cannot be sent; both go on to show it.
_HEADER_SHOWN = re.compile(r"invalid[^\n]*header value", re.IGNORECASE)
# The codes of answers that say that requests come too often.
_THROTTLED = ("429", "RESOURCE_EXHAUSTED", "Throttling", "hvac.exceptions.RateLimitExceeded")


class Rule(NamedTuple):
    """What errors mean.

    Attributes:
        codes: what the vendor calls them, with spaces between: its codes, or the full name of an exception class,
            which counts for subclasses.
        kind: the type of our error.
        hint: what to do about it. An error that the same call may not meet again needs none.
        problem: what is wrong. ``{what}`` stands for what did not work, ``{said}`` for the vendor's message,
            ``{code}`` for what the rule was found by; there may be names of the vendor's table beside them.
    """

    codes: str
    kind: type[IcebergCryptoError]
    hint: str = ""
    problem: str = "{what}: {said}"


@dataclass(frozen=True)
class ErrorTable:
    """The errors of one vendor.

    Attributes:
        rules: what they mean.
        read: takes an exception apart into its codes, most specific first, and its message.
    """

    rules: Sequence[Rule]
    read: Callable[[Exception], tuple[Sequence[str], str]] = lambda error: ((), str(error))

    def overruled(
        self,
        rules: Sequence[Rule],
        read: Callable[[Exception], tuple[Sequence[str], str]] | None = None,
    ) -> ErrorTable:
        """Return a table with other rules for some codes, and perhaps another way to take exceptions apart."""
        codes = {code for rule in rules for code in rule.codes.split()}
        kept = []
        for rule in self.rules:
            left = [code for code in rule.codes.split() if code not in codes]
            kept += [rule._replace(codes=" ".join(left))] if left else []
        return ErrorTable([*kept, *rules], read or self.read)

    @contextmanager
    def typed(self, what: str, *, once: str = "", **names: str) -> Iterator[None]:
        """Raise our errors in place of the vendor's. Those without a rule pass as they are.

        Args:
            what: what does not work if there is an error.
            once: for calls that must not be made twice, the hint of an error that leaves open whether the call
                was carried out.
            names: further words for the rules.
        """
        try:
            yield
        except IcebergCryptoError:
            raise
        except Exception as error:
            if shows_header(error):
                raise LoginFailedError(
                    f"{what}: a credential is not a valid header value",
                    "look for a line break in the environment variable or the file that holds the credential",
                ) from None
            codes, said = self.read(error)
            typed = self.find([*codes, *_classes(error)], what, said, once=once, **names)
            if typed is None:
                raise
            # A rule may leave out the vendor's message because it can hold a secret; so then does the traceback.
            raise typed from (error if said in typed.message else None)

    def find(
        self, codes: Sequence[str], what: str, said: str, *, once: str = "", **names: str
    ) -> IcebergCryptoError | None:
        """Make the error for the first code that has a rule, or return None."""
        rules = {code: rule for rule in self.rules for code in rule.codes.split()}
        for code in codes:
            if code in rules:
                _, kind, hint, problem = rules[code]
                words = {"what": what, "said": said, "code": code, **names}
                hints = [hint.format(**words), once if kind is KmsUnavailableError else ""]
                advice = "; ".join(filter(None, hints)) or "try again later"
                error = kind(problem.format(**words), advice)
                if isinstance(error, KmsUnavailableError):
                    error.throttled = code in _THROTTLED
                return error
        return None


def _classes(error: Exception) -> list[str]:
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    return [name.removeprefix("builtins.") for name in names]


def http_status(status: int) -> str:
    """Return the code that stands for an HTTP status in a table: "404", and "5xx" from 500 on."""
    return str(status) if status < 500 else "5xx"


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and those behind it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def shows_header(error: BaseException | None) -> bool:
    """Return whether an error, or one behind it, shows a header that could not be sent, and so a credential."""
    return any(_HEADER_SHOWN.search(str(one)) for one in causes(error))
