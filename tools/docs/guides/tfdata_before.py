"""tf.data and Keras: photos/train in batches of 64 x 64 pixels, and a step of training."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import tensorflow as tf

dataset = keras.utils.image_dataset_from_directory(
    "photos/train", image_size=(64, 64), batch_size=16, shuffle=True, seed=1
)
dataset = dataset.map(
    lambda images, labels: (images / 255, labels), num_parallel_calls=tf.data.AUTOTUNE
).prefetch(tf.data.AUTOTUNE)

taken = []
for images, labels in dataset:
    assert images.shape[1:] == (64, 64, 3)
    taken += labels.numpy().tolist()
print("samples", len(taken))
print("labels", sorted(taken))

model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=1, verbose=0)
