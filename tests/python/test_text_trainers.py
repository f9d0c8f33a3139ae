"""The loaders that python/examples/adapt puts into open_clip and diffusers give what the scripts'
own transforms make of the same pictures, with the same captions."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from coco_files import example, like
from conftest import PIXELS, jpeg, picture
from PIL import Image, ImageOps
from shard_files import tar_file
from trainer_clones import adapted_clone

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from torchvision import transforms  # noqa: E402
from torchvision.transforms import functional  # noqa: E402

from stoker import augment  # noqa: E402
from stoker.torch import to_torchvision  # noqa: E402

SIZES = [(48, 40), (60, 36), (36, 54), (72, 40), (45, 35), (40, 64), (33, 33)]  # width, height
PICTURES = 13
TURNED = Image.Exif()
TURNED[0x0112] = 6  # Orientation, by which diffusers' scripts turn it, open_clip not
IMAGES = [
    jpeg(picture(i, *SIZES[i % len(SIZES)]), **({"exif": TURNED} if i == 3 else {}))
    for i in range(PICTURES)
]
SEED = 5


def caption(number: int) -> str:
    return f"{number} of {PICTURES} pictures, \N{DOG FACE}"


def opened(number: int) -> Image.Image:
    return ImageOps.exif_transpose(lying(number))


def lying(number: int) -> Image.Image:
    return Image.open(io.BytesIO(IMAGES[number])).convert("RGB")


def edges(number: int) -> bytes:
    out = io.BytesIO()
    Image.eval(opened(number), lambda value: 255 - value).save(out, "PNG")
    return out.getvalue()


def data_set(**columns: list[Any]) -> Any:
    datasets = pytest.importorskip("datasets")

    def images(contents: list[bytes]) -> list[Any]:
        return [{"bytes": content, "path": None} for content in contents]

    given = {"image": images(IMAGES), "text": list(map(caption, range(PICTURES)))}
    given["edges"] = images(list(map(edges, range(PICTURES))))
    made = datasets.Dataset.from_dict({**given, **columns})
    for name in ("image", "edges"):
        made = made.cast_column(name, datasets.Image())
    return made


class Letters:
    """A tokenizer with the interface of transformers' that takes letters for tokens."""

    model_max_length = 40

    def __call__(self, texts: list[str], **given: Any) -> Any:
        assert given == {
            "max_length": 40, "padding": "max_length", "truncation": True, "return_tensors": "pt"
        }  # fmt: skip
        ids = [[*map(ord, text), *[0] * 40][:40] for text in texts]
        return SimpleNamespace(input_ids=torch.tensor(ids))


def texts_of(tokens: Any) -> list[str]:
    return ["".join(map(chr, row)).rstrip("\0") for row in tokens.tolist()]


def number_of(text: str) -> int:
    number = int(text.split(" ")[0])
    assert text == caption(number)
    return number


def accelerator(rank: int = 0, world: int = 1) -> Any:
    kept: list[Any] = []
    return SimpleNamespace(
        device=torch.device("cpu"), process_index=rank, num_processes=world, kept=kept,
        register_for_checkpointing=kept.append,
    )  # fmt: skip


def options(**given: Any) -> Any:
    usual = {
        "resolution": 32, "image_column": None, "caption_column": None, "seed": SEED,
        "center_crop": True, "random_flip": False, "image_interpolation_mode": "lanczos",
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **given})


def loader_for(dataset: Any, args: Any, world: Any = None, batch_size: int = 4) -> Any:
    return example("reference_diffusers").training_loader(
        dataset, shuffle=True, collate_fn=None, batch_size=batch_size, num_workers=0, args=args,
        accelerator=world or accelerator(), tokenizer=Letters(),
    )  # fmt: skip


def numbers(batches: Any) -> list[int]:
    return [number_of(text) for batch in batches for text in texts_of(batch["input_ids"])]


# For values from -1 to 1. The loaders give the bytes of Pillow 13, which resizes in another order
# than its predecessors: up to three grey levels.
NEARLY = 1e-6 if PIXELS == "exact" else 3 * 2 / 255


def close(mine: Any, other: Any) -> None:
    torch.testing.assert_close(mine, other, atol=NEARLY, rtol=0)


