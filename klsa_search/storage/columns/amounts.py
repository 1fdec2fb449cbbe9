"""Numbers with a currency or a percent sign: € 1.234,50 and 12,5 %, and signs after a number.

The unit of a number is what stands before or after it, such as €, EUR, kr and %.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Amount(NamedTuple):
    """A number in any local form, with its sign in front, and its unit; "" without one."""

    number: str
    unit: str


_CODES: Final = (
    "AED ARS AUD BDT BGN BHD BRL CAD CHF CLP CNY COP CZK DKK DZD EGP EUR GBP GEL GHS HKD HRK HUF "
    "IDR ILS INR IQD IRR ISK JOD JPY KES KRW KWD KZT LBP LKR MAD MXN MYR NGN NOK NZD OMR PEN PHP "
    "PKR PLN QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH USD UYU VND XOF ZAR"
)
_WORDS: Final = r"(?:[Kk]r|zł|Kč|Ft|lei|руб|р|грн|лв|den|din|KM|S?Fr|Rs|TL|RM|Rp|AED)\.?|Euro"
_SIGNS: Final = "[$¢-¥֏؋৲৳৻૱௹฿៛\u20a0-\u20c0﷼＄￡￥￦元円원]"
_UNIT: Final = rf"(?:[A-Z]{{1,2}}\$|{_SIGNS}|[%‰]|(?:{_CODES.replace(' ', '|')})\b|{_WORDS})"
_BLANKS: Final = "[ \u00a0\u202f]*"
_AMOUNT: Final = re.compile(
    rf"(?P<open>\()?(?P<first>[+\-−–])?{_BLANKS}(?P<before>{_UNIT})?{_BLANKS}(?P<inner>[+\-−–])?"
    r"(?P<number>(?:\d[\d.,'’ \u00a0\u202f]*)?\d|[.,]\d+)"
    rf"(?P<trailing>[\-−–])?{_BLANKS}(?P<after>{_UNIT})?(?P<last>[\-−–])?(?P<close>\))?",
    re.ASCII,
)
_DECIMALS: Final = re.compile(r"[.,]\d\d(?:\d\d)?\Z", re.ASCII)
_NOTHING: Final = re.compile(rf"(?:[\-–—−]{_BLANKS})?{_UNIT}(?:{_BLANKS}[\-–—−])?")


def amount(text: str) -> Amount | None:
    """Return number and unit of a text without blanks around it; None if it is something else.

    A sign may stand after the number, and parentheses mean a negative one, if it has a unit or two
    decimals, as accountants and SAP write them.

    >>> amount("€ 1.234,50"), amount("1 234,00 kr")
    (Amount(number='1.234,50', unit='€'), Amount(number='1 234,00', unit='kr'))
    >>> amount("1.234,50-"), amount("(5 %)"), amount("2-"), amount("M8")
    (Amount(number='-1.234,50', unit=''), Amount(number='-5', unit='%'), None, None)
    """
    if text[:1].isdigit() and text[-1:].isdigit():
        return Amount(text, "")
    match = _AMOUNT.fullmatch(text)
    if match is None or (match["before"] and match["after"]):
        return None
    unit = (match["before"] or match["after"] or "").rstrip(".")
    enclosed = match["open"] is not None
    after = match["trailing"] or match["last"]
    signs = [sign for sign in (match["first"], match["inner"], after) if sign]
    if enclosed != (match["close"] is not None) or len(signs) + enclosed > 1:
        return None
    if (enclosed or after) and not (unit or _DECIMALS.search(match["number"])):
        return None
    sign = "-" if enclosed or (signs and signs[0] != "+") else "".join(signs)
    return Amount(sign + match["number"], unit)


def number_of(text: str) -> str:
    """Return the number of a text without its unit, or the text if it is something else.

    >>> number_of(" 2,50 € "), number_of("two")
    ('2,50', 'two')
    """
    text = text.strip()
    read = amount(text)
    return text if read is None else read.number


def is_unit_alone(text: str) -> bool:
    """Return whether a text is a unit, perhaps with a dash: a missing amount, as Excel writes it.

    >>> is_unit_alone("-   €"), is_unit_alone("€ 5")
    (True, False)
    """
    return _NOTHING.fullmatch(text) is not None
