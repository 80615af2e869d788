import argparse
import os
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Adam


class GraphConv(nn.Module):
    """A linear layer whose results are averaged over each node and its neighbours."""

    def __init__(self, input_dim, output_dim, use_bias=False):
        super(GraphConv, self).__init__()  # noqa: UP008
        self.kernel = nn.Parameter(torch.Tensor(input_dim, output_dim))
        nn.init.xavier_normal_(self.kernel)
        self.bias = None
        if use_bias:
            self.bias = nn.Parameter(torch.Tensor(output_dim))
            nn.init.zeros_(self.bias)

    def forward(self, input_tensor, adj_mat):
        support = torch.mm(input_tensor, self.kernel)
        output = torch.spmm(adj_mat, support)
        if self.bias is not None:
            output = output + self.bias
        return output


class GCN(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, use_bias=True, dropout_p=0.1):
        super(GCN, self).__init__()  # noqa: UP008
        self.gc1 = GraphConv(input_dim, hidden_dim, use_bias=use_bias)
        self.gc2 = GraphConv(hidden_dim, output_dim, use_bias=use_bias)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, input_tensor, adj_mat):
        x = self.gc1(input_tensor, adj_mat)
        x = F.relu(x)
        x = self.dropout(x)
        x = self.gc2(x, adj_mat)
        return F.log_softmax(x, dim=1)


def load_papers(path, device="cpu"):
    content = np.genfromtxt(os.path.join(path, "papers.content"), dtype=np.dtype(str))
    cites = np.genfromtxt(os.path.join(path, "papers.cites"), dtype=np.int32)

    features = torch.FloatTensor(content[:, 1:-1].astype(np.int32))
    features = features / torch.sum(features, dim=1, keepdim=True)
    classes, labels = np.unique(content[:, -1], return_inverse=True)
    labels = torch.LongTensor(labels)

    idx_map = {id: pos for pos, id in enumerate(content[:, 0].astype(np.int32))}
    edges = np.array([[idx_map[a], idx_map[b]] for a, b in cites], dtype=np.int64)
    V = len(idx_map)
    adj_mat = torch.sparse_coo_tensor(edges.T, torch.ones(edges.shape[0]), (V, V))
    adj_mat = torch.eye(V) + adj_mat.to_dense()
    scale = torch.diag(1 / adj_mat.sum(dim=1).sqrt())
    adj_mat = scale @ adj_mat @ scale
    return features.to_sparse().to(device), labels.to(device), adj_mat.to_sparse().to(device)


def train_iter(epoch, model, optimizer, criterion, input, target, mask_train, mask_val, print_every=10):
    start_t = time.time()
    model.train()
    optimizer.zero_grad()

    output = model(*input)
    loss = criterion(output[mask_train], target[mask_train])

    loss.backward()
    optimizer.step()

    loss_train, acc_train = test(model, criterion, input, target, mask_train)
    loss_val, acc_val = test(model, criterion, input, target, mask_val)

    if epoch % print_every == 0:
        print(
            f"Epoch: {epoch:04d} (time {(time.time() - start_t):.4f}s) loss_train: {loss_train:.9f}"
            f" acc_train: {acc_train:.4f} loss_val: {loss_val:.9f} acc_val: {acc_val:.4f}"
        )


def test(model, criterion, input, target, mask):
    model.eval()
    with torch.no_grad():
        output = model(*input)
        output, target = output[mask], target[mask]
        loss = criterion(output, target)
        acc = (output.argmax(dim=1) == target).float().sum() / len(target)
    return loss.item(), acc.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A graph network")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--l2", type=float, default=5e-4)
    parser.add_argument("--dropout-p", type=float, default=0.5)
    parser.add_argument("--hidden-dim", type=int, default=16)
    parser.add_argument("--val-every", type=int, default=20)
    parser.add_argument("--include-bias", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cpu")
    print(f"Using {device} device")

    features, labels, adj_mat = load_papers("papers", device=device)
    idx = torch.randperm(len(labels)).to(device)
    idx_test, idx_val, idx_train = idx[:30], idx[30:60], idx[60:]

    gcn = GCN(features.shape[1], args.hidden_dim, labels.max().item() + 1, args.include_bias, args.dropout_p).to(device)
    optimizer = Adam(gcn.parameters(), lr=args.lr, weight_decay=args.l2)
    criterion = nn.NLLLoss()

    for epoch in range(args.epochs):
        train_iter(epoch + 1, gcn, optimizer, criterion, (features, adj_mat), labels, idx_train, idx_val, args.val_every)
        if args.dry_run:
            break

    loss_test, acc_test = test(gcn, criterion, (features, adj_mat), labels, idx_test)
    print(f"Test set results: loss {loss_test:.9f} accuracy {acc_test:.4f}")
