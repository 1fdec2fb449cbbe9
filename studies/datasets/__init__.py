"""Data sets of the studies: where they lie, and how they are read."""

from studies.datasets.finding import datasets_homes, find_dataset, reuters_folder
from studies.datasets.ionosphere import LabelledPoints, read_ionosphere
from studies.datasets.reuters import Story, read_reuters

__all__ = [
    "LabelledPoints",
    "Story",
    "datasets_homes",
    "find_dataset",
    "read_ionosphere",
    "read_reuters",
    "reuters_folder",
]
