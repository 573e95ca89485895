# SPDX-License-Identifier: Apache-2.0
"""A small Qwen2 of random weights generates, greedily and by sampling, with its key-value cache."""

import os

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

device = os.environ.get("DEVICE", "npu")
NEW_TOKENS = int(os.environ.get("NEW_TOKENS", "5"))

torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=96,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=0,
)
model = Qwen2ForCausalLM(config).to(device).eval()

prompts = torch.randint(1, 96, (2, 7)).to(device)
mask = torch.ones_like(prompts)
mask[0, :2] = 0  # the first prompt is shorter, padded on its left

greedy = model.generate(
    prompts,
    attention_mask=mask,
    max_new_tokens=NEW_TOKENS,
    do_sample=False,
    return_dict_in_generate=True,
    output_scores=True,
)
outputs = torch.stack(greedy.scores)
predictions = greedy.sequences.tolist()
print("greedy", predictions)


def sample(seed):
    torch.manual_seed(seed)
    return model.generate(
        prompts,
        attention_mask=mask,
        max_new_tokens=NEW_TOKENS,
        do_sample=True,
        temperature=0.8,
        top_k=20,
        top_p=0.95,
    )


first, again, other = sample(1), sample(1), sample(2)
print("sampled", first.tolist())
assert torch.equal(first, again), "one seed, one text"
assert not torch.equal(first, other)
