"""stoker.torch under Lightning's Trainer, if it is installed."""

from __future__ import annotations

import numpy as np
import pytest

lightning = pytest.importorskip("lightning")
torch = pytest.importorskip("torch")
transforms = pytest.importorskip("torchvision.transforms")

import stoker.torch  # noqa: E402

TRANSFORM = transforms.Compose(
    [transforms.RandomResizedCrop(16), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
EVAL = transforms.Compose([transforms.Resize(20), transforms.CenterCrop(16), transforms.ToTensor()])


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 3))
        self.seen: list[bytes] = []  # of training
        self.rows = 0  # of validation

    def loss(self, batch):
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.net(images), labels)

    def training_step(self, batch, index):
        self.seen.append(np.asarray(batch[0]).tobytes())
        return self.loss(batch)

    def validation_step(self, batch, index):
        self.rows += len(batch[1])
        self.log("val_loss", self.loss(batch))

    def test_step(self, batch, index):
        self.log("test_loss", self.loss(batch))

    def predict_step(self, batch, index):
        return self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trainer(folder, **options):
    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **options,
    )


def loaders(pictures):
    data = stoker.torch.ImageFolder(pictures, TRANSFORM)
    train = stoker.torch.DataLoader(data, 8, shuffle=True, num_workers=1)
    evaluation = stoker.torch.ImageFolder(pictures, EVAL)
    return train, stoker.torch.DataLoader(evaluation, 8, num_workers=1)


def test_fit_with_validation_test_and_predict(pictures, tmp_path):
    train, val = loaders(pictures)
    net = Net()
    run = trainer(tmp_path, max_epochs=2, num_sanity_val_steps=1, enable_checkpointing=False)
    run.fit(net, train, val)
    assert len(net.seen) == len(set(net.seen)) == 2 * 5
    assert net.rows == 8 + 2 * 37
    assert torch.isfinite(run.callback_metrics["val_loss"])
    assert torch.isfinite(torch.tensor(run.test(net, val, verbose=False)[0]["test_loss"]))
    assert sum(len(rows) for rows in run.predict(net, val)) == 37


def test_a_checkpoint_within_an_epoch_has_the_loaders_place(pictures, tmp_path):
    train, val = loaders(pictures)
    whole = Net()
    keep = lightning.pytorch.callbacks.ModelCheckpoint(
        tmp_path, filename="at3", every_n_train_steps=3, save_top_k=-1
    )
    trainer(tmp_path, max_epochs=1, callbacks=[keep]).fit(whole, train, val)
    resumed, (train, val) = Net(), loaders(pictures)
    run = trainer(tmp_path, max_epochs=1, enable_checkpointing=False)
    run.fit(resumed, train, val, ckpt_path=tmp_path / "at3.ckpt", weights_only=False)
    assert resumed.seen == whole.seen[3:]
