"""The combinatorial part of the layout: layers, the order within a layer, and positions.

Layers are longest paths; arrows over several layers become trunks of one vertex a layer; the
order within a layer follows the barycentres of the neighbours; positions are least squares
under the distances that must be kept.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Net", "align", "layers", "network", "offsets", "order"]

SWEEPS = 12
TRUNK_SIZE = 6.0
TRUNK_STIFFNESS = 4.0
LOOSE = 1e-6


def layers(count: int, edges: Sequence[tuple[int, int]], late: Sequence[int] = ()) -> list[int]:
    """Return the layer of every box: the longest path that leads to it.

    Parameters
    ----------
    count : int
        Number of boxes; every edge (source, target) has source < target.
    edges : sequence of (int, int)
    late : sequence of int
        Boxes without arguments that are drawn just before their first use, not at the start.

    Examples
    --------
    >>> layers(4, [(0, 2), (2, 3), (1, 3)], late=[1])
    [0, 1, 1, 2]
    """
    layer = [0] * count
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        layer[target] = max(layer[target], layer[source] + 1)
    postponed = set(late)
    first_use: dict[int, int] = {}
    for source, target in edges:
        if source in postponed:
            first_use[source] = min(first_use.get(source, layer[target]), layer[target])
    for source, use in first_use.items():
        layer[source] = use - 1
    return layer


@dataclass
class Net:
    """Boxes and trunk vertices; every link joins neighbouring layers.

    Sizes and positions are along the cross direction; `links` are (from, to, edge) with
    edge −1 for the inner parts of a trunk.
    """

    layer: list[int]
    size: list[float]
    boxes: int
    owner: list[int] = field(default_factory=list)
    links: list[tuple[int, int, int]] = field(default_factory=list)
    before: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    order: list[list[int]] = field(default_factory=list)


def network(layer: list[int], size: list[float], edges: Sequence[tuple[int, int]]) -> Net:
    """Split arrows over several layers into trunks of one vertex a layer."""
    net = Net(list(layer), list(size), len(layer), owner=list(range(len(layer))))
    reach = [0] * len(layer)
    for source, target in edges:
        reach[source] = max(reach[source], layer[target])
    stops: dict[tuple[int, int], int] = {}
    for source in range(len(layer)):
        last = source
        stops[source, layer[source]] = source
        for level in range(layer[source] + 1, reach[source]):
            vertex = len(net.layer)
            net.layer.append(level)
            net.size.append(TRUNK_SIZE)
            net.owner.append(source)
            net.links.append((last, vertex, -1))
            stops[source, level] = last = vertex
    for index, (source, target) in enumerate(edges):
        net.links.append((stops[source, layer[target] - 1], target, index))
    net.before = [[] for _ in net.layer]
    net.after = [[] for _ in net.layer]
    for start, end, _ in net.links:
        net.after[start].append(end)
        net.before[end].append(start)
    net.order = [[] for _ in range(max(net.layer, default=-1) + 1)]
    for vertex, level in enumerate(net.layer):
        net.order[level].append(vertex)
    return net


def _crossings(net: Net) -> int:
    """Count the pairs of links that cross, layer by layer."""
    rank = _ranks(net)
    total = 0
    for layer in net.order[:-1]:
        seen: list[int] = []
        for vertex in layer:
            ends = sorted(rank[end] for end in net.after[vertex])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _ranks(net: Net) -> list[int]:
    rank = [0] * len(net.layer)
    for layer in net.order:
        for position, vertex in enumerate(layer):
            rank[vertex] = position
    return rank


def order(net: Net) -> None:
    """Order every layer by the barycentres of its neighbours, keeping the best sweep."""
    best, fewest = [list(layer) for layer in net.order], _crossings(net)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        rank = [float(position) for position in _ranks(net)]
        down = sweep % 2 == 0
        neighbours = net.before if down else net.after
        for layer in net.order if down else reversed(net.order):
            layer.sort(key=lambda v: _mean([rank[u] for u in neighbours[v]], rank[v]))
            for position, vertex in enumerate(layer):
                rank[vertex] = float(position)
        crossings = _crossings(net)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in net.order], crossings
    first = best[0] if best else []
    rising = sum(vertex * (2 * index - len(first) + 1) for index, vertex in enumerate(first))
    # The mirror image has as many crossings: shown is the one that begins with the first boxes.
    net.order = best if rising >= 0 else [layer[::-1] for layer in best]


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def align(net: Net, gap: float, offset: Sequence[float]) -> list[float]:
    """Return positions along the layers, close to those of the neighbours, at least `gap` apart.

    Each sweep solves, layer by layer, the least-squares problem with the order and the
    distances as constraints; that is an isotonic regression, solved exactly in linear time.
    """
    position = [0.0] * len(net.layer)
    before: list[list[tuple[int, float]]] = [[] for _ in net.layer]
    after: list[list[tuple[int, float]]] = [[] for _ in net.layer]
    for start, end, edge in net.links:
        shift = offset[edge] if edge >= 0 else 0.0
        before[end].append((start, -shift))
        after[start].append((end, shift))
    both = [first + second for first, second in zip(before, after, strict=True)]
    # Towards both sides at last, and then once forward, box below box: chains become straight.
    boxes = [[(u, 0.0) for u, _ in near if u < net.boxes] for near in before]
    direct = [
        some if 2 * len(some) >= len(near) else near
        for some, near in zip(boxes, before, strict=True)
    ]
    for neighbours in [before, after] * SWEEPS + [both] * 4 + [direct]:
        for layer in reversed(net.order) if neighbours is after else net.order:
            wanted, weight = [], []
            for vertex in layer:
                near = neighbours[vertex]
                wanted.append(_mean([position[u] + by for u, by in near], position[vertex]))
                stiff = TRUNK_STIFFNESS if vertex >= net.boxes else 1.0
                weight.append(stiff * max(len(near), 0.1) if both[vertex] else LOOSE)
            _pull_loose(layer, wanted, weight)
            spread = _spread(net, layer, wanted, weight, gap)
            for vertex, value in zip(layer, spread, strict=True):
                position[vertex] = value
    return position


def _pull_loose(layer: list[int], wanted: list[float], weight: list[float]) -> None:
    """Move boxes without arrows next to the other boxes of their layer."""
    held = [value for value, heft in zip(wanted, weight, strict=True) if heft != LOOSE]
    for index in range(len(layer)):
        if weight[index] == LOOSE and held:
            wanted[index] = min(max(wanted[index], min(held)), max(held))


def _spread(
    net: Net, layer: list[int], wanted: list[float], weight: list[float], gap: float
) -> list[float]:
    """Pool adjacent violators: the positions nearest to `wanted` that keep the distances."""
    offset, offsets = 0.0, []
    for index, vertex in enumerate(layer):
        if index:
            offset += 0.5 * (net.size[layer[index - 1]] + net.size[vertex]) + gap
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []
    for target, heft, shift in zip(wanted, weight, offsets, strict=True):
        pool = (target - shift, heft, 1)
        while pools and pools[-1][0] > pool[0]:
            value, mass, members = pools.pop()
            total = mass + pool[1]
            pool = ((value * mass + pool[0] * pool[1]) / total, total, members + pool[2])
        pools.append(pool)
    flat = [value for value, _, members in pools for _ in range(members)]
    return [value + shift for value, shift in zip(flat, offsets, strict=True)]


def offsets(net: Net, edges: int, spacing: float) -> list[float]:
    """Return the offset from its target's centre at which each edge enters without a crossing."""
    rank = _ranks(net)
    entering: dict[int, list[tuple[int, int]]] = {}
    for start, end, edge in net.links:
        if edge >= 0:
            entering.setdefault(end, []).append((rank[start], edge))
    offset = [0.0] * edges
    for arrivals in entering.values():
        for position, (_, edge) in enumerate(sorted(arrivals)):
            offset[edge] = (position - 0.5 * (len(arrivals) - 1)) * spacing
    return offset
