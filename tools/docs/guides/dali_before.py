"""DALI on a CPU: a shuffled epoch of random crops and flips of photos/train."""

from nvidia.dali import fn, pipeline_def, types

BATCH = 16


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=1)
def training():
    files, labels = fn.readers.file(
        file_root="photos/train", random_shuffle=True, pad_last_batch=True, name="reader"
    )
    images = fn.decoders.image_random_crop(files, random_area=(0.08, 1.0))
    images = fn.resize(images, size=(64, 64), interp_type=types.INTERP_LINEAR, antialias=True)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=fn.random.coin_flip(),
    )
    return images, labels


pipe = training()
pipe.build()
count = pipe.epoch_size("reader")
taken = []
for _ in range((count + BATCH - 1) // BATCH):
    images, labels = pipe.run()
    assert images.as_array().shape == (BATCH, 3, 64, 64)
    taken += labels.as_array().ravel().tolist()
taken = taken[:count]  # the last batch was padded
print("samples", len(taken))
print("labels", sorted(taken))
