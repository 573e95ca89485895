# SPDX-License-Identifier: Apache-2.0
"""nn.Transformer, encoder and decoder, learns to reverse a sequence."""

import math
import os

import torch
from torch import nn

device = os.environ.get("DEVICE", "npu")
STEPS = int(os.environ.get("STEPS", "3"))
VOCABULARY, LENGTH, BATCH, PAD = 12, 6, 4, 0


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Reverser(nn.Module):
    def __init__(self, d_model=16):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, d_model, padding_idx=PAD)
        self.position = PositionalEncoding(d_model)
        self.transformer = nn.Transformer(
            d_model,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=32,
            dropout=0.0,
            batch_first=True,
        )
        self.out = nn.Linear(d_model, VOCABULARY)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.size(1)).to(source.device)
        padding = source == PAD
        x = self.position(self.embedding(source))
        y = self.position(self.embedding(target))
        y = self.transformer(
            x,
            y,
            tgt_mask=mask,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.out(y)


torch.manual_seed(0)
model = Reverser().to(device)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9)

losses = []
model.train()
for step in range(STEPS):
    source = torch.randint(2, VOCABULARY, (BATCH, LENGTH))
    target = torch.cat([torch.ones(BATCH, 1, dtype=torch.long), source.flip(1)], dim=1)
    source[0, -2:] = PAD
    source, target = source.to(device), target.to(device)
    scores = model(source, target[:, :-1])
    loss = criterion(scores.reshape(-1, VOCABULARY), target[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    print(f"step {step} loss {losses[-1]:.4f}")

model.eval()
with torch.no_grad():
    outputs = model(source, target[:, :-1])
predictions = outputs.argmax(-1).tolist()
