"""The training loaders of diffusers' train_text_to_image.py, train_controlnet.py and
train_dreambooth_lora_flux_kontext.py, fed by stoker. `adapt` puts this file beside the script.

The pictures and captions of a batch, their resizes and the values of the pixels are the script's;
crops, flips, the choice among captions and their dropout are drawn by stoker. Where a script saves
its state with accelerator.save_state(), the loader's position is part of it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import stoker
from stoker import augment
from stoker.torch import DataLoader


def training_loader(
    dataset, batch_size, shuffle, collate_fn, num_workers, *, args, accelerator, tokenizer
):
    """In place of PyTorch's DataLoader of train_text_to_image.py and train_controlnet.py. `dataset`
    is the script's datasets.Dataset, which says what to read; its transform is not called."""
    names = columns_of(dataset, args)
    control = names.get("control")
    source = stoker.huggingface(
        dataset.with_format(None),
        image_from=names["image"],
        label_from="none",
        targets_from=[names["caption"]],
        **({"pictures_from": {"control": control}} if control else {}),
    )
    if control:
        fitted = augment.resize(args.resolution) | augment.center_crop(args.resolution)
        stages = {"image": dropped(fitted, args.proportion_empty_prompts), "control": fitted}
    else:
        stages = stages_of(args)
    loader = DataLoader(
        source,
        batch_size,
        shuffle=shuffle,
        size=args.resolution,
        augment=stages,
        texts="random",
        on_batch=partial(tokenized, caption=names["caption"], tokenizer=tokenizer),
        last_batch="pad" if accelerator.num_processes == 1 else "wrap",
        **options_of(args, accelerator, num_workers),
    )
    accelerator.register_for_checkpointing(loader)
    return loader


def columns_of(dataset, args):
    """The script's rules: a column that is not named is the one at this place."""
    columns = dataset.column_names
    names = {"image": args.image_column or columns[0], "caption": args.caption_column or columns[1]}
    if hasattr(args, "conditioning_image_column"):
        names["control"] = args.conditioning_image_column or columns[2]
    return names


def stages_of(args):
    side = args.resolution
    stages = augment.resize(side, args.image_interpolation_mode.lower())
    stages |= augment.center_crop(side) if args.center_crop else augment.random_crop(side)
    return stages | augment.flip() if args.random_flip else stages


def dropped(stages, share):
    return stages | augment.drop_text(share) if share else stages


def options_of(args, accelerator, num_workers):
    """ValueError: several processes without a seed, which would each draw another order."""
    if args.seed is None and accelerator.num_processes > 1:
        raise ValueError("give --seed: the processes deal out the samples of one order")
    return {
        "num_workers": num_workers or None,  # threads; the scripts' default is 0
        "device": accelerator.device,
        "seed": args.seed,
        "rank": accelerator.process_index,
        "world": accelerator.num_processes,
        "dtype": "float32",
        "mean": 0.5,
        "std": 0.5,
        "exif": "apply",
        # A tokenizer reads less of a caption.
        "max_target_bytes": 8192,
        "too_long": "cut",
    }


def tokenized(batch, caption, tokenizer):
    """Makes of a batch what the scripts' collate_fn make of samples."""
    images, _, targets = batch
    tokens = tokenizer(
        targets[caption],
        max_length=tokenizer.model_max_length,
        padding="max_length",
        truncation=True,
        return_tensors="pt",
    )
    made = {"pixel_values": images, "input_ids": tokens.input_ids.to(images.device)}
    if "control" in targets:  # 0 to 1
        made["conditioning_pixel_values"] = targets["control"] * 0.5 + 0.5
    return made


class DreamBoothPictures:
    """In place of DreamBoothDataset, which decodes and crops all pictures before the first step and
    keeps them. The arguments are the script's.

    Without a list of buckets all pictures have those of --resolution: smaller ones are enlarged.
    ValueError: --with_prior_preservation.
    """

    # The script's BucketBatchSampler finds nothing to deal out.
    buckets = pixel_values = ()

    def __init__(
        self,
        instance_data_root,
        instance_prompt,
        class_prompt,
        class_data_root=None,
        class_num=None,
        repeats=1,
        center_crop=False,
        buckets=None,
        args=None,
        use_aspect_ratio_buckets=False,
        bucket_divisibility=16,
        bucket_base_resolutions=None,
    ):
        if class_data_root is not None:
            raise ValueError("--with_prior_preservation: stoker feeds trainings of one data set")
        if use_aspect_ratio_buckets:
            from diffusers.training_utils import generate_aspect_ratio_buckets

            buckets = generate_aspect_ratio_buckets(
                args.resolution, bucket_divisibility, bucket_base_resolutions
            )
        self.args = args
        self.sizes = stoker.buckets(buckets)
        source, captions = opened(args, instance_data_root)
        prompts = [caption or instance_prompt for caption in captions or [None] * len(source)]
        source = stoker.with_targets(source, {"prompts": prompts})
        self.source = stoker.concat([source] * repeats)
        self.custom_instance_prompts = prompts * repeats if captions else None

    def __len__(self):
        return len(self.source)

    def stages(self):
        args = self.args
        stages = augment.resize_cover()
        stages |= augment.center_crop() if args.center_crop else augment.random_crop()
        stages = stages | augment.flip() if args.random_flip else stages
        if not self.source.pictures:
            return stages
        return {"image": augment.same(stages), "control": augment.same(stages)}

    def has_caches(self):
        """Whether the script keeps what its nets make of a batch by the number of the step."""
        of_prompts = self.custom_instance_prompts and not self.args.train_text_encoder
        return bool(of_prompts or self.args.cache_latents)


def opened(args, folder):
    """Returns the pictures and their captions; None: there are none."""
    if args.dataset_name is None:
        paths = sorted(Path(folder).iterdir())
        return stoker.files(paths, [0] * len(paths)), None
    import datasets

    read = datasets.load_dataset(
        args.dataset_name, args.dataset_config_name, cache_dir=args.cache_dir
    )["train"]
    control = args.cond_image_column
    source = stoker.huggingface(
        read,
        image_from=args.image_column or read.column_names[0],
        label_from="none",
        **({"pictures_from": {"control": control}} if control else {}),
    )
    return source, list(read[args.caption_column]) if args.caption_column else None


def dreambooth_loader(dataset, batch_sampler, collate_fn, num_workers, *, accelerator):
    """In place of PyTorch's DataLoader with the script's BucketBatchSampler. What would be left of
    the buckets comes in batches of neighbours' shapes at the end of an epoch, where the script
    leaves it out."""
    loader = DataLoader(
        dataset.source,
        batch_sampler.batch_size,
        shuffle=True,
        buckets=dataset.sizes,
        augment=dataset.stages(),
        last_batch="drop" if accelerator.num_processes > 1 else "merge",
        on_batch=prompted,
        **options_of(dataset.args, accelerator, num_workers),
    )
    if dataset.has_caches():
        return SameSteps(loader)
    accelerator.register_for_checkpointing(loader)
    return loader


def prompted(batch):
    images, _, targets = batch
    made = {"pixel_values": images, "prompts": targets["prompts"]}
    if "control" in targets:
        made["cond_pixel_values"] = targets["control"]
    return made


class SameSteps:
    """Each loop has the batches of the first one. The script itself shuffles its batches anew, and
    then takes the captions and latents of other pictures out of its caches."""

    def __init__(self, loader):
        self.loader = loader

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        self.loader.set_epoch(0)
        return iter(self.loader)
