"""Golden answers of six small indexes, stored in `tests/golden/`, and MAP of the test collections.

    python -m tools.golden check [WORLD...]     compare with the stored answers; half a minute
    python -m tools.golden write [WORLD...]     store the present answers, after an intended change
    python -m tools.golden show WORLD NUMBER    print one question and its whole answer
    python -m tools.golden map [COLLECTION...]  compare MAP with the stored figures, or --write them

Worlds: plain, written (later writes and deletes), passages, vectors, partitions (four), restricted
(a view of what a filter allows). A commit that writes answers says what changed, and why.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.golden import precision
from tools.golden.answers import difference, lines_of, shown
from tools.golden.world import WORLDS

STORED = Path(__file__).parents[2] / "tests" / "golden"


def answers(name: str, step: int = 1) -> list[str]:
    """Return the answers of a world to every `step`-th of its questions, one line each."""
    world = WORLDS[name]
    with tempfile.TemporaryDirectory() as home, world.make(Path(home)) as index:
        return list(lines_of(index, world.questions[::step]))


def differences(name: str, step: int = 1) -> list[str]:
    """Return how the answers of a world differ from the stored ones, a line for each question."""
    stored = (STORED / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    asked = WORLDS[name].questions
    if len(stored) != len(asked):
        return [f"{name}: {len(asked)} questions, but {len(stored)} answers are stored"]
    return [
        f"{name} {number * step} {asked[number * step]}: {differs}"
        for number, (before, after) in enumerate(
            zip(stored[::step], answers(name, step), strict=True)
        )
        if (differs := difference(before, after)) is not None
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.golden",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("check", "write"):
        commands.add_parser(command).add_argument("worlds", nargs="*", choices=[[], *WORLDS])
    show = commands.add_parser("show")
    show.add_argument("world", choices=tuple(WORLDS))
    show.add_argument("number", type=int)
    measure = commands.add_parser("map")
    measure.add_argument("collections", nargs="*")
    measure.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.command == "show":
        world = WORLDS[given.world]
        question = world.questions[given.number]
        with tempfile.TemporaryDirectory() as home, world.make(Path(home)) as index:
            print(question, shown(index.search(question.text, **question.options)), sep="\n")
    elif given.command == "map":
        sys.exit(precision.run(given.collections, STORED / "map.json", write=given.write))
    elif given.command == "write":
        STORED.mkdir(exist_ok=True)
        for name in given.worlds or WORLDS:
            text = "".join(f"{line}\n" for line in answers(name))
            (STORED / f"{name}.tsv").write_text(text, encoding="utf-8")
    else:
        differing = [line for name in given.worlds or WORLDS for line in differences(name)]
        print(*differing[:40], sep="\n")
        print(f"{len(differing)} answers differ" if differing else "all answers are equal")
        sys.exit(bool(differing))


if __name__ == "__main__":
    main()
