# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters of peft on a small Qwen2, trained by the Trainer of transformers."""

import os
import tempfile

device = os.environ.get("DEVICE", "npu")
os.environ["ACCELERATE_TORCH_DEVICE"] = device  # how the Trainer is told its device

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import Qwen2Config, Qwen2ForCausalLM, Trainer, TrainerCallback, TrainingArguments

STEPS = int(os.environ.get("STEPS", "3"))

torch.manual_seed(0)
config = Qwen2Config(
    vocab_size=128,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    use_cache=False,
)


def base_model():
    torch.manual_seed(0)
    return Qwen2ForCausalLM(config)


text = b"An unmodified PyTorch program runs on the NPU by changing one word. " * 8
examples = [
    {"input_ids": list(text[at : at + 16]), "labels": list(text[at : at + 16])}
    for at in range(0, 16 * 16, 16)
]
lora = LoraConfig(
    r=8,
    lora_alpha=16,
    lora_dropout=0.0,
    target_modules=["q_proj", "v_proj", "gate_proj", "up_proj", "down_proj"],
    task_type="CAUSAL_LM",
)
model = get_peft_model(base_model(), lora)
model.print_trainable_parameters()

losses = []


class KeepLosses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            losses.append(logs["loss"])


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        max_steps=STEPS,
        learning_rate=5e-3,
        lr_scheduler_type="cosine",
        warmup_steps=1,
        max_grad_norm=1.0,
        logging_steps=1,
        save_steps=STEPS,
        report_to="none",
        seed=0,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=examples, callbacks=[KeepLosses()])
    trainer.train()
    print("losses", losses)

    model.save_pretrained(f"{folder}/adapter")
    loaded = PeftModel.from_pretrained(base_model(), f"{folder}/adapter").to(device).eval()

model.eval()
tokens = torch.tensor([examples[0]["input_ids"]], device=device)
with torch.no_grad():
    outputs = model(tokens).logits
    torch.testing.assert_close(loaded(tokens).logits, outputs)
    merged = model.merge_and_unload()
    torch.testing.assert_close(merged(tokens).logits, outputs, rtol=1e-3, atol=1e-4)
