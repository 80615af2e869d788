"""One multiplication as a region of its own: checking the guards takes longer than the work."""

# mode: compiled
import torch

torch.set_grad_enabled(False)


def scale(x):  # region  # expect: MP401
    return x * 2


x = torch.randn(4)
for _ in range(30):
    scale(x)
torch.set_grad_enabled(True)
