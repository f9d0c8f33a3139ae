"""As tfdata, with tf.image.resize(antialias=True): Pillow's pixels except for rounding."""

import tfdata


class Participant(tfdata.Participant):
    antialias = True
