"""Lightning, with automatic and manual optimization."""

import logging
import sys
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Automatic(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.losses = []

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.losses.append(loss.detach())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Manual(Automatic):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, index):
        x, y = batch
        optimizer = self.optimizers()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.net(x), y)
        self.manual_backward(loss)
        optimizer.step()
        self.losses.append(loss.detach())


torch.manual_seed(0)
x = torch.randn(64, 4)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 8)
model = {"automatic": Automatic, "manual": Manual}[sys.argv[1]]()
trainer = lightning.Trainer(
    max_epochs=4, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    accelerator="cpu",
)  # fmt: skip
trainer.fit(model, data)
print([f"{loss:.6f}" for loss in model.losses[::6]])
