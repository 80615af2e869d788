"""The Trainer of transformers."""

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

transformers.logging.set_verbosity_error()
torch.manual_seed(0)
config = BertConfig(
    vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
model = BertForSequenceClassification(config)
data = [{"input_ids": torch.randint(50, (8,)), "labels": torch.tensor(i % 2)} for i in range(64)]
arguments = TrainingArguments(
    "out", num_train_epochs=3, per_device_train_batch_size=8, report_to=[], save_strategy="no", logging_strategy="no",
    use_cpu=True, disable_tqdm=True,
)  # fmt: skip
result = Trainer(model, arguments, train_dataset=data).train()
print(f"{result.training_loss:.6f} {sum(p.sum() for p in model.parameters()):.6f}")
