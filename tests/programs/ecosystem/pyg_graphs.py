"""Graph classification with PyG: batches of graphs of different sizes."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

torch.manual_seed(7)


def graph(number):
    nodes = 4 + number % 5
    edges = torch.randint(0, nodes, (2, 3 * nodes))
    return Data(x=torch.randn(nodes, 8), edge_index=edges, y=torch.tensor([number % 2]))


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(8, 16), GCNConv(16, 16)
        self.lin = torch.nn.Linear(16, 2)

    def forward(self, x, edge_index, batch):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index).relu()
        return self.lin(global_mean_pool(x, batch))


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader([graph(number) for number in range(64)], batch_size=8, shuffle=True)


def train():
    total = 0.0
    for data in loader:
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.batch)
        loss = F.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()
        total += loss.item() * data.num_graphs
    return total / 64


for epoch in range(5):
    print(f"epoch {epoch}: loss {train():.5f}")
