"""Workers that end during a step."""


class Dying:
    """Workers of which one dies before the n-th call, and none where that is below 0."""

    def __init__(self, left):
        self.left = left

    def each(self, function, calls):
        for number, call in enumerate(calls):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            function(*call)
            yield number
