"""Lightning with automatic optimization: the optimizer's step gets a closure with the forward and backward pass."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


L.seed_everything(7, verbose=False)
x = torch.randn(320, 8)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), 16, num_workers=0)
trainer = L.Trainer(
    accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False,
)  # fmt: skip
trainer.fit(Classifier(), loader)
print(f"loss {trainer.callback_metrics['train_loss']:.6f}")
