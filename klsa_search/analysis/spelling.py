"""British and American spellings of English words, by rules: *colour*, *color*.

Stemmers keep *colour* and *color* apart, and most verbs in -ise and -ize, so words are spelt in one
way before they are stemmed, in documents and in queries. The rules are patterns by which classes of
words differ; a word of neither class may be changed as well, but always alike.
"""

from __future__ import annotations

import re
from typing import Final

_MAY_DIFFER: Final = re.compile(
    "is[ei]|isa|lyz|our|[bt]res?$|centr[ei]|enc[ei]|ae|oe|sulph|practis|programme"
)
_ISE: Final = re.compile("([a-z]{3,})is(e[ds]?|ers?|ing|ations?|able|ements?)")
# What precedes -ise in words that have no spelling with z.
_ONLY_ISE: Final = re.compile(
    "(?:[auw]|(?<!m)o|(?<!ti)v|pr|^(?:ce|sun|moon)r|(?:con|pre|ex|in|circum|exer|exor)c"
    "|(?:pro|pre|de|sur|che)m|(?:exper|trea|adver|chas|^mor|prac)t|(?:merchan|para)d|franch|desp"
    "|^val)$"
)
_RULES: Final = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"lyz(?=(?:e[ds]?|ers?|ing)$)", "lys"),  # as in analyses
        (r"(?:(?<=[a-z]{3})|(?<=^od))our(?=$|s$|[aefhilwy])", "or"),
        (r"(?<=[a-z]{2})(?<!tim)([bt])re(?=s?$)", r"\1er"),
        (r"centr(?=ed$|ing$)", "center"),
        (r"^(def|off|pret|lic)enc(?=e|ing)", r"\1ens"),
        (r"^practis(?=e|ing)", "practic"),
        (r"^programme(?=s?$)", "program"),
        (r"ae(?=[cdmos])|^oe(?=[ds])", "e"),
        (r"^foet", "fet"),
        (r"rhoea", "rhea"),
        (r"noeuvr(?:e|(?=[ia]))", "neuver"),
        (r"sulph", "sulf"),
    )
)
_UNFINISHED: Final = re.compile("(?<=[a-z]{3})ou$")


def common_spelling(word: str) -> str:
    """Return the spelling that a word shares with its other one; case-folded.

    >>> [common_spelling(word) for word in ("behaviour", "normalising", "centre", "precise")]
    ['behavior', 'normalizing', 'center', 'precise']
    """
    if not _MAY_DIFFER.search(word):
        return word
    verb = _ISE.fullmatch(word)
    if verb is not None and not _ONLY_ISE.search(verb[1]):
        word = f"{verb[1]}iz{verb[2]}"
    for rule, spelling in _RULES:
        word = rule.sub(spelling, word)
    return word


def common_beginning(beginning: str) -> str:
    """Return the beginning of the shared spelling of words that begin so: *colou*, *colo*."""
    return _UNFINISHED.sub("o", common_spelling(beginning))
