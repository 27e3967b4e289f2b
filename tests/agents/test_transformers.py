"""HFAgent with real pipelines of transformers: tiny models with random weights, made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import envrate as er
from envrate.agents import HFAgent, Poller

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install 'envrate[hf]'")
torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'envrate[hf]'")
pytestmark = pytest.mark.filterwarnings("ignore")

ALERT = er.tasks.get("alert")
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for p in m['content'] %}{% if p['type'] == 'image' %}<image>{% else %}{{ p['text'] }}{% endif %}{% endfor %}"
    "{% endif %} {% endfor %}assistant:"
)


def tokenizer() -> Any:
    """Byte by byte, with the special tokens of a chat model."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = ["<unk>", "<s>", "</s>", "<image>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[], unk_token="<unk>"))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, extra_special_tokens={"image_token": "<image>"}, **special
    )
    fast.chat_template = TEMPLATE
    return fast


TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}


def test_a_text_model_plays(tmp_path: Path) -> None:
    torch.manual_seed(0)
    words = tokenizer()
    settings = transformers.LlamaConfig(vocab_size=len(words), max_position_embeddings=8192, **TEXT)
    transformers.LlamaForCausalLM(settings).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    check(HFAgent.from_pretrained(str(tmp_path), Poller(ALERT, log=tmp_path / "replies.jsonl")), "symbols")


def test_a_model_with_pictures_plays(tmp_path: Path) -> None:
    torch.manual_seed(0)
    words = tokenizer()
    text = transformers.LlamaConfig(vocab_size=len(words), max_position_embeddings=8192, **TEXT)
    vision = transformers.CLIPVisionConfig(image_size=32, patch_size=16, **TEXT)
    settings = transformers.LlavaConfig(
        text_config=text, vision_config=vision, image_token_id=words.convert_tokens_to_ids("<image>")
    )
    transformers.LlavaForConditionalGeneration(settings).save_pretrained(tmp_path)
    size = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
    pictures = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)(**size)
    transformers.LlavaProcessor(
        pictures,
        words,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(tmp_path)
    check(HFAgent.from_pretrained(str(tmp_path), Poller(ALERT, "video", window=2)), "video")


def check(agent: HFAgent, modality: str) -> None:
    """A short episode: one reply per poll, each with its time, and nothing of it makes sense."""
    trace = er.live.run(ALERT, agent, modality=modality, clock="virtual", num_ticks=4, seed=1)
    replies = list(agent.poller._known.values())
    assert len(replies) >= 4
    assert all(isinstance(entry["reply"], str) and entry["latency_ms"] > 0 for entry in replies)
    assert trace.header.agent == agent.name
