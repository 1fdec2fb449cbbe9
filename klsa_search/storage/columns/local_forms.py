"""Numbers, dates and amounts as they are written in a country: 1.250,50, 28.12.2025 and € 12.

Forms that mean the same everywhere are read in every field. Others, such as 1,250 or 3/5/2025, are
read as the settings `decimal` and `dates` say, or as all values of the fields show in a build.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from klsa_search.core.build_settings import DateOrder, DecimalSign


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
UNIT_ALONE: Final = re.compile(rf"(?:[\-–—−]{_BLANKS})?{_UNIT}(?:{_BLANKS}[\-–—−])?")
"""A unit, perhaps with a dash, as `-   €`: a missing amount, as Excel writes it."""


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


class LocalForms(NamedTuple):
    """How ambiguous dates and numbers are read; None if they are not.

    dates    order of day and month, as in 3/5/2025
    decimal  decimal sign, as in 1,250
    units    NAME=UNIT of each field whose numbers have a currency or percent sign, sorted
    """

    dates: DateOrder | None = None
    decimal: DecimalSign | None = None
    units: tuple[str, ...] = ()

    def unit(self, name: str) -> str:
        """Return the unit of a field; "" without one."""
        return dict(assignment.rpartition("=")[::2] for assignment in self.units).get(name, "")


GENERAL: Final = LocalForms()
"""Reads no ambiguous form."""

_SPACES: Final = " \u00a0\u202f'\u2019"
_COMMA: Final = re.compile(
    rf"[+-]?(?:[1-9]\d{{0,2}}(?:[.{_SPACES}]\d{{3}})+|\d+)(?:,\d+)?", re.ASCII
)
_POINT: Final = re.compile(
    rf"[+-]?(?:[1-9]\d{{0,2}}(?:[,{_SPACES}]\d{{3}})+|[1-9]\d?(?:,\d\d)+,\d{{3}}|\d+)(?:\.\d+)?",
    re.ASCII,
)
MAY_BE_THOUSANDS: Final = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
"""A number whose only separator could be of decimals or of thousands: 1.250, but not 1.2500."""
_GROUPS: Final = re.compile(rf"[.,{_SPACES}]")
_TIME: Final = (
    r"(?:,?[ T]\s*(?P<time>\d{1,2}[:h]\d\d(?::\d\d)?)(?P<fraction>\.\d{1,9})?"
    r"\s*(?P<half>[AaPp][Mm])?"
    r"(?: Uhr)?(?: ?(?P<zone>Z|UTC|GMT|(?:UTC|GMT)?[+-]\d\d?(?::?\d\d)?))?(?: \([\w ]+\))?)?"
)
_DOTTED: Final = re.compile(rf"(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d{{4}}){_TIME}", re.ASCII)
_DOTTED_SHORT: Final = re.compile(rf"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d\d){_TIME}", re.ASCII)
_YEAR_FIRST: Final = re.compile(
    rf"(?P<y>\d{{4}})(?P<s>[/-])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?){_TIME}", re.ASCII
)
_EAST_ASIAN: Final = (
    re.compile(rf"(?P<y>\d{{4}})[年년] ?(?P<m>\d\d?)[月월] ?(?P<d>\d\d?)[日일]{_TIME}", re.ASCII),
    re.compile(rf"(?P<y>\d{{4}})\. ?(?P<m>\d\d?)\. ?(?P<d>\d\d?)\.{_TIME}", re.ASCII),
    re.compile(rf"(?P<y>\d{{4}})\.(?P<m>\d\d)\.(?P<d>\d\d){_TIME}", re.ASCII),
)
_YEAR_AND_MONTH: Final = re.compile(r"(?P<y>(?:1[5-9]|20)\d\d)-(?P<m>0[1-9]|1[0-2])", re.ASCII)
_TWO_YEARS: Final = re.compile(r"\d\d(\d\d)-(\d\d)", re.ASCII)
_YEAR: Final = r"(?P<y>\d{4}|\d\d)"
_DAY_FIRST: Final = re.compile(
    rf"(?P<d>\d\d?)(?P<s>[/-])(?P<m>\d\d?)(?P=s){_YEAR}{_TIME}", re.ASCII
)
_MONTH_FIRST: Final = re.compile(
    rf"(?P<m>\d\d?)(?P<s>[/-])(?P<d>\d\d?)(?P=s){_YEAR}{_TIME}", re.ASCII
)
YEAR_MAY_BE_FIRST: Final = re.compile(r"\d\d-(0\d|1[0-2])-([0-2]\d|3[01])(?!\d).*", re.ASCII)
"""A date between hyphens that could begin or end with a year of two digits: 24-12-31."""
SHORT_YEAR: Final = re.compile(r"\d\d?([./-])\d\d?\1\d\d(?!\d).*", re.ASCII)
"""A date of digits with a year of two digits: 31.12.24."""


def _folded(name: str) -> str:
    """Return a name so that all forms of its letters are equal which `re.I` matches."""
    return name.casefold().replace("i\u0307", "i").replace("ı", "i")


_MONTHS: Final = {
    _folded(name): number
    for number, names in enumerate(
        (
            "jan january januar jän jänner januari janv janvier ene enero gen gennaio janeiro янв "
            "января stycznia ocak",
            "feb february februar februari févr fév février febrero febbraio fev fevereiro фев "
            "февраля lutego şubat",
            "mar march mär mrz märz maart mrt mars marzo março marts мар марта marca mart",
            "apr april avr avril abr abril aprile апр апреля kwietnia nisan",
            "may mai mei mayo mag maggio maio maj мая maja mayıs",
            "jun june juni juin junio giu giugno junho июн июня czerwca haziran",
            "jul july juli juil juillet julio lug luglio julho июл июля lipca temmuz",
            "aug august augustus août aout ago agosto augusti авг августа sierpnia ağustos",
            "sep sept september septembre septiembre setiembre set settembre setembro сен сентября "
            "września eylül",
            "oct october okt oktober octobre octubre ott ottobre out outubro окт октября "
            "października ekim",
            "nov november novembre noviembre novembro ноя ноября listopada kasım",
            "dec december dez dezember déc décembre dic diciembre dicembre dezembro дек декабря "
            "grudnia aralık",
        ),
        1,
    )
    for name in names.split()
}
NAMES_OF_MONTHS: Final = {
    number: tuple(name for name, other in _MONTHS.items() if other == number)
    for number in dict.fromkeys(_MONTHS.values())
}
"""Names and abbreviations of each month, in lower case, in a dozen languages."""

_MONTH: Final = f"(?P<m>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})"
_WEEKDAY: Final = (  # in any language before a comma, or in one that has no comma
    r"(?:[^\W\d_]{2,10}\.?, |(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
    r"|(?:lun|mar|mercre|jeu|vendre|same)di|dimanche)\.? )?"
)
_ORDINAL: Final = r"(?P<d>\d\d?)(?:er|st|nd|rd|th|º)?"
_NAMED_MONTHS: Final = (
    re.compile(
        rf"{_WEEKDAY}{_ORDINAL}(?:\.? (?:de )?|[-/]){_MONTH}\.?(?: de | |[/-])"
        rf"(?P<y>\d{{4}}|\d\d){_TIME}",
        re.I,
    ),
    re.compile(rf"{_WEEKDAY}{_MONTH}\.? {_ORDINAL},? (?P<y>\d{{4}}){_TIME}", re.I),
    re.compile(rf"{_WEEKDAY}{_MONTH} {{1,2}}(?P<d>\d\d?){_TIME} (?P<y>\d{{4}})", re.I),
    re.compile(rf"{_MONTH}\.?[ -](?P<y>\d{{4}})", re.I),
    re.compile(rf"(?P<y>\d{{4}}) {_MONTH}(?: (?P<d>\d\d?))?", re.I),  # of PubMed
)
_IN_DATES: Final = re.compile(r"\d\d")
"""Part of the year in any of these forms, which most texts do not have."""
_OFFSET: Final = re.compile(r"([+-])(\d\d?):?(\d\d)?$")
_CENTURY: Final = 69
"""The first year of two digits that is in the 20th century, as in POSIX."""


def may_be_two_years(text: str) -> bool:
    """Return whether a text may be a season or school year instead of a month.

    >>> may_be_two_years("2001-02"), may_be_two_years("1999-00"), may_be_two_years("2001-03")
    (True, True, False)
    """
    years = _TWO_YEARS.fullmatch(text)
    return years is not None and (int(years[1]) + 1) % 100 == int(years[2])


def local_number(text: str) -> float | None:
    """Return a number with a decimal comma, or with separators of thousands; None for another text.

    None also if three digits after the only separator could be either.

    >>> local_number("1.250,50"), local_number("2,5"), local_number("1,250,000")
    (1250.5, 2.5, 1250000.0)
    >>> local_number("1,250") is None
    True
    """
    if MAY_BE_THOUSANDS.fullmatch(text):
        return None
    comma, point = number_in(text, "comma"), number_in(text, "point")
    return comma if point is None or point == comma else point if comma is None else None


def decimal_sign(text: str) -> DecimalSign | None:
    """Return the decimal sign that a text shows; None if it is no number or could have either.

    >>> decimal_sign("2,5"), decimal_sign("1,250.00"), decimal_sign("1,250")
    ('comma', 'point', None)
    """
    comma, point = number_in(text, "comma"), number_in(text, "point")
    if (comma is None) == (point is None):
        return None
    return "point" if comma is None else "comma"


def number_in(text: str, decimal: DecimalSign) -> float | None:
    """Return a number with this decimal sign, "comma" or "point"; None for another text.

    >>> number_in("1,250", "comma"), number_in("1,250", "point")
    (1.25, 1250.0)
    """
    if not (_COMMA if decimal == "comma" else _POINT).fullmatch(text):
        return None
    integer, _, decimals = text.partition("," if decimal == "comma" else ".")
    return float(f"{_GROUPS.sub('', integer)}.{decimals}")


def local_date(text: str, order: DateOrder | None = None) -> str | None:
    """Return a date, perhaps with a time, in ISO 8601; None for another text.

    order  of day and month between slashes or hyphens; None reads only dates that have points,
           begin with the year, or name the month in one of a dozen languages
    A year of two digits is from 1969 to 2068, as in POSIX. A month has no day.

    >>> local_date("28.12.2025"), local_date("1.3.2025, 9:05 Uhr"), local_date("31.12.24")
    ('2025-12-28', '2025-03-01T09:05:00', '2024-12-31')
    >>> local_date("3/5/2025 2:05 PM", "month-first"), local_date("28/Dec/25 3:14 PM")
    ('2025-03-05T14:05:00', '2025-12-28T15:14:00')
    >>> local_date("2024-03-01 09:30:00 UTC"), local_date("Fri, 01 Mar 2024 09:30:00 +0100")
    ('2024-03-01T09:30:00+00:00', '2024-03-01T09:30:00+0100')
    >>> local_date("1 de marzo de 2024"), local_date("2024年3月1日"), local_date("2024-03")
    ('2024-03-01', '2024-03-01', '2024-03')
    """
    if not _IN_DATES.search(text):
        return None
    general = chain(
        (_DOTTED, _DOTTED_SHORT, _YEAR_FIRST, _YEAR_AND_MONTH), _EAST_ASIAN, _NAMED_MONTHS
    )
    match = next(filter(None, (form.fullmatch(text) for form in general)), None)
    if match is None and order is not None:
        match = (_DAY_FIRST if order == "day-first" else _MONTH_FIRST).fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    day, half = parts.get("d"), parts.get("half")
    time = (parts.get("time") or "").replace("h", ":")  # 8h30, as in French
    hour, minute, second = map(int, f"{time or '0:00'}:00".split(":")[:3])
    if half:
        is_afternoon = half.lower() == "pm"
        if hour <= 12:
            hour = hour % 12 + 12 * is_afternoon
        elif not is_afternoon:
            return None
    year = int(match["y"])
    if len(match["y"]) == len("yy"):
        year += 1900 if year >= _CENTURY else 2000
    try:
        month = _MONTHS.get(_folded(match["m"])) or int(match["m"])
        moment = datetime(year, month, int(day or 1), hour, minute, second)
    except ValueError:
        return None
    if not time:
        return moment.date().isoformat()[: None if day else len("2024-03")]
    zone = parts["zone"] or ""
    if zone:
        offset = _OFFSET.search(zone)
        zone = f"{offset[1]}{int(offset[2]):02}{offset[3] or '00'}" if offset else "+00:00"
    return f"{moment.isoformat()}{parts['fraction'] or ''}{zone}"