def values(image: Any) -> Any:
    return functional.normalize(functional.to_tensor(image), [0.5], [0.5])


def test_text_to_image_has_the_pictures_of_its_transforms() -> None:
    loader = loader_for(data_set().shuffle(seed=4), options())  # as with --max_train_samples
    batches = list(loader)
    assert [len(batch["pixel_values"]) for batch in batches] == [4, 4, 4, 1]
    assert sorted(numbers(batches)) == list(range(PICTURES))
    steps = transforms.Compose([
        transforms.Resize(32, transforms.InterpolationMode.LANCZOS), transforms.CenterCrop(32),
    ])  # fmt: skip
    for batch in batches:
        for number, pixels in zip(numbers([batch]), batch["pixel_values"], strict=True):
            close(pixels, values(steps(opened(number))))
    assert numbers(loader) != numbers(batches)  # the next epoch


def test_text_to_image_crops_and_flips_at_random() -> None:
    args = options(center_crop=False, random_flip=True, image_interpolation_mode="bilinear")
    stages = example("reference_diffusers").stages_of(args)
    assert str(stages) == "resize(size=32) | random_crop(32) | flip"
    for batch in loader_for(data_set(), args):
        for number, pixels in zip(numbers([batch]), batch["pixel_values"], strict=True):
            image = opened(number)
            size = (image.height, image.width)
            drawn = augment.draw(stages, size, seed=SEED, sample=number, size=32)
            close(pixels, values(to_torchvision(drawn, image)))


def test_ranks_share_an_epoch() -> None:
    shares = [list(loader_for(data_set(), options(), accelerator(r, 3), 2)) for r in range(3)]
    assert [[len(batch["input_ids"]) for batch in share] for share in shares] == [[2, 2, 2]] * 3
    assert {number for share in shares for number in numbers(share)} == set(range(PICTURES))
    with pytest.raises(ValueError, match="give --seed"):
        loader_for(data_set(), options(seed=None), accelerator(0, 2))


def test_a_saved_state_goes_on_within_an_epoch() -> None:
    first, second = accelerator(), accelerator()
    batches = iter(loader_for(data_set(), options(), first))
    next(batches)
    state = first.kept[0].state_dict()
    rest = numbers(batches)
    loader = loader_for(data_set(), options(), second)
    second.kept[0].load_state_dict(state)
    assert numbers(loader) == rest


def test_one_of_several_captions_is_drawn() -> None:
    captions = [[caption(i), f"again {caption(i)}"] for i in range(PICTURES)]
    loader = loader_for(data_set(text=captions), options())
    seen = {text for _ in range(4) for batch in loader for text in texts_of(batch["input_ids"])}
    assert seen <= {text for pair in captions for text in pair} and len(seen) > PICTURES + 5


def test_controlnet_has_both_pictures() -> None:
    args = options(conditioning_image_column="edges", proportion_empty_prompts=0.0)
    steps = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(32)])
    batches = list(loader_for(data_set(), args))
    assert sorted(numbers(batches)) == list(range(PICTURES))
    for batch in batches:
        for row, number in enumerate(numbers([batch])):
            close(batch["pixel_values"][row], values(steps(opened(number))))
            control = steps(Image.open(io.BytesIO(edges(number))))
            close(batch["conditioning_pixel_values"][row], functional.to_tensor(control))


def test_controlnet_drops_captions() -> None:
    args = options(conditioning_image_column=None, proportion_empty_prompts=0.5)
    texts = [text for b in loader_for(data_set(), args) for text in texts_of(b["input_ids"])]
    assert 0 < texts.count("") < PICTURES
    assert all(text == caption(number_of(text)) for text in texts if text)


BUCKETS = [(32, 32), (24, 40), (40, 24)]


class ScriptsBatches:
    batch_size, drop_last = 2, True


