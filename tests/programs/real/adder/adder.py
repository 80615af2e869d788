"""Trains a GPT to add numbers of a few digits.

$ python adder.py --data.ndigit=2 --trainer.max_iters=1000
"""

import os
import sys

import torch
from tinygpt.model import GPT
from tinygpt.trainer import Trainer
from tinygpt.utils import Config, set_seed, setup_logging
from torch.utils.data import Dataset
from torch.utils.data.dataloader import DataLoader


def get_config():
    config = Config()

    config.system = Config()
    config.system.seed = 3407
    config.system.work_dir = "./out/adder"
    config.system.eval_interval = 500
    config.system.eval_batches = None

    config.data = AdditionDataset.get_default_config()

    config.model = GPT.get_default_config()
    config.model.model_type = "gpt-nano"

    config.trainer = Trainer.get_default_config()
    config.trainer.learning_rate = 5e-4
    return config


class AdditionDataset(Dataset):
    """Sums as strings of digits: 85 + 50 = 135 is "8550531", the result from its last digit to its first."""

    @staticmethod
    def get_default_config():
        config = Config()
        config.ndigit = 2
        return config

    def __init__(self, config, split):
        self.config = config
        self.split = split
        ndigit = self.config.ndigit
        assert ndigit <= 3, "all problems are held in memory"
        num = (10**ndigit) ** 2
        rng = torch.Generator()
        rng.manual_seed(1337)
        perm = torch.randperm(num, generator=rng)
        num_test = min(int(num * 0.2), 500)
        self.ixes = perm[:num_test] if split == "test" else perm[num_test:]

    def get_vocab_size(self):
        return 10

    def get_block_size(self):
        # Two numbers and a sum that may have a digit more; the last digit is never an input.
        return 3 * self.config.ndigit + 1 - 1

    def __len__(self):
        return self.ixes.nelement()

    def __getitem__(self, idx):
        ndigit = self.config.ndigit
        idx = self.ixes[idx].item()
        a, b = divmod(idx, 10**ndigit)
        c = a + b
        render = f"%0{ndigit}d" % a + f"%0{ndigit}d" % b + (f"%0{ndigit + 1}d" % c)[::-1]
        dix = [int(s) for s in render]
        x = torch.tensor(dix[:-1], dtype=torch.long)
        y = torch.tensor(dix[1:], dtype=torch.long)
        y[: ndigit * 2 - 1] = -1  # only the sum is to be learned
        return x, y


if __name__ == "__main__":
    config = get_config()
    config.merge_from_args(sys.argv[1:])
    print(config)
    setup_logging(config)
    set_seed(config.system.seed)

    train_dataset = AdditionDataset(config.data, split="train")
    test_dataset = AdditionDataset(config.data, split="test")

    config.model.vocab_size = train_dataset.get_vocab_size()
    config.model.block_size = train_dataset.get_block_size()
    model = GPT(config.model)
    trainer = Trainer(config.trainer, model, train_dataset)

    def eval_split(trainer, split, max_batches=None):
        dataset = {"train": train_dataset, "test": test_dataset}[split]
        ndigit = config.data.ndigit
        results = []
        mistakes_printed_already = 0
        factors = torch.tensor([[10**i for i in range(ndigit + 1)][::-1]]).to(trainer.device)
        loader = DataLoader(dataset, batch_size=100, num_workers=0, drop_last=False)
        for b, (x, y) in enumerate(loader):
            x = x.to(trainer.device)
            d1d2 = x[:, : ndigit * 2]
            d1d2d3 = model.generate(d1d2, ndigit + 1, do_sample=False)
            d3 = d1d2d3[:, -(ndigit + 1) :]
            d3 = d3.flip(1)
            d1i = (d1d2[:, :ndigit] * factors[:, 1:]).sum(1)
            d2i = (d1d2[:, ndigit : ndigit * 2] * factors[:, 1:]).sum(1)
            d3i_pred = (d3 * factors).sum(1)
            d3i_gt = d1i + d2i
            correct = (d3i_pred == d3i_gt).cpu()
            for i in range(x.size(0)):
                results.append(int(correct[i]))
                if not correct[i] and mistakes_printed_already < 5:
                    mistakes_printed_already += 1
                    print("the model: %d + %d = %d, which is %d" % (d1i[i], d2i[i], d3i_pred[i], d3i_gt[i]))
            if max_batches is not None and b + 1 >= max_batches:
                break
        rt = torch.tensor(results, dtype=torch.float)
        print("%s final score: %d/%d = %.2f%% correct" % (split, rt.sum(), len(results), 100 * rt.mean()))
        return rt.sum()

    top_score = 0

    def batch_end_callback(trainer):
        global top_score

        if trainer.iter_num % 10 == 0:
            loss = trainer.loss.item()
            print(f"iter_dt {trainer.iter_dt * 1000:.2f}ms; iter {trainer.iter_num}: train loss {loss:.9f}")

        if trainer.iter_num % config.system.eval_interval == 0:
            model.eval()
            with torch.no_grad():
                train_score = eval_split(trainer, "train", max_batches=config.system.eval_batches)
                test_score = eval_split(trainer, "test", max_batches=config.system.eval_batches)
            score = train_score + test_score
            if score >= top_score:
                top_score = score
                print(f"saving model with top score of {score}")
                ckpt_path = os.path.join(config.system.work_dir, "model.pt")
                torch.save(model.state_dict(), ckpt_path)
            model.train()

    trainer.set_callback("on_batch_end", batch_end_callback)
    trainer.run()
