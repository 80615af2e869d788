"""One multiplication and a look at a table as a region of its own: checking the guards takes longer than the work."""

# mode: compiled
import torch

torch.set_grad_enabled(False)


TABLE = list(range(300))


def scale(x):  # region  # expect: MP401 `def scale`
    return x * max(TABLE)


x = torch.randn(4)
for _ in range(30):
    scale(x)
torch.set_grad_enabled(True)