@pytest.fixture
def dream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes DreamBoothPictures and its loader of data_set(), with these arguments."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: {"train": data_set()})
    module = example("reference_diffusers")

    def make(repeats: int = 1, given: Any = None, **changed: Any) -> tuple[Any, Any]:
        args = options(**{
            "dataset_name": "x", "dataset_config_name": None, "cache_dir": None,
            "caption_column": "text", "cond_image_column": "edges", "train_text_encoder": False,
            "cache_latents": False, **changed,
        })  # fmt: skip
        made = module.DreamBoothPictures(
            instance_data_root=tmp_path, instance_prompt="a thing", class_prompt=None,
            repeats=repeats, buckets=BUCKETS, args=args, **(given or {}),
        )  # fmt: skip
        loader = module.dreambooth_loader(
            made, batch_sampler=ScriptsBatches(), collate_fn=None, num_workers=0,
            accelerator=accelerator(),
        )  # fmt: skip
        return made, loader

    return make


def covered(image: Image.Image, size: tuple[int, int]) -> Any:
    factor = max(size[0] / image.height, size[1] / image.width)
    sides = [round(image.height * factor), round(image.width * factor)]
    return values(functional.center_crop(functional.resize(image, sides), list(size)))


def test_dreambooth_has_buckets_pairs_and_captions(dream: Any) -> None:
    made, loader = dream()
    assert len(made) == PICTURES and made.custom_instance_prompts[3] == caption(3)
    batches = list(loader)
    assert len(batches) == len(loader)
    assert {tuple(batch["pixel_values"].shape[2:]) for batch in batches} == set(BUCKETS)
    found = []
    for batch in batches:
        size = tuple(batch["pixel_values"].shape[2:])
        for row, text in enumerate(batch["prompts"]):
            found.append(number_of(text))
            close(batch["pixel_values"][row], covered(opened(found[-1]), size))
            control = Image.open(io.BytesIO(edges(found[-1])))
            close(batch["cond_pixel_values"][row], covered(control, size))
    assert sorted(found) == list(range(PICTURES))


def test_dreambooth_has_the_same_steps_where_the_script_keeps_them(dream: Any) -> None:
    def loops(**changed: Any) -> list[list[str]]:
        _, loader = dream(**changed)
        return [[text for batch in loader for text in batch["prompts"]] for _ in range(2)]

    first, second = loops()
    assert first == second
    first, second = loops(train_text_encoder=True)
    assert first != second and sorted(first) == sorted(second)
    first, second = loops(train_text_encoder=True, cache_latents=True)
    assert first == second


def test_dreambooth_repeats_pictures_of_a_folder(dream: Any, tmp_path: Path) -> None:
    for number, content in enumerate(IMAGES):
        (tmp_path / f"{number}.jpg").write_bytes(content)
    made, loader = dream(repeats=2, dataset_name=None)
    assert len(made) == 2 * PICTURES and made.custom_instance_prompts is None
    batches = list(loader)
    assert sum(len(batch["pixel_values"]) for batch in batches) == 2 * PICTURES
    assert {text for batch in batches for text in batch["prompts"]} == {"a thing"}
    with pytest.raises(ValueError, match="--with_prior_preservation"):
        dream(given={"class_data_root": tmp_path})


# open_clip


@pytest.fixture
def shards(tmp_path: Path) -> str:
    for shard in range(2):
        members = []
        for number in range(shard, PICTURES, 2):
            members.append((f"{number:03}.jpg", IMAGES[number]))
            members.append((f"{number:03}.txt", caption(number).encode()))
        tar_file(tmp_path / f"{shard}.tar", members)
    return f"{tmp_path}/{{0..1}}.tar"


