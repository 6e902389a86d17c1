"""A plain layered layout, for what is too large for Graphviz: linear in nodes and edges, and not as pretty."""

from __future__ import annotations

from collections.abc import Sequence

Size = tuple[float, float]
Point = tuple[float, float]

ROW_GAP, COLUMN_GAP, MARGIN = 34.0, 24.0, 8.0
WIDEST_ROW = 12
"""Nodes in one row; a layer that has more takes several."""


def place_in_layers(
    sizes: Sequence[Size], edges: Sequence[tuple[int, int]]
) -> tuple[float, float, tuple[Point, ...], tuple[tuple[Point, ...], ...]]:
    """Width and height of the drawing, the centre of each node and the spline of each edge, y downwards.

    Every node stands below all those that it gets data from.
    """
    rows = [row[i : i + WIDEST_ROW] for row in _layers(len(sizes), edges) for i in range(0, len(row), WIDEST_ROW)]
    widths = [sum(sizes[node][0] for node in row) + COLUMN_GAP * (len(row) - 1) for row in rows]
    width = max(widths) + 2 * MARGIN
    centres: list[Point] = [(0.0, 0.0)] * len(sizes)
    y = MARGIN
    for row, row_width in zip(rows, widths, strict=True):
        height = max(sizes[node][1] for node in row)
        x = (width - row_width) / 2
        for node in row:
            centres[node] = (round(x + sizes[node][0] / 2, 1), round(y + height / 2, 1))
            x += sizes[node][0] + COLUMN_GAP
        y += height + ROW_GAP
    lines = tuple(_line(centres[a], sizes[a], centres[b], sizes[b]) for a, b in edges)
    return width, y - ROW_GAP + MARGIN, tuple(centres), lines


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Nodes by the length of the longest way to them. Edges run from earlier to later calls, but for placeholders."""
    depth = [0] * count
    targets: dict[int, list[int]] = {}
    waits = [0] * count
    for source, target in edges:
        targets.setdefault(source, []).append(target)
        waits[target] += 1
    ready = [node for node in range(count) if waits[node] == 0]
    for node in ready:  # grows while it is gone through
        for target in targets.get(node, ()):
            depth[target] = max(depth[target], depth[node] + 1)
            waits[target] -= 1
            if waits[target] == 0:
                ready.append(target)
    layers: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for node in range(count):
        layers[depth[node]].append(node)
    return [layer for layer in layers if layer]


def _line(start: Point, start_size: Size, end: Point, end_size: Size) -> tuple[Point, ...]:
    top, bottom = (start[0], start[1] + start_size[1] / 2), (end[0], end[1] - end_size[1] / 2)
    bend = max(12.0, abs(bottom[1] - top[1]) / 2)
    return top, (top[0], top[1] + bend), (bottom[0], bottom[1] - bend), bottom
