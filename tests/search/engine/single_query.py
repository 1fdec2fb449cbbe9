"""Run one query on an engine."""


def top_of(engine, terms, k, *given):
    """What `Bm25Engine.top` or `KlsaEngine.top` answers to it."""
    (answer,) = engine.top([terms], k, *given) or [None]
    return answer
