# SPDX-License-Identifier: Apache-2.0
"""A small GPT of nn.MultiheadAttention learns the characters of a text, then writes some."""

import os

import torch
import torch.nn.functional as F
from torch import nn

device = os.environ.get("DEVICE", "npu")
STEPS = int(os.environ.get("STEPS", "3"))
BLOCK, BATCH, WIDTH = 8, 4, 16

text = "to be, or not to be, that is the question: whether 'tis nobler in the mind to suffer"
chars = sorted(set(text))
encode = {c: i for i, c in enumerate(chars)}
data = torch.tensor([encode[c] for c in text], dtype=torch.long)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        length = x.size(1)
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool, device=x.device), 1)
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(len(chars), WIDTH)
        self.wpe = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, len(chars), bias=False)
        self.lm_head.weight = self.wte.weight  # tied

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def get_batch():
    ix = torch.randint(len(data) - BLOCK, (BATCH,))
    x = torch.stack([data[i : i + BLOCK] for i in ix.tolist()])
    y = torch.stack([data[i + 1 : i + 1 + BLOCK] for i in ix.tolist()])
    return x.to(device), y.to(device)


torch.manual_seed(1337)
model = GPT().to(device)
assert model.lm_head.weight is model.wte.weight
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
    lr=1e-2,
    betas=(0.9, 0.95),
)
warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)

losses = []
for step in range(STEPS):
    _, loss = model(*get_batch())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    losses.append(loss.item())
    print(f"step {step}: loss {losses[-1]:.4f}")


@torch.no_grad()
def write(idx, count, greedy):
    for _ in range(count):
        logits, _ = model(idx[:, -BLOCK:])
        logits = logits[:, -1, :] / 0.8
        values, _ = torch.topk(logits, 5)
        logits[logits < values[:, [-1]]] = -float("inf")
        probs = F.softmax(logits, dim=-1)
        following = probs.argmax(-1, keepdim=True) if greedy else torch.multinomial(probs, 1)
        idx = torch.cat((idx, following), dim=1)
    return idx


model.eval()
start = torch.zeros((1, 1), dtype=torch.long, device=device)
predictions = write(start, 6, greedy=True).tolist()
sampled = write(start, 6, greedy=False)[0].tolist()
print("".join(chars[i] for i in sampled))
with torch.no_grad():
    outputs = model(data[None, :BLOCK].to(device))[0]
