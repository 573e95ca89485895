# SPDX-License-Identifier: Apache-2.0
"""The part-of-speech tagger of PyTorch's tutorial, and the same in packed batches."""

import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = torch.device(os.environ.get("DEVICE", "npu"))
EPOCHS = int(os.environ.get("EPOCHS", "3"))

torch.manual_seed(1)
training_data = [
    ("The dog ate the apple".split(), ["DET", "NN", "V", "DET", "NN"]),
    ("Everybody read that book".split(), ["NN", "V", "DET", "NN"]),
]
word_to_ix = {}
for sentence, _ in training_data:
    for word in sentence:
        word_to_ix.setdefault(word, len(word_to_ix))
tag_to_ix = {"DET": 0, "NN": 1, "V": 2}


def prepare_sequence(seq, to_ix):
    return torch.tensor([to_ix[w] for w in seq], dtype=torch.long, device=device)


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim)
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, _ = self.lstm(embeds.view(len(sentence), 1, -1))
        tag_space = self.hidden2tag(lstm_out.view(len(sentence), -1))
        return F.log_softmax(tag_space, dim=1)


model = LSTMTagger(6, 6, len(word_to_ix), len(tag_to_ix)).to(device)
loss_function = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

losses = []
for _ in range(EPOCHS):
    for sentence, tags in training_data:
        model.zero_grad()
        tag_scores = model(prepare_sequence(sentence, word_to_ix))
        loss = loss_function(tag_scores, prepare_sequence(tags, tag_to_ix))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


class PackedTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(word_to_ix), 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, len(tag_to_ix))

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.embedding(words), lengths, batch_first=True, enforce_sorted=False
        )
        output, _ = self.lstm(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.out(output)


words = pad_sequence([prepare_sequence(s, word_to_ix) for s, _ in training_data], batch_first=True)
tags = pad_sequence(
    [prepare_sequence(t, tag_to_ix) for _, t in training_data], batch_first=True, padding_value=-100
)
lengths = torch.tensor([len(s) for s, _ in training_data])
batched = PackedTagger().to(device)
optimizer = torch.optim.Adam(batched.parameters(), lr=0.01)
for _ in range(EPOCHS):
    optimizer.zero_grad()
    outputs = batched(words, lengths)
    loss = F.cross_entropy(outputs.flatten(0, 1), tags.flatten())
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses", losses)
