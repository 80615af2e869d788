import argparse

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import TensorDataset
from train import test, train

parser = argparse.ArgumentParser(description="Hogwild")
parser.add_argument("--batch-size", type=int, default=64, metavar="N")
parser.add_argument("--epochs", type=int, default=10, metavar="N")
parser.add_argument("--lr", type=float, default=0.01, metavar="LR")
parser.add_argument("--momentum", type=float, default=0.5, metavar="M")
parser.add_argument("--seed", type=int, default=1, metavar="S")
parser.add_argument("--log-interval", type=int, default=10, metavar="N")
parser.add_argument("--num-processes", type=int, default=2, metavar="N", help="with 1, runs can be compared")
parser.add_argument("--start-method", default="spawn")
parser.add_argument("--save_model", action="store_true", default=False)
parser.add_argument("--dry-run", action="store_true", default=False)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()  # noqa: UP008
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 320)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


if __name__ == "__main__":
    args = parser.parse_args()
    device = torch.device("cpu")

    generator = torch.Generator().manual_seed(2)
    templates = torch.randn(10, 1, 28, 28, generator=generator)

    def digits(count):
        target = torch.randint(10, (count,), generator=generator)
        return TensorDataset(templates[target] + torch.randn(count, 1, 28, 28, generator=generator), target)

    dataset1, dataset2 = digits(400), digits(100)
    kwargs = {"batch_size": args.batch_size, "shuffle": True}

    torch.manual_seed(args.seed)
    mp.set_start_method(args.start_method, force=True)

    model = Net().to(device)
    model.share_memory()  # gradients are made later, so each process has its own

    processes = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model, device, dataset1, kwargs))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()

    if args.save_model:
        torch.save(model.state_dict(), "hogwild.pt")

    test(args, model, device, dataset2, kwargs)
