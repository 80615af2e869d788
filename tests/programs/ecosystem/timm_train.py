"""A loop as in timm's train.py: a model, optimizer and scheduler of timm, mixup, smoothed labels, a moving average."""

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV3, accuracy

torch.manual_seed(7)
np.random.seed(7)
model = timm.create_model("test_vit", num_classes=4, img_size=32, patch_size=8)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
scheduler = CosineLRScheduler(optimizer, t_initial=40, warmup_t=5, warmup_lr_init=1e-5)
average = ModelEmaV3(model, decay=0.99)
mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=0.0, label_smoothing=0.1, num_classes=4)
train_loss_fn = SoftTargetCrossEntropy()
images, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 4, (64,))


def train_one_epoch(epoch, model, optimizer, updates):
    losses = AverageMeter()
    model.train()
    for batch in range(8):
        x, y = mixup(images[batch * 8 : batch * 8 + 8], labels[batch * 8 : batch * 8 + 8])
        loss = train_loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update(model, step=updates)
        updates += 1
        losses.update(loss.item(), x.size(0))
        scheduler.step_update(num_updates=updates, metric=losses.avg)
    return losses.avg, updates


@torch.inference_mode()
def validate(model):
    model.eval()
    top1 = AverageMeter()
    for batch in range(4):
        x, y = images[batch * 16 : batch * 16 + 16], labels[batch * 16 : batch * 16 + 16]
        top1.update(accuracy(model(x), y, topk=(1,))[0].item(), x.size(0))
    return top1.avg


updates = 0
for epoch in range(4):
    loss, updates = train_one_epoch(epoch, model, optimizer, updates)
    scheduler.step(epoch + 1)
    print(f"epoch {epoch}: loss {loss:.5f}, top-1 {validate(average.module):.1f}")
