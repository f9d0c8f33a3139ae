#!/usr/bin/env python3
"""A small net in Flax, trained by JAX on all its devices, on an image folder with train/ and val/.

    export XLA_FLAGS=--xla_force_host_platform_device_count=2
    PYTHONPATH=build/python python python/examples/jax_flax.py DIR [EPOCHS]
"""

import sys

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

import stoker
from stoker.jax import Loader


class Net(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, images):
        for width in (32, 64, 128):
            images = nn.relu(nn.GroupNorm(8)(nn.Conv(width, (3, 3), strides=2)(images)))
        return nn.Dense(self.classes)(images.mean((1, 2)))


def main():
    source = stoker.folder(sys.argv[1], split="train")
    train = Loader(
        source,
        batch_size=32,
        size=64,
        seed=1,
        augment=stoker.random_resized_crop(scale=(0.35, 1.0)) | stoker.flip(),
    )
    val = Loader(stoker.folder(sys.argv[1], split="test"), batch_size=32, size=64, shuffle=False)
    net, optimizer = Net(len(source.classes)), optax.adam(1e-3)
    params = net.init(jax.random.PRNGKey(0), jnp.zeros((1, 64, 64, 3)))
    moments = optimizer.init(params)

    def loss_of(params, images, labels, weights):
        losses = optax.softmax_cross_entropy_with_integer_labels(net.apply(params, images), labels)
        return (losses * weights).sum() / jnp.maximum(weights.sum(), 1)

    @jax.jit
    def step(params, moments, images, labels, weights):
        loss, gradients = jax.value_and_grad(loss_of)(params, images, labels, weights)
        updates, moments = optimizer.update(gradients, moments)
        return optax.apply_updates(params, updates), moments, loss

    @jax.jit
    def right(params, images, labels, weights):
        return ((net.apply(params, images).argmax(-1) == labels) * weights).sum(), weights.sum()

    for epoch in range(int(sys.argv[2]) if len(sys.argv) > 2 else 5):
        losses = []
        for batch in train:
            params, moments, loss = step(params, moments, *batch)
            losses.append(loss)
        found = [right(params, *batch) for batch in val]
        counted = sum(float(count) for _, count in found)
        print(
            f"epoch {epoch}: loss {float(jnp.stack(losses).mean()):.3f}, top-1 "
            f"{100 * sum(float(hits) for hits, _ in found) / counted:.1f} % of {counted:.0f}, "
            f"{len(jax.devices())} devices"
        )


if __name__ == "__main__":
    main()
