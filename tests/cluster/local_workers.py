"""Replicas in this process: slow, failing, or started again without what they had."""

import pickle
from concurrent.futures import ThreadPoolExecutor, wait

from klsa_search.cluster.calls import CallFailed
from klsa_search.cluster.host import PartitionHost, followed_builds


def method_of(call):
    """Return the name of the method that is called, of a search the name of its step."""
    return call[2].__name__ if call[0] == "step" else call[0]


class Threads:
    """Replicas of partitions; `trouble(partition, replica, method)` is called before each call."""

    def __init__(self, hosts, replicas, trouble=None):
        self.partitions, self.replicas = len(hosts), replicas
        self.hosts, self.trouble = hosts, trouble
        self._pool = ThreadPoolExecutor(8)
        self.calls = []

    def call(self, partition, replica, call):
        self.calls.append((partition, replica, method_of(call)))
        return self._pool.submit(self._work, partition, replica, pickle.dumps(call))

    def wait(self, under_way, seconds):
        return list(wait(under_way, seconds).done)

    def result(self, reference):
        error = reference.exception()
        if error is not None:
            raise CallFailed(f"{type(error).__name__}: {error}")
        return pickle.loads(reference.result())

    def _work(self, partition, replica, call):
        if self.trouble is not None:
            self.trouble(partition, replica, method_of(pickle.loads(call)))
        return self.hosts[partition][replica].packed_answer(call)


class LocalCluster:
    """Starts hosts in this process.

    follow    repository from which a host restores the partition that its machine does not have
    machines  index directories of the machines, by replica; by default that of the index
    """

    def __init__(self, replicas=1, trouble=None, follow=None, machines=None):
        self._replicas, self.trouble = replicas, trouble
        self._follow, self.machines = follow, machines
        self.started = []

    def replicas(self, generations, tokenizer):
        self._folders, self._tokenizer = generations, tokenizer
        self._followed = [None] * len(generations)
        if self._follow is not None:
            self._followed = followed_builds(generations, self._follow, every=0)
        hosts = [
            [self._host(each, replica) for replica in range(self._replicas)]
            for each in range(len(generations))
        ]
        self.started.append(Threads(hosts, self._replicas, self.trouble))
        return self.started[-1]

    def restart(self, partition, replica=0):
        """Start a host again, as Ray does when its process dies."""
        self.started[-1].hosts[partition][replica] = self._host(partition, replica)

    def _host(self, partition, replica):
        folder = self._folders[partition]
        if self.machines is not None:
            folder = self.machines[replica] / folder.relative_to(folder.parents[2])
        return PartitionHost(str(folder), self._tokenizer, self._followed[partition])
