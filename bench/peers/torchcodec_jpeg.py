"""torchcodec's decode_jpeg, which replaces torchvision's: it decodes whole pictures, so that v2 crops and resizes as for torchvision."""

from torchcodec.decoders import decode_jpeg

import torchvision_peers
from peer import versions


class Participant(torchvision_peers.V2):
    def version(self):
        return versions("torchcodec", "torch", "torchvision")

    def decode(self, data):
        return decode_jpeg(data)
