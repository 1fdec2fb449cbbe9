"""Limits of control groups, read from directory trees made for the test."""

import pytest

from klsa_search.core import parallel
from klsa_search.core.parallel import memory_limit, processor_limit
from klsa_search.indexing import checks


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


@pytest.fixture
def process(tmp_path):
    """Make a folder of /proc of groups and mounts: (file system, root, folder, options) each."""

    def make(groups, *mounts):
        lines = [
            f"31 23 0:{28 + number} {root} {str(point).replace(' ', chr(92) + '040')} rw shared:1 "
            f"- {kind} {kind} rw{options}"
            for number, (kind, root, point, options) in enumerate(mounts)
        ]
        write(tmp_path / "self", cgroup="\n".join(groups), mountinfo="\n".join(lines))
        return tmp_path / "self"

    return make


def test_without_control_groups_there_is_no_limit(tmp_path):
    assert processor_limit(tmp_path) is None
    assert memory_limit(tmp_path) is None


def test_the_smallest_limit_of_all_ancestors_counts(tmp_path, process):
    top = tmp_path / "sys fs" / "cgroup"
    write(top)  # the root group has no limits, and no files of them
    write(top / "pod", cpu__max="150000 100000", memory__max="4096")
    write(top / "pod" / "slice", cpu__max="400000 100000", memory__max="1024")
    write(top / "pod" / "slice" / "own", cpu__max="max 100000", memory__max="max")
    folder = process(["0::/pod/slice/own"], ("cgroup2", "/", top, ""))
    assert processor_limit(folder) == 1.5
    assert memory_limit(folder) == 1024


def test_version_one_has_a_tree_for_each_controller(tmp_path, process):
    cpu, memory = tmp_path / "cpu,cpuacct", tmp_path / "memory"
    write(cpu, cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    write(cpu / "a", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    write(cpu / "a" / "b", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    write(cpu / "x", cpu__cfs_quota_us="1000", cpu__cfs_period_us="100000")
    write(memory, memory__limit_in_bytes="9223372036854771712")
    write(memory / "x", memory__limit_in_bytes="2048")
    folder = process(
        ["4:memory:/x", "3:cpu,cpuacct:/a/b", "1:name=systemd:/x", "0::/"],
        ("tmpfs", "/", tmp_path, ""),
        ("cgroup", "/", cpu, ",cpu,cpuacct"),
        ("cgroup", "/", memory, ",memory"),
        ("cgroup2", "/", tmp_path / "unified", ""),
    )
    assert processor_limit(folder) == 0.5
    assert memory_limit(folder) == 2048


def test_a_container_sees_its_own_group_where_the_tree_is_mounted(tmp_path, process):
    """Version 1 without a namespace of groups: the path is the machine's, the mount is not."""
    write(tmp_path / "memory", memory__limit_in_bytes="2048")
    write(tmp_path / "memory" / "in", memory__limit_in_bytes="1024")
    mount = ("cgroup", "/docker/abc", tmp_path / "memory", ",memory")
    assert memory_limit(process(["4:memory:/docker/abc/in"], mount)) == 1024
    assert memory_limit(process(["4:memory:/docker/other"], mount)) == 2048
    assert memory_limit(process(["4:memory:/docker/abc/../../x"], mount)) == 2048


def test_a_line_of_something_else_is_no_mount(tmp_path, process):
    write(tmp_path / "top" / "pod", memory__max="1024")
    folder = process(["0::/pod"], ("cgroup2", "/", tmp_path / "top", ""))
    with (folder / "mountinfo").open("a") as mounts:
        mounts.write("a line of something else\n40 31 0:9 / /x rw - cgroup2\n")
    assert memory_limit(folder) == 1024


@pytest.mark.parametrize(("limit", "count"), [(None, 8), (0.2, 1), (1.5, 2), (64.0, 8)])
def test_a_quota_bounds_the_processors(monkeypatch, limit, count):
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(parallel, "processor_quota", lambda: limit)
    assert parallel.processors() == count


def test_a_limit_bounds_the_memory(monkeypatch):
    monkeypatch.setattr(checks, "memory_limit", lambda: 4000)
    assert checks.memory_budget(None) == 3000
