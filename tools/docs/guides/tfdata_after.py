"""stoker.keras: photos/train in batches of 64 x 64 pixels, and a step of training."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras

import stoker
from stoker.keras import Dataset

dataset = Dataset(
    stoker.folder("photos/train"), size=(64, 64), augment="resize", batch_size=16, seed=1
)

taken = []
dataset.on_epoch_begin()
for index in range(len(dataset)):
    images, labels = dataset[index]
    assert images.shape[1:] == (64, 64, 3)
    taken += labels.tolist()
dataset.on_epoch_end()
print("samples", len(taken))
print("labels", sorted(taken))

model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=0)
dataset.close()
