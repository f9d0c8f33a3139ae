#!/usr/bin/env python3
"""Keras 3's model.fit on an image folder with train/ and val/, with mixup, CutMix and validation;
any backend.

    KERAS_BACKEND=jax PYTHONPATH=build/python python python/examples/keras_fit.py DIR [EPOCHS]

on_batch makes soft labels of the two labels and the share of a mixed row, ahead of the training.
"""

import sys

import keras
import numpy as np

import stoker
from stoker.keras import Dataset


def make_model(classes):
    layers = [keras.Input((64, 64, 3))]
    for width in (32, 64, 128):
        layers += [
            keras.layers.Conv2D(width, 3, strides=2, padding="same", activation="relu"),
            keras.layers.BatchNormalization(momentum=0.9),
        ]
    layers += [keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(classes)]
    return keras.Sequential(layers)


def soft_labels(classes, batch):
    images, labels = batch
    eye = np.eye(classes, dtype="float32")
    if not isinstance(labels, dict):
        return images, eye[labels]
    share = labels["mix_weight"][:, None]
    return images, share * eye[labels["label"]] + (1 - share) * eye[labels["mix_label"]]


def main():
    source = stoker.folder(sys.argv[1], split="train")
    classes = len(source.classes)

    def on_batch(batch):
        return soft_labels(classes, batch)

    train = Dataset(
        source,
        batch_size=32,
        size=64,
        seed=1,
        augment="random_resized_crop(scale=(0.35, 1)) | flip | mix(mixup=0.2, cutmix=1)",
        on_batch=on_batch,
    )
    val = Dataset(
        stoker.folder(sys.argv[1], split="test"),
        batch_size=32,
        size=64,
        shuffle=False,
        on_batch=on_batch,
    )
    model = make_model(classes)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        metrics=["accuracy"],
        loss=keras.losses.CategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        train, validation_data=val, epochs=int(sys.argv[2]) if len(sys.argv) > 2 else 5, verbose=2
    )


if __name__ == "__main__":
    main()
