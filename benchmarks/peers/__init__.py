"""Our engine beside others: the same text, queries, k and one thread, in turn.

python -m benchmarks.peers install
python -m benchmarks.peers run CORPUS.jsonl QUERIES.tsv --json OUT.json
python -m benchmarks.peers plot OUT.json [OUT.json ...] --figure OUT.svg
"""
