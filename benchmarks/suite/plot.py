"""The ratios as a plot: a dot for the median, a line for its interval."""

from pathlib import Path

from matplotlib import pyplot

from suite.results import OURS, STOCK, Results

COLOURS = {"stock": "tab:gray", "hive": "tab:blue", "rest": "tab:green", "jdbc": "tab:orange"}


def draw(results: Results, path: Path) -> None:
    """Of stock and ours to plaintext; nothing if there is no ratio."""
    cells = [
        cell
        for cell in results.cells()
        if cell.ratio and cell.peer in (STOCK, *OURS) and cell.group != "verify"
    ]
    names = list(dict.fromkeys(cell.measure for cell in cells))
    if not names:
        return
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.28 * len(names)))
    peers = list(dict.fromkeys(cell.peer for cell in cells))
    for number, peer in enumerate(peers):
        own = [cell for cell in cells if cell.peer == peer]
        ratios = [cell.ratio for cell in own if cell.ratio]
        axes.errorbar(
            [one.median for one in ratios],
            [names.index(cell.measure) + (number - len(peers) / 2) * 0.14 for cell in own],
            xerr=[
                [one.median - one.low for one in ratios],
                [one.high - one.median for one in ratios],
            ],
            fmt="o",
            markersize=3,
            linewidth=1,
            color=COLOURS.get(peer, "tab:red"),
            label=peer,
        )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("encrypted / plaintext, median of the rounds and its 90 % interval")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
