"""Workers and replicas in this process: slow, failing, or returning invalid data."""

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from klsa_search.cluster.calls import CallFailed
from klsa_search.cluster.host import Host


class Here:
    """Workers: this process makes the calls in their order."""

    def each(self, function, calls):
        for number, call in enumerate(calls):
            function(*call)
            yield number


class Threads:
    """Replicas of shards; `trouble(shard, replica, method)` is called before each call."""

    def __init__(self, hosts, replicas, trouble=None):
        self.shards, self.replicas = len(hosts), replicas
        self._hosts, self._trouble = hosts, trouble
        self.network = next(filter(None, (host.ready() for host in hosts)), None)
        self._pool = ThreadPoolExecutor(8)
        self.calls = []

    def call(self, shard, replica, method, arguments):
        self.calls.append((shard, replica, method))
        return self._pool.submit(self._work, shard, replica, method, arguments)

    def wait(self, under_way, seconds):
        return list(wait(under_way, seconds, FIRST_COMPLETED).done)

    def result(self, reference):
        error = reference.exception()
        if error is not None:
            raise CallFailed(f"{type(error).__name__}: {error}")
        return reference.result()

    def _work(self, shard, replica, method, arguments):
        if self._trouble is not None:
            instead = self._trouble(shard, replica, method)
            if instead is not None:
                return instead
        return getattr(self._hosts[shard], method)(*arguments)


class Fleet:
    def __init__(self, shards, replicas=1, trouble=None):
        self._shards, self._replicas, self._trouble = shards, replicas, trouble
        self.started = []

    def replicas(self, generation, tokenizer):
        self.started.append(generation.name)
        hosts = [
            Host(str(generation), each, self._shards, tokenizer) for each in range(self._shards)
        ]
        return Threads(hosts, self._replicas, self._trouble)
