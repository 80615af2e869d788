"""Trains a classifier of points with Lightning: data module, callbacks, checkpoints, logs, a test at the end."""

import argparse
import os
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class Points(L.LightningDataModule):
    def __init__(self, root, batch_size, workers):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        def load(split):
            data = np.load(os.path.join(self.hparams.root, f"{split}.npz"))
            return TensorDataset(torch.from_numpy(data["x"]), torch.from_numpy(data["y"]))

        self.train_set, self.val_set, self.test_set = load("train"), load("val"), load("test")

    def _loader(self, dataset, shuffle=False):
        workers = self.hparams.workers
        return DataLoader(
            dataset, self.hparams.batch_size, shuffle=shuffle, num_workers=workers, persistent_workers=workers > 0
        )

    def train_dataloader(self):
        return self._loader(self.train_set, shuffle=True)

    def val_dataloader(self):
        return self._loader(self.val_set)

    def test_dataloader(self):
        return self._loader(self.test_set)


class Classifier(L.LightningModule):
    def __init__(self, hidden=32, lr=1e-2, weight_decay=1e-4):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(2, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, 2),
        )  # fmt: skip
        self.printed = []

    def forward(self, x):
        return self.net(x)

    def _shared_step(self, batch, stage):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        accuracy = (logits.argmax(dim=1) == y).float().mean()
        self.log(f"{stage}_loss", loss, on_epoch=True, on_step=stage == "train")
        self.log(f"{stage}_acc", accuracy, on_epoch=True, on_step=False)
        return loss

    def training_step(self, batch, batch_idx):
        return self._shared_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self._shared_step(batch, "val")

    def test_step(self, batch, batch_idx):
        self._shared_step(batch, "test")

    def on_train_epoch_end(self):
        metrics = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch}: loss {metrics['train_loss_epoch']:.9f}, val loss {metrics['val_loss']:.9f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--precision", default="32-true")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    parser.add_argument("--out", default="out")
    args = parser.parse_args()

    L.seed_everything(7, workers=True)
    data = Points("data", args.batch_size, args.workers)
    model = Classifier()
    checkpoints = ModelCheckpoint(
        dirpath=os.path.join(args.out, "checkpoints"), filename="{epoch}", monitor="val_loss", save_last=True
    )
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        precision=args.precision,
        gradient_clip_val=args.clip,
        accumulate_grad_batches=args.accumulate,
        log_every_n_steps=5,
        logger=CSVLogger(args.out, name="logs"),
        callbacks=[checkpoints, LearningRateMonitor("step"), EarlyStopping("val_loss", patience=10)],
        enable_progress_bar=False,
        enable_model_summary=True,
    )
    trainer.fit(model, datamodule=data, ckpt_path=args.resume)
    (result,) = trainer.test(model, datamodule=data, verbose=False)
    print(f"test loss {result['test_loss']:.9f}, accuracy {result['test_acc']:.4f}")

    best = Classifier.load_from_checkpoint(os.path.join(args.out, "checkpoints", "last.ckpt"), weights_only=False)
    best.eval()
    with torch.no_grad():
        print("of the last:", best(torch.zeros(1, 2)).tolist())


if __name__ == "__main__":
    main()