@pytest.fixture
def open_clip(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The loader beside a stand-in for the script's own module."""
    package, data = ModuleType("open_clip_train"), ModuleType("open_clip_train.data")
    data.get_wds_dataset = object()
    data.get_dataset_fn = lambda path, kind: data.get_wds_dataset if kind == "auto" else None
    data.expand_urls = lambda urls: ([urls.replace("{0..1}", str(i)) for i in range(2)], None)
    data.get_data = lambda args, *_, **__: {"val": "own"} | (
        {"train": "own"} if args.train_data else {}
    )
    package.data = data
    monkeypatch.setitem(sys.modules, "open_clip_train", package)
    monkeypatch.setitem(sys.modules, "open_clip_train.data", data)
    return example("reference_open_clip")


def clip_options(shards: str, **given: Any) -> Any:
    usual = {
        "train_data": shards, "dataset_type": "auto", "batch_size": 4, "workers": 1, "rank": 0,
        "world_size": 1, "seed": SEED, "device": "cpu", "json_text_key": None, "text_key": "txt",
        "train_num_samples": None, "dataset_resampled": False,
    }  # fmt: skip
    return SimpleNamespace(**{**usual, **given})


def tokenizer(texts: list[str]) -> Any:
    return torch.tensor([[*map(ord, text), *[0] * 40][:40] for text in texts])


def clip_transform(*colours: Any) -> Any:
    """open_clip's of a training, with classes of its own."""
    crop = transforms.RandomResizedCrop(
        32, scale=(0.6, 1.0), interpolation=transforms.InterpolationMode.BICUBIC
    )
    own = type("MaybeToTensor", (transforms.ToTensor,), {})()
    return transforms.Compose([
        crop, like("MaybeConvertMode"), *colours, own, transforms.Normalize([0.5] * 3, [0.5] * 3),
    ])  # fmt: skip


def clip_data(module: Any, args: Any, transform: Any = None) -> Any:
    given = {"epoch": 0, "tokenizer": tokenizer, "naflex_data_config": None}
    return module.training_data(args, (transform or clip_transform(), None), **given)


def clip_numbers(batches: Any) -> list[int]:
    return [number_of(text) for batch in batches for text in texts_of(batch["text"])]


def test_open_clip_has_the_pictures_of_its_transforms(open_clip: Any, shards: str) -> None:
    args = clip_options(shards)
    data = clip_data(open_clip, args)
    assert data["val"] == "own" and args.train_data == shards
    loader = data["train"].dataloader
    assert (loader.num_batches, loader.num_samples) == (4, 16)
    jitter = like("color_jitter", transf=transforms.ColorJitter(0.4), p=0.8)
    colours = jitter, like("gray_scale", p=0.2)
    plan = open_clip.from_torchvision(open_clip.as_torchvision(clip_transform(*colours)))
    assert "random_apply(color_jitter(" in str(plan.augment) and "grayscale" in str(plan.augment)
    plan = open_clip.from_torchvision(open_clip.as_torchvision(clip_transform()))
    batches = list(loader)
    found = clip_numbers(batches)
    assert len(found) == 16 and set(found) == set(range(PICTURES))
    places = [*range(0, PICTURES, 2), *range(1, PICTURES, 2)]  # in the order of the shards
    for batch in batches:
        assert batch["image"].shape == (4, 3, 32, 32)
        for number, pixels in zip(clip_numbers([batch]), batch["image"], strict=True):
            image = lying(number)
            drawn = augment.draw(
                plan.augment, (image.height, image.width), seed=SEED,
                sample=places.index(number), size=32,
            )  # fmt: skip
            if found.count(number) == 1:
                close(pixels, values(to_torchvision(drawn, image)))


def test_open_clip_resumes_at_an_epoch_and_shares_it_among_ranks(
    open_clip: Any, shards: str
) -> None:
    data = clip_data(open_clip, clip_options(shards))["train"]
    epochs = [clip_numbers(data.dataloader) for _ in range(3)]
    assert epochs[0] != epochs[2]
    later = clip_data(open_clip, clip_options(shards))["train"]
    later.set_epoch(2)
    assert clip_numbers(later.dataloader) == epochs[2]
    ranks = [
        clip_data(open_clip, clip_options(shards, rank=rank, world_size=2, batch_size=2))["train"]
        for rank in range(2)
    ]
    shares = [clip_numbers(each.dataloader) for each in ranks]
    assert [len(share) for share in shares] == [8, 8]
    assert {*shares[0], *shares[1]} == set(range(PICTURES))


def test_open_clip_draws_as_many_samples_as_it_is_told(open_clip: Any, shards: str) -> None:
    few = clip_data(open_clip, clip_options(shards, train_num_samples=8))["train"].dataloader
    found = clip_numbers(few)
    assert few.num_batches == 2 and len(set(found)) == 8
    given = {"train_num_samples": 40, "dataset_resampled": True}
    many = clip_data(open_clip, clip_options(shards, **given))["train"].dataloader
    assert many.num_batches == 10 and len(clip_numbers(many)) == 40


def test_open_clips_batches_are_whole_if_a_file_is_damaged(open_clip: Any) -> None:
    batch = (torch.arange(3.0), None, {"txt": ["a", "b", "c"]})
    made = open_clip.pairs_of(batch, "txt", tokenizer, 4)
    assert made["image"].tolist() == [0, 1, 2, 0]
    assert texts_of(made["text"]) == ["a", "b", "c", "a"]


def test_what_open_clip_is_not_fed(open_clip: Any, shards: str) -> None:
    own = clip_data(open_clip, clip_options(shards, dataset_type="csv"))
    assert own["train"] == "own"
    for name in open_clip.REFUSED:
        with pytest.raises(ValueError, match=f"--{name.replace('_', '-')}: stoker does not"):
            clip_data(open_clip, clip_options(shards, **{name: True}))
    with pytest.raises(ValueError, match="txt;caption: stoker reads captions of one field"):
        clip_data(open_clip, clip_options(shards, text_key="txt;caption"))
    assert open_clip.caption_of(clip_options(shards, json_text_key="text")) == "json:text:text"


# With clones of mlfoundations/open_clip and huggingface/diffusers: nets of random weights.


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("accelerate", "datasets", "diffusers", "transformers"):
        pytest.importorskip(module)
    from tiny_trainers import make

    return make(tmp_path_factory.mktemp("tiny") / "made")


def run_script(folder: Path, *arguments: object) -> str:
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True,
        env={**os.environ, **offline, "PYTHONPATH": os.pathsep.join(paths)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


SCRIPTS = {
    "text_to_image/train_text_to_image.py": (
        "sd", "--train_data_dir", "{}/folder", "--image_column", "image", "--caption_column",
        "text", "--random_flip",
    ),
    "controlnet/train_controlnet.py": (
        "sd", "--train_data_dir", "{}/parquet", "--image_column", "image", "--caption_column",
        "text", "--conditioning_image_column", "edges", "--proportion_empty_prompts", "0.2",
    ),
    "dreambooth/train_dreambooth_lora_flux_kontext.py": (
        "kontext", "--dataset_name", "{}/parquet", "--image_column", "image", "--caption_column",
        "text", "--cond_image_column", "edges", "--use_aspect_ratio_buckets",
        "--aspect_ratio_buckets", "64,64;48,80;80,48", "--instance_prompt", "a thing",
        "--max_sequence_length", "64", "--rank", "2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_diffusers_scripts_run_and_resume(tiny: Path, tmp_path: Path, name: str) -> None:
    net, *given = SCRIPTS[name]
    given = [each.format(tiny) for each in given]
    with adapted_clone("diffusers", tmp_path) as clone:
        script = clone / "examples" / name
        usual = [
            "--pretrained_model_name_or_path", tiny / net, "--resolution", 64, "--seed", 5,
            "--train_batch_size", 4, "--checkpointing_steps", 2, "--output_dir", tmp_path / "out",
        ]  # fmt: skip
        run_script(script.parent, script, *usual, *given, "--max_train_steps", 2)
        more = ["--max_train_steps", 4, "--resume_from_checkpoint", "latest"]
        run_script(script.parent, script, *usual, *given, *more)
    assert (tmp_path / "out/checkpoint-4").is_dir()


@pytest.mark.parametrize("loss", ["", "--siglip"])
def test_open_clip_runs(tiny: Path, tmp_path: Path, loss: str) -> None:
    for module in ("ftfy", "timm", "webdataset"):
        pytest.importorskip(module)
    with adapted_clone("open_clip", tmp_path) as clone:
        config = clone / "src/open_clip/model_configs/tiny-clip.json"
        config.write_text((tiny / "clip.json").read_text())
        shown = run_script(
            clone / "src", "-m", "open_clip_train.main", "--model", "tiny-clip", "--train-data",
            f"{tiny}/{{0..3}}.tar", "--batch-size", 16, "--epochs", 1, "--workers", 1, "--device",
            "cpu", "--precision", "fp32", "--log-every-n-steps", 1, "--logs", tmp_path / "logs",
            *([loss] if loss else []),
        )  # fmt: skip
    assert "[48/48 (100%)]" in shown
