// The nets that stoker knows by name, as NetSpec values. Each family is a file of nets/, with its
// net and its recipe; nets/model_table.h lists them.
// Where torchvision has the model, parameters have the names of its state_dict (conv1, bn1,
// layer1.0.conv1, ..., fc), in its order. airnet has whiten.{weight,bias},
// layers.{0,1,2}.{conv1,norm1,conv2,norm2}.*, head.weight: this is airbench's module order, with
// words in place of its Sequential indices (0, 2, 3, 4, 7). The DenseNets have the names of
// torchvision's larger ones, as far as they share modules.
#pragma once

#include <string>
#include <vector>

#include "train/model/net_spec.h"

namespace stoker {

struct ModelOptions {
  std::vector<int> widths;  // channels per stage; empty: the model's own
};

std::vector<std::string> list_models();
// Throws std::invalid_argument for an unknown name (the message lists the known ones), and for
// widths or a size that do not fit the model.
NetSpec make_net(const std::string& name, Size input, int classes,
                 const ModelOptions& options = {});

}  // namespace stoker
