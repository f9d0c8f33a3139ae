#!/usr/bin/env python3
"""Keras 3's model.fit on an image folder with train/ and val/, with validation; any backend.

    KERAS_BACKEND=jax PYTHONPATH=build/python python python/examples/keras_fit.py DIR [EPOCHS]
"""

import sys

import keras

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


def main():
    source = stoker.folder(sys.argv[1], split="train")
    train = Dataset(
        source,
        batch_size=32,
        size=64,
        seed=1,
        augment=stoker.random_resized_crop(scale=(0.35, 1.0)) | stoker.flip(),
    )
    val = Dataset(stoker.folder(sys.argv[1], split="test"), batch_size=32, size=64, shuffle=False)
    model = make_model(len(source.classes))
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        metrics=["accuracy"],
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        train, validation_data=val, epochs=int(sys.argv[2]) if len(sys.argv) > 2 else 5, verbose=2
    )


if __name__ == "__main__":
    main()
