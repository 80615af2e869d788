"""Samples from a trained model."""

import os
import pickle
from contextlib import nullcontext

import torch
from model import GPT, GPTConfig

# -----------------------------------------------------------------------------
out_dir = "out"
start = "\n"  # or "FILE:prompt.txt"
num_samples = 10
max_new_tokens = 500
temperature = 0.8
top_k = 200
seed = 1337
device = "cuda"
dtype = "float32"
compile = False
exec(open("configurator.py").read())
# -----------------------------------------------------------------------------

torch.manual_seed(seed)
torch.cuda.manual_seed(seed)
device_type = "cuda" if "cuda" in device else "cpu"
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
ctx = nullcontext() if dtype == "float32" else torch.amp.autocast(device_type=device_type, dtype=ptdtype)

checkpoint = torch.load(os.path.join(out_dir, "ckpt.pt"), map_location=device)
model = GPT(GPTConfig(**checkpoint["model_args"]))
model.load_state_dict({k.removeprefix("_orig_mod."): v for k, v in checkpoint["model"].items()})
model.eval()
model.to(device)
if compile:
    model = torch.compile(model)

with open(os.path.join("data", checkpoint["config"]["dataset"], "meta.pkl"), "rb") as f:
    meta = pickle.load(f)
stoi, itos = meta["stoi"], meta["itos"]
encode = lambda s: [stoi[c] for c in s]
decode = lambda ids: "".join([itos[i] for i in ids])

if start.startswith("FILE:"):
    with open(start[5:], encoding="utf-8") as f:
        start = f.read()
x = torch.tensor(encode(start), dtype=torch.long, device=device)[None, ...]

with torch.no_grad():
    with ctx:
        for k in range(num_samples):
            y = model.generate(x, max_new_tokens, temperature=temperature, top_k=top_k)
            print(decode(y[0].tolist()))
            print("---------------")
