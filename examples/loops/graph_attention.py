"""PyTorch Geometric's GAT on Zachary's karate club. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.graph_attention`, then `torchgraph serve runs`; it needs `pip install
torch-geometric`, which brings the graph.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GAT

from torchgraph_explorer import watch

EPOCHS = 12


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    club = KarateClub()[0]
    model = GAT(club.num_features, hidden_channels=8, num_layers=2, out_channels=4, heads=2, dropout=0.5)
    watch(model, log_freq=3, backend="record")  # <--
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        out = model(club.x, club.edge_index)
        functional.cross_entropy(out[club.train_mask], club.y[club.train_mask]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(club.x, club.edge_index)
        model.train()
    return model, EPOCHS


if __name__ == "__main__":
    main()
