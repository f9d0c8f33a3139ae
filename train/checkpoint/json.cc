#include "train/checkpoint/json.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "pipeline/files/json_file.h"
#include "train/checkpoint/checksum.h"
#include "train/model/recipe_json.h"

namespace stoker {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;

template <class T>
void read_whole(const Json& json, const char* name, T& value) {
  try {
    value = whole_number<T>(json.at(name));
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string(name) + ": " + error.what());
  }
}

}  // namespace

Json checkpoint_to_json(const CheckpointInfo& info) {
  Json json;
  json["format"] = kFormat;
  json["recipe"] = recipe_to_json(info.model.recipe);
  json["classes"] = info.model.classes;
  json["class_names"] = info.model.class_names;
  if (!info.model.target.empty()) json["target"] = info.model.target;
  json["seed"] = info.seed;
  json["step"] = info.step;
  json["total_steps"] = info.total_steps;
  if (info.replicas > 0) {
    json["independent"] = {{"replica", info.replica}, {"replicas", info.replicas}};
  }
  if (info.norm_replicas > 0) json["sync_batch_norm"] = {{"replicas", info.norm_replicas}};
  if (!info.grad_wire.empty()) json["grad_wire"] = info.grad_wire;
  if (info.accumulate > 0) json["accumulate"] = info.accumulate;
  json["loader"] = {{"next_step", info.loader.next_step},
                    {"epoch", info.loader.epoch},
                    {"step_in_epoch", info.loader.step_in_epoch},
                    {"fingerprint", to_hex(info.loader.fingerprint)}};
  if (const EpochGrid& grid = info.loader.grid; grid.epoch >= 0) {
    json["loader"]["grid"] = {
        {"epoch", grid.epoch}, {"step", grid.step}, {"position", grid.position}};
  }
  json["epoch_so_far"] = {{"loss_sum", info.epoch.loss_sum},
                          {"weight_sum", info.epoch.weight_sum},
                          {"top1", info.epoch.top1},
                          {"seconds", info.epoch.seconds}};
  json["metrics"] = {
      {"best_top1", info.best_top1}, {"last_top1", info.last_top1}, {"last_top5", info.last_top5}};
  return json;
}

CheckpointInfo checkpoint_from_json(const Json& json) {
  if (json.at("format") != kFormat) {
    throw std::runtime_error("format " + json.at("format").dump() + ", this program reads " +
                             std::to_string(kFormat));
  }
  CheckpointInfo info;
  info.model.recipe = recipe_from_json(json.at("recipe"));
  read_whole(json, "classes", info.model.classes);
  json.at("class_names").get_to(info.model.class_names);
  if (json.contains("target")) json.at("target").get_to(info.model.target);
  info.batch = info.model.recipe.batch;
  read_whole(json, "seed", info.seed);
  read_whole(json, "step", info.step);
  read_whole(json, "total_steps", info.total_steps);
  if (const auto independent = json.find("independent"); independent != json.end()) {
    read_whole(*independent, "replica", info.replica);
    read_whole(*independent, "replicas", info.replicas);
  }
  if (const auto norms = json.find("sync_batch_norm"); norms != json.end()) {
    read_whole(*norms, "replicas", info.norm_replicas);
  }
  if (json.contains("grad_wire")) json.at("grad_wire").get_to(info.grad_wire);
  if (json.contains("accumulate")) read_whole(json, "accumulate", info.accumulate);
  const Json& loader = json.at("loader");
  read_whole(loader, "next_step", info.loader.next_step);
  read_whole(loader, "epoch", info.loader.epoch);
  read_whole(loader, "step_in_epoch", info.loader.step_in_epoch);
  info.loader.fingerprint = from_hex(loader.at("fingerprint"));
  if (const auto grid = loader.find("grid"); grid != loader.end()) {
    read_whole(*grid, "epoch", info.loader.grid.epoch);
    read_whole(*grid, "step", info.loader.grid.step);
    read_whole(*grid, "position", info.loader.grid.position);
  }
  const Json& epoch = json.at("epoch_so_far");
  epoch.at("loss_sum").get_to(info.epoch.loss_sum);
  epoch.at("weight_sum").get_to(info.epoch.weight_sum);
  epoch.at("top1").get_to(info.epoch.top1);
  epoch.at("seconds").get_to(info.epoch.seconds);
  const Json& metrics = json.at("metrics");
  metrics.at("best_top1").get_to(info.best_top1);
  metrics.at("last_top1").get_to(info.last_top1);
  metrics.at("last_top5").get_to(info.last_top5);
  return info;
}

}  // namespace stoker
