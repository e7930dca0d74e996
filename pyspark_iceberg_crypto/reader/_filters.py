"""Filters by numbers that a column's type does not have, such as 3000000000 for an int.

PyIceberg rounds a fraction, takes such a number in a set for the largest or smallest one of the type, and has null be
less or greater than it, too.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

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
    Or,
    SetPredicate,
)
from pyiceberg.expressions.literals import AboveMax, BelowMin, FloatLiteral, Literal, literal
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, FloatType, IcebergType, IntegerType, LongType

_LIMITS: dict[type[IcebergType], tuple[float, float]] = {
    IntegerType: (IntegerType.min, IntegerType.max),
    LongType: (LongType.min, LongType.max),
    FloatType: (FloatType.min, FloatType.max),
    DateType: (IntegerType.min, IntegerType.max),
}


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
            kind = term.bind(schema, case_sensitive).ref().field.field_type
            fit = _fit(value, kind)
            if fit is None:
                return _without(row_filter, Decimal(value.value), *_LIMITS[type(kind)])
            return row_filter if fit is value else type(row_filter)(term, fit)
        case SetPredicate(term=term, literals=literals):
            kind = term.bind(schema, case_sensitive).ref().field.field_type
            fits = {one: _fit(one, kind) for one in literals}
            if any(fit is not one for one, fit in fits.items()):
                kept = {fit for fit in fits.values() if fit is not None}
                found = type(row_filter)(term, kept)
                # null is not in a set, however few are left in it
                return Or(IsNull(term=term), found) if isinstance(row_filter, NotIn) else found
    return row_filter


def _fit(given: Literal[Any], kind: IcebergType) -> Literal[Any] | None:
    """Return a literal that a type has; None if that has no such number."""
    fit = given.to(kind)
    if isinstance(fit, AboveMax | BelowMin):
        value = Decimal(given.value)
        is_float = isinstance(kind, FloatType) and value.is_infinite()
        return FloatLiteral(float(value)) if is_float else None
    if isinstance(kind, IntegerType | LongType) and fit.value != Decimal(given.value):
        return None
    return given


def _without(
    predicate: LiteralPredicate, value: Decimal, lowest: float, highest: float
) -> BooleanExpression:
    """Compare with numbers of the type instead, so that null and NaN are not taken for one."""
    term = predicate.term
    below = LessThan(term=term, value=literal(lowest))
    above = GreaterThan(term=term, value=literal(highest))
    match predicate:
        case LessThan() | LessThanOrEqual():
            top = highest if value > highest else math.floor(value)
            return below if value < lowest else LessThanOrEqual(term=term, value=literal(top))
        case GreaterThan() | GreaterThanOrEqual():
            bottom = lowest if value < lowest else math.ceil(value)
            return (
                above if value > highest else GreaterThanOrEqual(term=term, value=literal(bottom))
            )
        case EqualTo():
            return And(below, above)
        case NotEqualTo():
            rest = LessThanOrEqual(term=term, value=literal(highest))
            return Or(IsNaN(term=term), rest, above)
    return predicate
