"""Filters by numbers that a column's type does not have, such as 3000000000 or 2.6 for an int.

PyIceberg rounds a fraction, takes such a number in a set for the largest or smallest one of the type, and has null be
less or greater than it, too.
"""

from __future__ import annotations

import struct
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    Or,
    SetPredicate,
)
from pyiceberg.expressions.literals import (
    AboveMax,
    BelowMin,
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    TimestampLiteral,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
)

_NUMBERS = (LongLiteral, FloatLiteral, DoubleLiteral, DecimalLiteral)
_DAY = 86_400_000_000  # in microseconds
_DIGITS = Context(prec=100)  # more than a decimal has


class _Lacking(NamedTuple):
    """A number that a type does not have; of a date in days."""

    number: Decimal
    kind: IcebergType


def fitting(
    row_filter: BooleanExpression, schema: Schema, case_sensitive: bool
) -> BooleanExpression:
    """Return a filter that means the same, by numbers that the columns' types have."""
    match row_filter:
        case Not(child=child):
            return Not(fitting(child, schema, case_sensitive))
        case And(left=left, right=right) | Or(left=left, right=right):
            parts = (fitting(one, schema, case_sensitive) for one in (left, right))
            return type(row_filter)(*parts)
        case LiteralPredicate(term=term, literal=value):
            fit = _fit(value, term.bind(schema, case_sensitive).ref().field.field_type)
            if isinstance(fit, _Lacking):
                return _without(row_filter, fit)
            return row_filter if fit is value else type(row_filter)(term, fit)
        case SetPredicate(term=term, literals=literals):
            kind = term.bind(schema, case_sensitive).ref().field.field_type
            fits = {one: _fit(one, kind) for one in literals}
            if any(fit is not one for one, fit in fits.items()):
                kept = {fit for fit in fits.values() if not isinstance(fit, _Lacking)}
                found = type(row_filter)(term, kept)
                # null is not in a set, however few are left in it
                if isinstance(row_filter, NotIn):
                    return Or(IsNull(term=term), found)
                return And(NotNull(term=term), found)
    return row_filter


def _fit(given: Literal[Any], kind: IcebergType) -> Literal[Any] | _Lacking:
    """Return a literal as a type has it, which for a float or double is rounded; or a number that the type lacks."""
    match kind:
        case FloatType():
            fit, value = given.to(kind), Decimal(given.value)
            if isinstance(fit, AboveMax | BelowMin) and value.is_finite():
                return _Lacking(value, kind)
            # Arrow compares floats, planning what they are as doubles
            return FloatLiteral(struct.unpack("<f", struct.pack("<f", float(value)))[0])
        case DoubleType():
            return given.to(kind)
        case DecimalType() if isinstance(given, _NUMBERS):
            number = Decimal(str(given.value))
        case DateType() if isinstance(given, TimestampLiteral):
            number = Decimal(given.value) / _DAY
        case IntegerType() | LongType():
            given.to(kind)  # which refuses what is no number
            number = Decimal(given.value)
        case _:
            return given
    lowest, highest = _limits(kind)
    if not lowest <= number <= highest or _rounded(number, kind, ROUND_FLOOR) != number:
        return _Lacking(number, kind)
    return (
        _literal(_rounded(number, kind, ROUND_FLOOR), kind)
        if isinstance(kind, DecimalType)
        else given
    )


def _without(predicate: LiteralPredicate, lacking: _Lacking) -> BooleanExpression:
    """Compare with the numbers of the type beside it instead, so that null and NaN are not taken for one."""
    term, (number, kind) = predicate.term, lacking
    lowest, highest = _limits(kind)
    below: BooleanExpression = LessThan(term=term, value=_literal(lowest, kind))
    if number >= lowest:
        beside = highest if number > highest else _rounded(number, kind, ROUND_FLOOR)
        below = LessThanOrEqual(term=term, value=_literal(beside, kind))
    above: BooleanExpression = GreaterThan(term=term, value=_literal(highest, kind))
    if number <= highest:
        beside = lowest if number < lowest else _rounded(number, kind, ROUND_CEILING)
        above = GreaterThanOrEqual(term=term, value=_literal(beside, kind))
    match predicate:
        case LessThan() | LessThanOrEqual():
            return below
        case GreaterThan() | GreaterThanOrEqual():
            return above
        case EqualTo():
            return And(NotNaN(term=term), below, above)
        case NotEqualTo():
            return Or(IsNaN(term=term), below, above)
    return predicate


def _limits(kind: IcebergType) -> tuple[Decimal, Decimal]:
    """Return the lowest and the highest number of a type."""
    match kind:
        case DecimalType(precision=precision, scale=scale):
            nines = (9,) * precision
            return Decimal((1, nines, -scale)), Decimal((0, nines, -scale))
        case FloatType() | LongType():
            return Decimal(kind.min), Decimal(kind.max)
    return Decimal(IntegerType.min), Decimal(IntegerType.max)


def _rounded(number: Decimal, kind: IcebergType, rounding: str) -> Decimal:
    scale = kind.scale if isinstance(kind, DecimalType) else 0
    return number.quantize(Decimal((0, (1,), -scale)), rounding, _DIGITS)


def _literal(number: Decimal, kind: IcebergType) -> Literal[Any]:
    match kind:
        case DecimalType():
            return DecimalLiteral(number)
        case FloatType():
            return FloatLiteral(float(number))
    return LongLiteral(int(number))
