"""Sine waves continued by two LSTM cells, trained with LBFGS, whose step calls a closure."""

import argparse

import torch
from torch import nn, optim


class Sequence(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.hidden = hidden
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)
        c_t = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)
        h_t2 = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)
        c_t2 = torch.zeros(input.size(0), self.hidden, dtype=input.dtype)

        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--length", type=int, default=5)
    parser.add_argument("--max-iter", type=int, default=2, help="iterations in a step of LBFGS")
    args = parser.parse_args()

    torch.manual_seed(0)
    phase = 6 * torch.rand(16, 1, dtype=torch.float64)
    data = torch.sin(torch.arange(args.length + 1, dtype=torch.float64) / 2 + phase)
    input = data[3:, :-1]
    target = data[3:, 1:]
    test_input = data[:3, :-1]
    test_target = data[:3, 1:]

    seq = Sequence()
    seq.double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=args.max_iter)
    losses = []
    for i in range(args.steps):

        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        losses.append(loss.item())
        if i % 10 == 0:
            print("STEP: ", i)
            print(f"loss: {loss.item():.8f}")
            with torch.no_grad():
                future = 4
                pred = seq(test_input, future=future)
                test_loss = criterion(pred[:, :-future], test_target)
                print(f"test loss: {test_loss.item():.8f}, next: {pred[0, -future].item():.5f}")

    print(f"losses {sum(losses):.9f}")
    print(f"checksum {sum(p.double().sum().item() for p in seq.parameters()):.9f}")


if __name__ == "__main__":
    main()
