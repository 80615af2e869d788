"""Fine-tunes a classifier of sentences with the Trainer.

$ python finetune.py --model_name_or_path tiny-model --data_dir data --output_dir out --do_train --do_eval
"""

import json
import logging
import os
import sys
from dataclasses import dataclass, field
from typing import Optional

import numpy as np
import torch
import transformers
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    EarlyStoppingCallback,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import get_last_checkpoint

logger = logging.getLogger(__name__)


@dataclass
class ModelArguments:
    model_name_or_path: str = field(metadata={"help": "A folder with a configuration and a tokenizer"})
    tokenizer_name: Optional[str] = field(default=None, metadata={"help": "If it is another folder"})  # noqa: UP045


@dataclass
class DataArguments:
    data_dir: str = field(metadata={"help": "A folder with {train,validation,test}.jsonl"})
    max_seq_length: int = field(default=32)
    max_train_samples: Optional[int] = field(default=None)  # noqa: UP045


class Sentences(torch.utils.data.Dataset):
    def __init__(self, path, tokenizer, max_length, limit=None):
        with open(path, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f][:limit]
        texts = tokenizer([row["text"] for row in rows], truncation=True, max_length=max_length)
        self.examples = [{**{key: texts[key][i] for key in texts}, "labels": row["label"]} for i, row in enumerate(rows)]

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        return self.examples[index]


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        model_args, data_args, training_args = parser.parse_json_file(json_file=os.path.abspath(sys.argv[1]))
    else:
        model_args, data_args, training_args = parser.parse_args_into_dataclasses()

    logging.basicConfig(
        format="%(levelname)s - %(name)s - %(message)s", handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO
    )
    transformers.utils.logging.set_verbosity_warning()
    logger.info("16-bits training: %s", training_args.fp16 or training_args.bf16)

    last_checkpoint = None
    if os.path.isdir(training_args.output_dir) and training_args.do_train:
        last_checkpoint = get_last_checkpoint(training_args.output_dir)
        if last_checkpoint is not None and training_args.resume_from_checkpoint is None:
            logger.info("Continuing from %s", last_checkpoint)

    set_seed(training_args.seed)
    config = AutoConfig.from_pretrained(model_args.model_name_or_path, num_labels=2)
    tokenizer = AutoTokenizer.from_pretrained(model_args.tokenizer_name or model_args.model_name_or_path)
    model = AutoModelForSequenceClassification.from_config(config)

    def dataset(split, limit=None):
        path = os.path.join(data_args.data_dir, f"{split}.jsonl")
        return Sentences(path, tokenizer, data_args.max_seq_length, limit)

    def compute_metrics(p):
        preds = p.predictions[0] if isinstance(p.predictions, tuple) else p.predictions
        preds = np.argmax(preds, axis=1)
        return {"accuracy": float((preds == p.label_ids).mean())}

    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=dataset("train", data_args.max_train_samples) if training_args.do_train else None,
        eval_dataset=dataset("validation"),
        compute_metrics=compute_metrics,
        processing_class=tokenizer,
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=5)],
    )

    if training_args.do_train:
        checkpoint = training_args.resume_from_checkpoint or last_checkpoint
        train_result = trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.log_metrics("train", train_result.metrics)
        trainer.save_state()

    if training_args.do_eval:
        metrics = trainer.evaluate()
        trainer.log_metrics("eval", metrics)
        print(f"eval loss {metrics['eval_loss']:.9f}, accuracy {metrics['eval_accuracy']:.4f}")

    if training_args.do_predict:
        predictions = np.argmax(trainer.predict(dataset("test"), metric_key_prefix="predict").predictions, axis=1)
        with open(os.path.join(training_args.output_dir, "predictions.txt"), "w") as writer:
            writer.writelines(f"{index}\t{model.config.id2label[item]}\n" for index, item in enumerate(predictions))

    for entry in trainer.state.log_history:
        if "loss" in entry:
            print(f"step {entry['step']}: loss {entry['loss']:.9f}, norm {entry['grad_norm']:.6f}")


if __name__ == "__main__":
    main()
