"""What is suggested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "phrase", "title", "correction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One completion of what was typed.

    kind       a word as documents write it; a phrase that goes on with the words typed; the title
               of a document; or the correction of a word that nothing begins with
    text       what it is
    query      what was typed, completed by it: what to search for
    documents  how many hold the word, in any form, or the phrase, or have the title; None for a
               phrase whose first words so many hold that only some of them were read

    >>> index.suggest("wet r")[0]
    Suggestion(kind='phrase', text='wet roads', query='wet roads', documents=2)
    """

    kind: Kind
    text: str
    query: str
    documents: int | None
