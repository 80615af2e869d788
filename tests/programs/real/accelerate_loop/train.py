"""A training loop with accelerate: accumulation, clipping, schedule, evaluation, checkpoints that it goes on from."""

import argparse
import logging
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import ProjectConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm

logger = get_logger(__name__)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data")
    parser.add_argument("--output-dir", default="out")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup-steps", type=int, default=4)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=2)
    parser.add_argument("--mixed-precision", default="no", choices=["no", "bf16"])
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--checkpointing-steps", type=int, default=8)
    parser.add_argument("--resume-from-checkpoint")
    parser.add_argument("--seed", type=int, default=3)
    return parser.parse_args()


class Sequences(Dataset):
    def __init__(self, path):
        self.data = torch.load(path)

    def __len__(self):
        return len(self.data["labels"])

    def __getitem__(self, index):
        return {"inputs": self.data["inputs"][index], "labels": self.data["labels"][index]}


class Encoder(nn.Module):
    def __init__(self, vocab=6, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocab)

    def forward(self, inputs, labels=None):
        logits = self.head(self.layers(self.embed(inputs)).mean(dim=1))
        loss = F.cross_entropy(logits, labels) if labels is not None else None
        return {"loss": loss, "logits": logits}


def main():
    args = parse_args()
    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=args.gradient_accumulation_steps,
        mixed_precision=args.mixed_precision,
        project_config=ProjectConfiguration(project_dir=args.output_dir, total_limit=2),
    )
    logging.basicConfig(format="%(levelname)s - %(name)s - %(message)s", level=logging.INFO)
    logger.info(accelerator.state, main_process_only=False)
    set_seed(args.seed)
    if accelerator.is_main_process:
        os.makedirs(args.output_dir, exist_ok=True)

    train_loader = DataLoader(Sequences(f"{args.data}/train.pt"), batch_size=args.batch_size, shuffle=True)
    eval_loader = DataLoader(Sequences(f"{args.data}/eval.pt"), batch_size=32)
    model = Encoder()
    no_decay = ["bias", "norm"]
    groups = [
        {
            "params": [p for n, p in model.named_parameters() if not any(nd in n for nd in no_decay)],
            "weight_decay": 0.01,
        },
        {"params": [p for n, p in model.named_parameters() if any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / args.warmup_steps))
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )

    steps_per_epoch = -(-len(train_loader) // args.gradient_accumulation_steps)
    max_steps = args.epochs * steps_per_epoch
    progress = tqdm(range(max_steps), disable=not accelerator.is_local_main_process)
    completed_steps = 0
    starting_epoch = 0
    if args.resume_from_checkpoint:
        accelerator.load_state(args.resume_from_checkpoint)
        completed_steps = int(os.path.basename(args.resume_from_checkpoint).removeprefix("step_"))
        starting_epoch = completed_steps // steps_per_epoch
        progress.update(completed_steps)

    for epoch in range(starting_epoch, args.epochs):
        model.train()
        total_loss = 0
        for batch in train_loader:
            with accelerator.accumulate(model):
                outputs = model(**batch)
                loss = outputs["loss"]
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

            if accelerator.sync_gradients:
                progress.update(1)
                completed_steps += 1
                if completed_steps % args.checkpointing_steps == 0:
                    accelerator.save_state(os.path.join(args.output_dir, f"step_{completed_steps}"))
            if completed_steps >= max_steps:
                break

        model.eval()
        losses, correct, count = [], 0, 0
        for batch in eval_loader:
            with torch.no_grad():
                outputs = model(**batch)
            losses.append(accelerator.gather_for_metrics(outputs["loss"].repeat(len(batch["labels"]))))
            predictions, references = accelerator.gather_for_metrics((outputs["logits"].argmax(dim=-1), batch["labels"]))
            correct += (predictions == references).sum().item()
            count += len(references)
        eval_loss = torch.cat(losses).mean()
        accelerator.print(
            f"epoch {epoch}: train loss {total_loss.item() / len(train_loader):.9f}, eval loss {eval_loss:.9f}, "
            f"accuracy {correct / count:.4f}, lr {scheduler.get_last_lr()[0]:.6f}"
        )

    accelerator.wait_for_everyone()
    accelerator.save(accelerator.unwrap_model(model).state_dict(), os.path.join(args.output_dir, "model.pt"))
    accelerator.end_training()


if __name__ == "__main__":
    main()
