#!/usr/bin/env python3
"""Makes what trainers of pictures and captions need for a few steps on a CPU without a network:
nets of random weights, tokenizers with a letter per token, pictures with captions and edges.

    tiny_trainers.py OUT [PICTURES]

OUT/sd           a Stable Diffusion (--pretrained_model_name_or_path of diffusers' scripts)
OUT/kontext      a FLUX.1 Kontext
OUT/clip.json    a CLIP, for open_clip's folder of model_configs
OUT/folder       pictures with metadata.jsonl: file_name, text, edges_file_name
OUT/parquet      the same as a data set of Parquet: image, text, edges
OUT/{0..3}.tar   the same as shards: .jpg, .txt, .json

PICTURES is a folder with JPEGs at any depth; without it 48 are drawn, of several shapes.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

LETTERS = [chr(code) for code in range(33, 127)]
SIZES = [(96, 96), (120, 80), (72, 108), (128, 72), (90, 70), (64, 100)]  # width, height
COLOURS = ("red", "green", "blue", "white")


def drawn_pictures(folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    paths = []
    for number in range(48):
        width, height = SIZES[number % len(SIZES)]
        coarse = Image.fromarray(random.integers(0, 256, (6, 8, 3), np.uint8))
        paths.append(folder / f"{number:03}.jpg")
        coarse.resize((width, height), Image.Resampling.BICUBIC).save(paths[-1], quality=90)
    return paths


def caption(number: int) -> str:
    return f"a {COLOURS[number % 4]} thing, number {number}"


def data(out: Path, pictures: list[Path]) -> None:
    folder = out / "folder"
    (folder / "edges").mkdir(parents=True)
    rows = []
    for number, path in enumerate(pictures):
        name = f"{number:04}"
        shutil.copyfile(path, folder / f"{name}.jpg")
        image = Image.open(path).convert("RGB")
        image.filter(ImageFilter.FIND_EDGES).save(folder / f"edges/{name}.png")
        rows.append({
            "file_name": f"{name}.jpg", "text": caption(number),
            "edges_file_name": f"edges/{name}.png",
        })  # fmt: skip
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shards(out, folder, rows)
    parquet(out, folder, rows)


def shards(out: Path, folder: Path, rows: list[dict[str, str]]) -> None:
    for shard in range(4):
        with tarfile.open(out / f"{shard}.tar", "w") as tar:
            for row in rows[shard::4]:
                key = Path(row["file_name"]).stem
                texts = {"text": row["text"], "texts": [row["text"], "again: " + row["text"]]}
                for ending, content in (
                    ("jpg", (folder / row["file_name"]).read_bytes()),
                    ("txt", row["text"].encode()),
                    ("json", json.dumps(texts).encode()),
                ):
                    member = tarfile.TarInfo(f"{key}.{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def parquet(out: Path, folder: Path, rows: list[dict[str, str]]) -> None:
    import datasets

    def images(field: str) -> list[Any]:
        return [{"bytes": (folder / row[field]).read_bytes(), "path": None} for row in rows]

    columns = {
        "image": images("file_name"),
        "text": [row["text"] for row in rows],
        "edges": images("edges_file_name"),
    }
    made = datasets.Dataset.from_dict(columns)
    for name in ("image", "edges"):
        made = made.cast_column(name, datasets.Image())
    (out / "parquet").mkdir()
    made.to_parquet(out / "parquet/train.parquet")


def clip_tokenizer() -> Any:
    from transformers import CLIPTokenizer

    tokens = [*LETTERS, *(f"{each}</w>" for each in LETTERS), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=77)


def clip_text(tokenizer: Any) -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel

    return CLIPTextModel(CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=37, num_hidden_layers=2,
        num_attention_heads=4, projection_dim=32, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    ))  # fmt: skip


def stable_diffusion(out: Path) -> None:
    import diffusers

    tokenizer = clip_tokenizer()
    parts = {
        "tokenizer": tokenizer,
        "text_encoder": clip_text(tokenizer),
        "vae": diffusers.AutoencoderKL(
            block_out_channels=(4,) * 4, norm_num_groups=4, latent_channels=4, layers_per_block=1,
            down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        ),
        "unet": diffusers.UNet2DConditionModel(
            block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1, sample_size=8,
            cross_attention_dim=32, attention_head_dim=2, in_channels=4, out_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        ),
        "scheduler": diffusers.DDPMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False,
            steps_offset=1,
        ),
    }  # fmt: skip
    pipeline = diffusers.StableDiffusionPipeline(
        **parts, safety_checker=None, feature_extractor=None, requires_safety_checker=False
    )
    pipeline.save_pretrained(out / "sd")


def kontext(out: Path) -> None:
    import diffusers
    from transformers import T5Config, T5EncoderModel, T5Tokenizer

    tokenizer = clip_tokenizer()
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -2.0)]
    letters = T5Tokenizer(vocab=pieces + [(each, -3.0) for each in LETTERS], extra_ids=0)
    letters_net = T5EncoderModel(T5Config(
        vocab_size=len(letters), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4
    ))  # fmt: skip
    diffusers.FluxKontextPipeline(
        tokenizer=tokenizer,
        text_encoder=clip_text(tokenizer),
        tokenizer_2=letters,
        text_encoder_2=letters_net,
        vae=diffusers.AutoencoderKL(
            block_out_channels=(4,), layers_per_block=1, latent_channels=1, norm_num_groups=1,
            use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5,
        ),
        transformer=diffusers.FluxTransformer2DModel(
            patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16,
            num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32,
            axes_dims_rope=(4, 4, 8), guidance_embeds=True,
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    ).save_pretrained(out / "kontext")  # fmt: skip


def clip_json(out: Path) -> None:
    config = {
        "embed_dim": 32,
        "vision_cfg": {
            "image_size": 64, "layers": 2, "width": 32, "head_width": 16, "patch_size": 16,
        },
        "text_cfg": {
            "context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2,
        },
    }  # fmt: skip
    (out / "clip.json").write_text(json.dumps(config))


def make(out: Path, pictures: Path | None = None) -> Path:
    out.mkdir(parents=True)
    endings = (".jpg", ".jpeg")
    found = [] if pictures is None else sorted(pictures.rglob("*"))
    chosen = [path for path in found if path.suffix.lower() in endings]
    data(out, chosen or drawn_pictures(out / "pictures"))
    stable_diffusion(out)
    kontext(out)
    clip_json(out)
    return out


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    make(*map(Path, sys.argv[1:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
