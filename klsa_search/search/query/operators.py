"""Which signs and words of a query are operators, and why others are read as words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import accumulate, groupby, pairwise
from typing import Final

from klsa_search.analysis.languages import ENGLISH, stop_list
from klsa_search.analysis.segmentation import UNSPACED_PATTERN
from klsa_search.core.parameters import ParsingSettings
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.query.interpretation import Relaxed
from klsa_search.search.query.matching import documents_with
from klsa_search.search.query.pieces import SIGNS, PieceCache, flags_of
from klsa_search.search.query.stop_words import SHORT
from klsa_search.search.query.syntax import (
    MAX_OPERANDS,
    BooleanQuery,
    Clause,
    in_capitals,
    name_of,
    parse,
    parse_boolean,
    stray_signs,
    stray_words,
    translated_operators,
)
from klsa_search.search.query.term_dictionary import MIN_PREFIX

LONG: Final = 8
"""Largest number of words of a query of nothing but words in which + and - always count. No judged
query with such a sign has them, but for Finnish ones.
"""

_WORDS: Final = re.compile(r"[^\W_]+(?:[-.'’&/][^\W_]+)*")
_NAME: Final = re.compile(r"[^\W\d_](?:[-'’.]?[^\W_])+\.?")

_IN_PAIRS: Final = re.compile(f"{UNSPACED_PATTERN}+")
_LIKE_VERB: Final = re.compile(r"[aeiouy].*(?:ing|(?<!e)ed)\Z", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d[\d.,]*\W*\Z")

_INSIDE: Final = re.compile(r"-|(?<=\w)[.'’@](?=\w)")
_OPTION: Final = re.compile(r"[A-Z][a-z]+\.\w|\d+[.,]\d+\Z")
"""What may be an option of a command, -Djava.io.tmpdir, or a negative number."""

MAX_SIGNS: Final = 64
"""Clauses with operators in one query, to limit the cost. Further ones are read as words, or left
out if they exclude.
"""

_NEAR: Final = 0.8
"""Least similarity of a name to that of a field: `titel` has it to `title`, `file` has not."""


class OperatorReader:
    """Divides queries into clauses and decides which operators count; thread-safe."""

    def __init__(
        self, pieces: PieceCache, fields: Collection[str], stored: Collection[str] = ()
    ) -> None:
        self._pieces, self._fields = pieces, fields
        self._names = sorted({name.casefold() for name in (*fields, *stored)})

    def read(
        self,
        query: str,
        settings: ParsingSettings,
        evidence: Evidence,
        relaxed: dict[str, Relaxed],
    ) -> tuple[BooleanQuery | None, list[Clause]]:
        """Return a Boolean query, or the clauses of another, and record what is no operator."""
        if settings.operators is False:
            return None, [as_words(query)]
        boolean = parse_boolean(query, self._fields)
        why = None if boolean is None else self._boolean_reason(query, boolean)
        if boolean is not None and why is not None and settings.operators is None:
            relaxed |= dict.fromkeys(boolean.operators, why)
            boolean = None
        if boolean is None and not in_capitals(query) and _is_one_line(query):
            stray = (word for word in stray_words(query) if word not in relaxed)
            relaxed |= dict.fromkeys(stray, "not_an_operator")
        if not in_capitals(query) and _is_one_line(query):
            relaxed |= dict.fromkeys(translated_operators(query), "other_language")
        has_signs = flags_of(self._pieces.of(query)) & SIGNS
        clauses, reason = self.clauses(query, settings.operators) if has_signs else ([], None)
        relaxed |= _stray_operators(query, clauses) | self._stray_names(clauses)
        if boolean is not None:
            relaxed |= dict.fromkeys(boolean.stray, "not_an_operator")
            return boolean, []
        if not has_signs:
            if boolean is None and settings.operators is None:
                relaxed |= self._lower_case(query, evidence)
            meant = self._pieces.stop_words.meant(query) if settings.operators is None else []
            return None, meant or [as_words(query)]
        if reason is not None:
            relaxed |= {clause.written: reason for clause in clauses if clause.has_sign}
            return None, [as_words(query)]
        if settings.operators is None:
            clauses = self._with_suffixes(clauses, evidence, relaxed)
        return None, _joined(_first_signs(clauses, relaxed))

    def _lower_case(self, query: str, evidence: Evidence) -> dict[str, Relaxed]:
        """Return *not* and the word after it, if a short query seems to exclude that.

        *shirt not red* does: it has no other function word but *and* or *but* before it, and no
        document has *not red*. A
        *printer not working* is no shirt: what ends like a verb may be said of it.
        """
        words = [word.rstrip(",") for word in query.split()]
        lowered = [word.lower() for word in words]
        is_words = len(words) <= LONG and all(map(_WORDS.fullmatch, words))
        if not is_words or lowered.count("not") != 1 or "NOT" in words:
            return {}
        at = lowered.index("not")
        if at > 1 and lowered[at - 1] in ("and", "but"):
            at -= 1
            del words[at]
        rest = words[:at] + words[at + 1 :]
        if not 0 < at < len(rest) or _LIKE_VERB.search(words[at + 1]):
            return {}
        if not stop_list(ENGLISH).isdisjoint(map(str.lower, rest)):
            return {}
        excluded = self._pieces.words(words[at + 1])
        instead = f"{' '.join(words[:at])} -{' '.join(words[at + 1 :])}"
        if min((word.number for word in excluded), default=-1) < 0:
            return {}
        if self.clauses(instead, None)[1] is not None:
            return {}
        both = self._pieces.stop_words.numbers([*self._pieces.words("not"), *excluded])
        if documents_with(self._pieces.snapshot, both, evidence):
            return {}
        return {f"{words[at]} {words[at + 1]}": "lower_case"}

    def clauses(self, query: str, operators: bool | None) -> tuple[list[Clause], Relaxed | None]:
        """Return the clauses of a query, and why their operators are words if they are."""
        clauses = parse(query, self._fields)
        return clauses, self._reason(query, clauses) if operators is None else None

    def _reason(self, query: str, clauses: Sequence[Clause]) -> Relaxed | None:
        """Return why the operators of a query are read as words, or None if they count.

        They count in short queries, in queries with more operators than plain words, and + and - in
        queries of nothing but words; not in text of several lines, nor if there is nothing to
        exclude from.
        """
        signed = [clause for clause in clauses if clause.has_sign]
        if not signed:
            return None
        if all(clause.sign == "-" for clause in clauses):
            return "nothing_to_exclude_from"
        plain_words = sum(map(self._size, (clause for clause in clauses if not clause.has_sign)))
        short = plain_words + sum(map(self._size, signed)) <= SHORT
        counts = short or len(signed) > plain_words or self._are_words(clauses)
        return None if counts and _is_one_line(query) else "plain_text"

    def _are_words(self, clauses: Sequence[Clause]) -> bool:
        """Return whether a query is up to `LONG` words, and names or phrases after signs.

        Text has other signs as well, and a hyphen behind a function word: *over- and -use*. Finnish
        writes suffixes with a hyphen.
        """
        if "finnish" in self._pieces.analyzer.languages:
            return False
        plain = 0
        before: Clause | None = None
        for clause in clauses:
            if clause.has_sign:
                is_name = _NAME.fullmatch(clause.text) and not _OPTION.match(clause.text)
                if not (clause.sign and (is_name or clause.kind == "phrase")):
                    return False
                if before is not None and not before.has_sign and self._is_stop_word(before):
                    return False
            elif not _WORDS.fullmatch(clause.text):
                return False
            else:
                plain += 1
            before = clause
        return plain <= LONG

    def _is_stop_word(self, clause: Clause) -> bool:
        return bool(self._pieces.stop_words.of(self._pieces.words(clause.text)))

    def _size(self, clause: Clause) -> int:
        """Return the number of words of a clause.

        One with hyphens, dots, apostrophes or @ inside is one, and so is a run of characters of a
        script that is indexed by pairs of them: what stands between blanks was typed as one.
        """
        may_be_option = clause.sign == "-" and _OPTION.match(clause.text)
        text = clause.text.replace("-", "") if may_be_option else _INSIDE.sub("", clause.text)
        return len(self._pieces.words(_IN_PAIRS.sub("字", text)))

    def _boolean_reason(self, query: str, boolean: BooleanQuery) -> Relaxed | None:
        """Return why AND, OR and NOT are read as words, or None if they are operators."""
        operands = boolean.operands
        if in_capitals(query):
            return "capitals"
        if all(operand.sign for operand in operands):
            return "nothing_to_exclude_from"
        size = sum(map(self._size, operands))
        short = size <= SHORT * (len(boolean.operators) + 1) and len(operands) <= MAX_OPERANDS
        return None if short and _is_one_line(query) else "plain_text"

    def _stray_names(self, clauses: Sequence[Clause]) -> dict[str, Relaxed]:
        """Return the words of a short query that may be meant as in a field, but are not.

        What precedes their colon is a field whose words are not searched, or from four letters on
        nearly one; or a blank is behind that of a field.
        """
        if len(clauses) > LONG:
            return {}
        names = ((clause, name_of(clause).casefold()) for clause in clauses)
        apart = (clause.shown for clause in clauses[:-1] if clause.shown[-1:] == ":")
        stray: dict[str, Relaxed] = {
            clause.written: "not_an_operator"
            for clause, name in names
            if name and get_close_matches(name, self._names, 1, _NEAR if len(name) > 3 else 1.0)
        }
        stray |= dict.fromkeys(
            (name for name in apart if name[:-1].casefold() in self._names), "not_an_operator"
        )
        return stray

    def _with_suffixes(
        self, clauses: list[Clause], evidence: Evidence, relaxed: dict[str, Relaxed]
    ) -> list[Clause]:
        """Return clauses with a hyphen read as part of a word: *-40 °C*, *tar -x*, *Base -lause*.

        A query that begins with a hyphen and a digit begins with a number. Finnish writes the last
        part of a compound of several words with a hyphen, command lines an option: of one letter,
        in documents of code of more. It is one if documents have it after the preceding word.
        """
        result = clauses[:1]
        if result and result[0].sign == "-" and _NUMBER.match(result[0].text):
            relaxed[result[0].written] = "number"
            result = [as_words(result[0].text)]
        may_be_longer = (
            "finnish" in self._pieces.analyzer.languages
            or self._pieces.snapshot.forward.fields.derived == "parts"
        )
        for before, clause in pairwise(clauses):
            is_suffix = clause.sign == "-" and clause.kind == "word" and not clause.field
            if is_suffix and not before.has_sign and (may_be_longer or len(clause.text) == 1):
                words = [*self._pieces.words(before.text)[-1:], *self._pieces.words(clause.text)]
                if documents_with(self._pieces.snapshot, [word.number for word in words], evidence):
                    relaxed[clause.written] = "suffix"
                    clause = as_words(clause.text)
            result.append(clause)
        return result


def _stray_operators(query: str, clauses: Sequence[Clause]) -> dict[str, Relaxed]:
    """Return the signs of a query of one line that mean nothing where they are."""
    if not _is_one_line(query):
        return {}
    stray: dict[str, Relaxed] = dict.fromkeys(stray_signs(clauses), "not_an_operator")
    short = (
        clause for clause in clauses if clause.kind == "prefix" and len(clause.text) < MIN_PREFIX
    )
    return stray | {clause.written: "short_prefix" for clause in short}


def _is_one_line(query: str) -> bool:
    return len(query.strip().splitlines()) == 1


def as_words(text: str) -> Clause:
    """Return a clause of plain words."""
    return Clause("", "", "word", text, text)


def _joined(clauses: Iterable[Clause]) -> list[Clause]:
    joined = list[Clause]()
    for is_signed, group in groupby(clauses, lambda clause: clause.has_sign):
        side_by_side = list(group)
        if not is_signed:
            side_by_side = [as_words(" ".join(clause.text for clause in side_by_side))]
        joined += side_by_side
    return joined


def _first_signs(clauses: Sequence[Clause], relaxed: dict[str, Relaxed]) -> list[Clause]:
    """Return the clauses; operators beyond the first `MAX_SIGNS` do not count, and are recorded."""
    read = list[Clause]()
    signs = accumulate(clause.has_sign for clause in clauses)
    for clause, count in zip(clauses, signs, strict=True):
        if clause.has_sign and count > MAX_SIGNS:
            relaxed[clause.written] = "not_an_operator"
            is_excluded = clause.sign == "-"
            clause = clause._replace(field="", text="") if is_excluded else as_words(clause.text)
        read.append(clause)
    return read
