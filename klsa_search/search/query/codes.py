"""Codes: numbers of parts and tickets, errors, versions, paths, which are found as typed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations, pairwise
from typing import Final, NamedTuple

import numpy as np

from klsa_search.analysis.searched_text import searched_texts
from klsa_search.analysis.segmentation import WITHOUT_SPACES_PATTERN
from klsa_search.analysis.unicode import nfkc
from klsa_search.core.array_types import DocumentMask, Integers
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.query.interpretation import QueryBuilder, Word
from klsa_search.search.query.matching import live_documents_of_phrase, pattern_names
from klsa_search.search.query.pieces import PieceCache
from klsa_search.search.query.syntax import Clause
from klsa_search.storage.columns.local_forms import NAMES_OF_MONTHS, local_date

SHORT: Final = 3
"""Words of a query in which amounts such as 32gb and single numbers count, at most: questions often
mention them in passing."""

DIGITS: Final = 3
"""Digits of a code that counts in any query, and of a number, at least."""

MAX_RUNS: Final = 5
"""Runs of letters and of digits of a code that may be written joined or apart, at most."""

MAX_WORDS: Final = 32
"""Words of a query in which codes count, at most: longer ones are texts."""

MAX_CODES: Final = 4
"""Codes of one query that count, at most."""

MAX_READ: Final = 256
"""Documents whose texts are read for the signs of a code, at most; of more, all count."""

_MAX_CHARACTERS: Final = 100_000
"""Characters of a text that is read; a longer one counts."""

_AROUND: Final = ".,;:!?()[]{}<>\"'“”‘’、。，：；！？（）「」『』《》"
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
_AMOUNT: Final = re.compile(r"\d+(?:[.,]\d+)?[^\W\d_]+(?:/[^\W\d_]+)?")
_GROUPS: Final = re.compile(r"(?<=\d)(?=(?:\d{3})+\Z)")
_AMOUNT_APART: Final = re.compile(r"(?<![^\W_])(\d+) ([^\W\d_]{1,4})(?![^\W_])")
_GROUPS_APART: Final = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3})+(?!\w)")
_LETTER_APART: Final = re.compile(r"(?<![^\W_])(\d+|[^\W\d_]{2,}) ([^\W\d_])\s*\Z")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_VERSION: Final = re.compile(r"(v?)(\d+(?:\.\d+)+)", re.IGNORECASE)
_TWO_NUMBERS: Final = re.compile(r"\d[^\s\d]+\d")
"""Decimals, ratios, fractions and sizes: 4.2, 16:9, 1/2, M8x4."""
_THOUSANDS: Final = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[.,'’]\d{3})+(?!\d)")
_DECIMAL: Final = re.compile(r"(\d{4,12})([.,]\d+)")
_TIMES: Final = re.compile(r"(?<=\d) ?[x×] ?(?=\d)")
_SIZE: Final = re.compile(r"\d+(?:x\d+)+", re.IGNORECASE)
MAX_SIGNED: Final = 4
"""Digits of a code of which the signs between them count, at most: 4.2 is not 4:2."""

_SIGN_COUNTS: Final = re.compile(rf"(?=\D*(?:\d\D*){{2,{MAX_SIGNED}}}\Z).*\d[^\w\s]\d")
_DASHES: Final = "-‐‑–—−"
_HEXADECIMAL: Final = re.compile(r"(0x)?([\da-f]{6,16})", re.IGNORECASE)
_PATH: Final = re.compile(r"[/\\]\w|\w+:[/\\]|(?=.*\w[._]\w).*\w[/\\]\w|(?=.*\d)\w+(?:\.\w+){2}")
"""From the root, with a file name, or a version or name of three parts with a digit."""
_BETWEEN: Final = re.compile(rf"(?<=\w)\.{{2,}}(?=\w)|…|{WITHOUT_SPACES_PATTERN}+")
_TWO_WITHOUT_SPACES: Final = re.compile(rf"{WITHOUT_SPACES_PATTERN}{{2}}")
_DIGIT_OR_SLASH: Final = re.compile(r"[\d/\\]")


_DAY: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)
_MONTHS: Final = 12


class Code(NamedTuple):
    """A code, the documents that contain it, and the words that these write for it."""

    text: str
    documents: DocumentMask
    writings: tuple[tuple[Word, ...], ...]


def codes_of(text: str) -> list[str]:
    """Return the codes of a text, without signs around them.

    Words of letters are none, however they are joined: *edit/delete* names alternatives.

    >>> codes_of("error E-1043/2, on 32GB"), codes_of("4711-A of v1.2.3 failed at noon: SUP-1058")
    (['E-1043/2'], ['4711-A', 'v1.2.3', 'SUP-1058'])
    >>> codes_of("32GB laptop"), codes_of("ticket 1058"), codes_of("what was decided in 1958?")
    (['32GB'], ['1058'], [])
    >>> codes_of("version 4.2"), codes_of('bolt M8x4 1/2"'), codes_of("what is in v4.2, not 4.1")
    (['4.2'], ['M8x4', '1/2'], ['v4.2'])
    >>> codes_of("edit/copy/delete in /etc/hosts or conf/local.ini with java.lang.String")
    ['/etc/hosts', 'conf/local.ini']
    """
    words, count = text.split(), 0
    if not text.isascii() or ".." in text:
        words = [word for piece in words for word in _BETWEEN.split(piece) if word]
        count = len(_TWO_WITHOUT_SPACES.findall(text))
    count += len(words)
    if count > MAX_WORDS:
        return []
    bare_words = [
        word.rstrip(_AROUND).lstrip(_AROUND.replace(".", ""))
        for word in words
        if _DIGIT_OR_SLASH.search(word)  # any other is none
    ]
    is_short = count <= SHORT
    numbers = sum(_NUMBER.fullmatch(bare) is not None for bare in bare_words) if is_short else 0
    codes = []
    for bare in bare_words:
        is_code = is_short and _TWO_NUMBERS.search(bare) is not None
        if _AMOUNT.fullmatch(bare):
            is_code = is_short
        elif _NUMBER.fullmatch(bare):
            is_code |= numbers == 1 and _has_digits(bare)
        elif not is_code:
            is_code = _has_digits(bare) or bool(_VERSION.fullmatch(bare) or _PATH.match(bare))
        if is_code:
            codes.append(bare)
    return codes[:MAX_CODES]


def _has_digits(text: str) -> bool:
    """Return whether a text has the digits of a code that counts in any query."""
    return sum(map(str.isdecimal, text)) >= DIGITS


class CodeReader:
    """Finds the documents that contain codes; thread-safe."""

    def __init__(self, pieces: PieceCache) -> None:
        self._pieces, self._snapshot = pieces, pieces.snapshot

    def may_be_codes(self, text: str) -> list[str]:
        """Return the codes of a text, also amounts that documents write as one: *750 ml*, 750ml.

        And numbers with blanks between groups of digits, without these, and one of a number and a
        letter apart at the end, as *4711 A*: the only one with a blank. Of a short text also one of
        a word and a letter that is a stop word: *vitamin a*.
        """
        text = _GROUPS_APART.sub(lambda groups: groups[0].replace(" ", ""), _plain(text))
        codes = codes_of(_AMOUNT_APART.sub(self._amount, text))
        last = _LETTER_APART.search(text)
        if last is not None and (last[1] in codes_of(text) or self._is_stop_letter(last[2], text)):
            codes.append(f"{last[1]} {last[2].upper()}")
        return codes

    def _amount(self, match: re.Match[str]) -> str:
        (word,) = self._pieces.words(match[1] + match[2])[:1] or (None,)
        return match[0] if word is None or word.number < 0 else word.text

    def _is_stop_letter(self, letter: str, text: str) -> bool:
        numbers = [word.number for word in self._pieces.words(letter)]
        return numbers == [NO_TERM] and len(text.split()) <= SHORT

    def read(self, text: str, evidence: Evidence) -> list[Code]:
        """Return the codes of a text that documents contain, written with any signs or none.

        Cost: that of a phrase for each way in which the runs of a code may be joined, once.
        """
        texts = dict.fromkeys(self.may_be_codes(text))
        return [code for one in texts if (code := self.code(one, evidence)) is not None]

    def apply(
        self, clauses: Sequence[Clause], builder: QueryBuilder, *, exact: bool
    ) -> DocumentMask | None:
        """Return which documents contain the codes of a query: all of them, if any document does.

        They are added to the terms of the query; None if it has no codes that documents contain.

        exact  whether all hits must contain them
        """
        text = " ".join(clause.text for clause in clauses if not clause.has_sign)
        evidence = builder.rules.evidence
        codes = self.read(text, evidence) if builder.rules.spelling != "off" else []
        if exact and builder.rules.spelling != "off":
            self._leave_out(text, {code.text for code in codes}, builder)
        if not codes:
            return None
        for code in codes:
            typed = self._pieces.words(code.text)
            written = {word.text for word in typed}
            builder.unknown = [word for word in builder.unknown if word not in written]
            for word in chain(typed, *code.writings) if exact else ():
                builder.alternatives.pop(word.number, None)
        builder.terms += new_terms(codes, builder.terms)
        matching = self.documents(codes, evidence)
        if exact:
            builder.allowed = matching if builder.allowed is None else builder.allowed & matching
        return matching

    def _leave_out(self, text: str, contained: Collection[str], builder: QueryBuilder) -> None:
        """Leave out the parts of codes that no document contains, as if they were unknown words."""
        words = self._pieces.words(text)
        for code in self.may_be_codes(text):
            parts = self._pieces.words(code)
            is_contained = code in contained or " " in code  # a letter apart is often a word
            for part in parts if len(parts) > 1 and not is_contained else ():
                if part.number in builder.terms and words.count(part) == parts.count(part):
                    builder.alternatives.pop(part.number, None)
                    builder.terms = [term for term in builder.terms if term != part.number]
                    builder.words = [word for word in builder.words if word != part.text]
                    builder.unknown.append(part.text)

    def documents(self, codes: Sequence[Code], evidence: Evidence) -> DocumentMask:
        """Return which documents contain all of the codes, or any if none contains all: (N,)."""
        every: DocumentMask = np.logical_and.reduce([code.documents for code in codes])
        names = ("codes", *(code.text for code in codes))
        if not evidence.of(names, lambda: int(every.sum())):
            every = np.logical_or.reduce([code.documents for code in codes])
        return every

    def code(self, text: str, evidence: Evidence) -> Code | None:
        """Return a code, or None if no document contains it.

        If few digits are between signs, documents with other signs do not count if any has these.
        """
        as_written = " " in text  # a lower-case letter apart is often a word: *250 a month*
        writings: list[tuple[tuple[Word, ...], list[int], Integers]] = []
        total, patterns = 0, self._pieces.stop_words.patterns
        of_languages = (
            (writing, pattern)
            for writing in dict.fromkeys(self._writings(text))
            for pattern in patterns(writing)
        )
        for words, numbers in of_languages:
            if UNKNOWN in numbers or max(numbers, default=NO_TERM) <= NO_TERM:
                continue
            matching = live_documents_of_phrase(self._snapshot, numbers, as_written=as_written)
            question = "code", as_written, *pattern_names(self._snapshot, numbers)
            if count := evidence.of(question, lambda: len(matching)):  # noqa: B023 - called at once
                writings.append((words, numbers, matching))
                total += count
        if not writings:
            return None
        doc_ids = np.concatenate([matching for _, _, matching in writings])
        plain = _plain(text)
        counts = _SIGN_COUNTS.match(plain) and not _THOUSANDS.search(plain)
        if total <= MAX_READ and (counts or _SIZE.fullmatch(plain)):
            with_signs = np.concatenate(
                [self._with_signs(plain, numbers, matching) for _, numbers, matching in writings]
            )
            if evidence.of(("signs", text), lambda: len(with_signs)):
                doc_ids = with_signs
        documents = np.zeros(len(self._snapshot), np.bool_)
        documents[doc_ids] = True
        return Code(text, documents, tuple(dict.fromkeys(words for words, _, _ in writings)))

    def _with_signs(self, text: str, numbers: Sequence[int], doc_ids: Integers) -> Integers:
        """Return those of the documents that contain a code with its signs; cached."""

        def matching() -> Integers:
            pattern, fields = _with_its_signs(text), self._snapshot.forward.fields
            texts = (
                "\n".join(searched_texts(document, fields))
                for document in self._pieces.documents_at(doc_ids.tolist())
            )
            has_signs = [len(one) > _MAX_CHARACTERS or pattern.search(_plain(one)) for one in texts]
            return doc_ids[np.array(has_signs, np.bool_)]

        return self._snapshot.answers.of(("signs", text, *numbers), numbers, matching)

    def _writings(self, text: str) -> Iterator[tuple[Word, ...]]:
        """Yield the words of a code as typed, and with its runs joined in all ways.

        The x of a size may be a sign that is no word. A version may begin with a v or not, and a
        hexadecimal number with 0x. A number of four digits or more that no document contains may
        follow letters: 5034441, KB5034441. A day may have another order, or name its month.
        """
        yield tuple(self._pieces.words(text))
        text = _plain(text)
        for date in _writings_of_day(text):
            yield tuple(self._pieces.words(date))
        if _SIZE.fullmatch(text):
            yield tuple(self._pieces.words(text.lower().replace("x", " ")))
        if decimal := _DECIMAL.fullmatch(text):
            yield tuple(self._pieces.words(_GROUPS.sub(" ", decimal[1]) + decimal[2]))
        if version := _VERSION.fullmatch(text):
            yield tuple(self._pieces.words(version[2] if version[1] else f"v{text}"))
        if hexadecimal := _HEXADECIMAL.fullmatch(text):
            yield tuple(self._pieces.words(hexadecimal[2] if hexadecimal[1] else f"0x{text}"))
        if len(text) > DIGITS and text.isdecimal() and self._pieces.numbers[text] == UNKNOWN:
            for name in self._snapshot.vocabulary.runs.ending_with(text):
                if name.removesuffix(text).isalpha():
                    yield tuple(self._pieces.words(name))
        groups = text.isdecimal() and len(text) <= 3 * MAX_RUNS
        runs = _GROUPS.split(text) if groups else _RUN.findall(text)
        if 1 < len(runs) <= MAX_RUNS:
            apart = {0, *_borders_of_numbers(text)}
            for count in range(len(runs)):
                for borders in combinations(range(1, len(runs)), count):
                    if apart <= {0, *borders}:
                        bounds = pairwise((0, *borders, len(runs)))
                        written = " ".join("".join(runs[first:after]) for first, after in bounds)
                        yield tuple(self._pieces.words(written))


def _writings_of_day(text: str) -> Iterator[str]:
    """Yield how documents may write a day without its signs; nothing for any other text.

    Not by the month first, if that may be the day.

    >>> [*_writings_of_day("15.03.2024")][:4]
    ['2024 03 15', '15 03 2024', '03 15 2024', '2024 3 15']
    """
    date = text if _DAY.fullmatch(text) else local_date(text)
    if date is None or _DAY.fullmatch(date) is None or re.search(r"\d{4}", text) is None:
        return
    year, *month_and_day = date.split("-")
    number = int(month_and_day[0])
    short = [one.removeprefix("0") for one in month_and_day]
    for month, day in dict.fromkeys([(*month_and_day,), (*short,)]):
        yield f"{year} {month} {day}"
        yield f"{day} {month} {year}"
        if int(day) > _MONTHS:
            yield f"{month} {day} {year}"
    for name in NAMES_OF_MONTHS[number]:
        for day in dict.fromkeys((month_and_day[1], short[1])):
            yield f"{day} {name} {year}"
            yield f"{name} {day} {year}"


def _plain(text: str) -> str:
    """Return a text with its digits, signs and fractions as they are usually typed.

    >>> _plain("４．２ of 1⁄2"), _plain("30 × 40 cm")
    ('4.2 of 1/2', '30x40 cm')
    """
    return _TIMES.sub("x", nfkc(text).replace("\u2044", "/"))


def _borders_of_numbers(text: str) -> Iterator[int]:
    """Yield which runs of a code are numbers that are not written as one with those before them.

    4.2 is not 42, and 1/2 not 12; 12.500 is 12500, and 2024-02-03 is 20240203.
    """
    digits = sum(map(str.isdecimal, text))
    thousands = [number.span() for number in _THOUSANDS.finditer(text)]
    for number, (before, run) in enumerate(pairwise(_RUN.finditer(text)), start=1):
        if before[0].isdecimal() and run[0].isdecimal():
            sign = text[before.end() : run.start()]
            is_group = any(first < before.end() < after for first, after in thousands)
            if not is_group and (sign in (".", ",", ":") or digits <= MAX_SIGNED):
                yield number


def _with_its_signs(text: str) -> re.Pattern[str]:
    """Return a pattern of a code with the signs between its digits; commas and dots are one.

    A version has no v in it, as documents may leave it out.
    """
    version = _VERSION.fullmatch(text)
    text = version[2] if version else text
    runs = list(_RUN.finditer(text))
    pattern = r"(?<!\d)(?<!\d[.,:/])" + re.escape(runs[0][0])
    for before, run in pairwise(runs):
        sign = text[before.end() : run.start()]
        if not (before[0].isdecimal() and run[0].isdecimal()):
            pattern += r"[\W_]?"
        elif sign in _DASHES:
            pattern += f"[{_DASHES}]"
        else:
            pattern += "[.,]" if sign in ".," else re.escape(sign)
        pattern += re.escape(run[0])
    return re.compile(pattern + (r"(?!\d)" if runs[-1][0].isdecimal() else ""), re.IGNORECASE)


def new_terms(codes: Iterable[Code], terms: Sequence[int]) -> list[int]:
    """Return the terms that documents write for codes, without those that a query has already."""
    numbers = [word.number for code in codes for writing in code.writings for word in writing]
    return list(dict.fromkeys(n for n in numbers if n >= 0 and n not in terms))
