"""Tables and the plot of queries a second against N."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def best_qps(row: dict[str, float]) -> float:
    """Queries a second one at a time or in a batch, whichever is more."""
    return max(row["single_qps"], row.get("batch_qps", 0.0))


def print_tables(report: dict[str, Any]) -> None:
    """Print the searches, then the builds."""
    print(f"\n{report['corpus']}: {report['documents']:,} documents", end=", ")
    print(f"{report['queries']:,} queries, {report['rounds']} rounds, one thread\n")
    print("q/s cpu: by processor time, which other programs on the machine disturb less\n")
    print(f"{'':10}{'k':>6}{'one by one':>12}{'cpu':>9}{'in batch':>12}{'cpu':>9}", end="")
    print(f"{'p50 ms':>9}{'p99 ms':>9}{'peak MiB':>10}{'same@10':>9}")
    for k in next(iter(report["peers"].values()))["k"]:
        for name, peer in report["peers"].items():
            row = peer["k"][k]
            print(f"{name:10}{k:>6}", _speeds(row, "single"), _speeds(row, "batch"), end="")
            print(f"{row['p50_ms']:9.3f}{row['p99_ms']:9.3f}", end="")
            print(f"{peer['peak_bytes'] / 2**20:10,.0f}{peer.get('overlap_at_10', 0):9.2f}")
    print(f"\n{'':10}{'index s':>9}{'index MiB':>11}{'of text':>9}{'peak MiB':>10}{'open s':>8}")
    for name, peer in report["peers"].items():
        built = peer["build"]
        print(f"{name:10}{built['seconds']:9.1f}{built['index_bytes'] / 2**20:11,.1f}", end="")
        print(f"{built['index_bytes'] / report['text_bytes']:9.2f}", end="")
        print(f"{built['peak'] / 2**20:10,.0f}{peer['open']['seconds']:8.2f}")


def _speeds(row: dict[str, float], way: str) -> str:
    if f"{way}_qps" not in row:
        return f"{'-':>11}{'-':>9}"
    return f"{row[f'{way}_qps']:11,.0f}{row[f'{way}_processor_qps']:9,.0f}"


def plot(reports: list[dict[str, Any]], figure: Path) -> None:
    """Queries a second against N, a panel for each k, both axes logarithmic."""
    import matplotlib.pyplot as plt

    reports = sorted(reports, key=lambda report: report["documents"])
    depths = list(next(iter(reports[0]["peers"].values()))["k"])
    names = list(dict.fromkeys(name for report in reports for name in report["peers"]))
    drawn, panels = plt.subplots(1, len(depths), figsize=(5 * len(depths), 4), squeeze=False)
    for panel, k in zip(panels[0], depths, strict=True):
        for name in names:
            having = [report for report in reports if name in report["peers"]]
            counts = [report["documents"] for report in having]
            speeds = [best_qps(report["peers"][name]["k"][k]) for report in having]
            panel.loglog(counts, speeds, marker="o", label=name)
        panel.set(title=f"k = {k}", xlabel="documents", ylabel="queries per second, one thread")
        panel.grid(visible=True, which="both", alpha=0.3)
    panels[0][0].legend()
    drawn.tight_layout()
    drawn.savefig(figure)
