"""The Trainer of transformers with a small BERT, its own AdamW and a linear schedule."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(7)
config = BertConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
)
model = BertForSequenceClassification(config)
tokens = torch.randint(0, 64, (64, 12))
data = [
    {"input_ids": one, "attention_mask": torch.ones_like(one), "labels": torch.tensor(int(one[0] > 32))} for one in tokens
]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=8, learning_rate=1e-3, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, logging_steps=10,
    )  # fmt: skip
    result = Trainer(model, arguments, train_dataset=data).train()
print(f"loss {result.training_loss:.5f}")
