"""A small collection with known answers and some hostile texts."""

HOSTILE = '<script>hacked=1</script><img src=x onerror="hacked=1">'
HOSTILE_ID = '<b>"id"/&?#%</b>'

_CARS = {
    "mot": ("Failed test", "The car failed its test: the automobile engine smokes and the wheel "
            "is bent."),
    "sale": ("For sale", "A car for sale, automobile engine rebuilt, new brakes on every wheel."),
    "garage": ("From the garage", "Automobile engine rebuilt; every wheel and all brakes are new."),
    "brakes": ("Brakes", "Brakes squeal when the wheel is bent and the engine idles."),
}  # fmt: skip
_KITCHEN = {
    "bread": ("Bread", "Yeast makes the dough of bread rise before the oven is hot."),
    "cake": ("Cake", "A cake wants sugar, eggs and a moderate oven."),
    "rolls": ("Rolls", "Rolls from the dough of yesterday, baked in a hot oven."),
    "pie": ("Pie", "Roll the dough thin, fill it with apples, and bake it in the oven."),
}
_GARDEN = {
    "rose": ("Roses", "Roses want pruning in spring, and compost in autumn."),
    "lawn": ("Lawn", "Mow the lawn in spring and rake the moss out of it."),
}
_WEATHER = ("calm", "storm", "fog", "rain")


def notes():
    """Forty notes: cars, kitchen, garden, a log of a harbour, and two that are hostile."""
    for kind, texts in {"workshop": _CARS, "kitchen": _KITCHEN, "garden": _GARDEN}.items():
        for at, (id_, (title, text)) in enumerate(texts.items()):
            metadata = {"kind": kind, "year": 2010 + at, "seen": f"2024-03-{at + 1:02}T13:45:00Z"}
            yield {"id": id_, "title": title, "text": text, "metadata": metadata}
    for at in range(28):
        weather = _WEATHER[at % 4]
        text = f"The ferry crosses the harbour in {weather}, voyage {at} of the season."
        if weather == "storm":
            text += " Every ship stays in the harbour for a day."
        metadata = {"kind": "log", "year": 1990 + at, "seen": f"2023-{at % 12 + 1:02}-15"}
        yield {"id": f"log-{at}", "title": f"Harbour log {at}", "text": text, "metadata": metadata}
    metadata = {"kind": HOSTILE, "year": 1980, "seen": "2020-01-01"}
    text = f"Hostile {HOSTILE} submarines & <svg onload=hacked=1>."
    yield {"id": HOSTILE_ID, "title": f"Submarines {HOSTILE}", "text": text, "metadata": metadata}
    yield {"id": "a,b", "title": "", "text": "Submarines, without a title.", "metadata": metadata}
